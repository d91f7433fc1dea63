"""What claims are judged by: values of sound checkpoints, with those without each group of windows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from shape_of_learning.files import sha256_of
from shape_of_learning.metrics.tidy import GROUPS, TIDY_COLUMNS

NO_ROWS = pd.DataFrame({"model": [], "revision": []}, dtype=str)
VALUES = list(TIDY_COLUMNS[-1 - GROUPS :])  # with all windows, and without each group of them


@dataclass(frozen=True)
class EvidenceModel:
    """What a run knows of one of its models.

    Attributes
    ----------
    name, role : str
        As in its entry.
    layers : int
        Blocks; hidden states are 0 to `layers`.
    kind : {"pretrained", "twin", "fine_tuning"}
        Whether it was trained by itself, beside another one with a term more, or further from another one.
    origin : str
        The model beside or from which it was trained.
    warmup_steps : int, optional
        Of its learning rate; None where nothing tells.
    treatment : str
        What was done to a twin or on which task it was fine-tuned: those that differ in nothing else but a
        seed have it in common.
    """

    name: str
    role: str
    layers: int
    kind: str = "pretrained"
    origin: str = ""
    warmup_steps: int | None = None
    treatment: str = ""


@dataclass(frozen=True)
class Curve:
    """One estimator of one model by checkpoint and layer, under one selection of rows.

    Attributes
    ----------
    revisions : sequence of str
        Of the checkpoints, by ascending step.
    steps : ndarray of float64
        Theirs, NaN where there is none.
    selection : str
        As in the tables.
    layers : ndarray of int
        Ascending.
    values : ndarray of float64, shape (..., checkpoints, layers, 17)
        With all windows, then without each of the 16 groups. NaN where undefined. Axes before these are draws
        of a simulation.
    near_duplicates : ndarray of float64, shape (checkpoints, layers)
        Share of vectors with a near-duplicate; NaN for measures that are not of neighbours.
    n : ndarray of float64, shape (checkpoints,)
        Vectors of a batch.
    undefined : int
        Layers that are left out, since they are undefined somewhere.
    """

    revisions: Sequence[str]
    steps: np.ndarray
    selection: str
    layers: np.ndarray
    values: np.ndarray
    near_duplicates: np.ndarray
    n: np.ndarray
    undefined: int = 0

    @property
    def means(self) -> np.ndarray:
        """Means over layers, shape (..., checkpoints, 17)."""
        return self.values.mean(axis=-2)


@dataclass(frozen=True)
class Evidence:
    """All that a claim may be judged by, under one selection of rows, of one text.

    Attributes
    ----------
    models : mapping of str to EvidenceModel
        Those of the run.
    curves : mapping of (str, str) to Curve
        Of each model and estimator, without checkpoints whose verdict is not ``ok``.
    tables : mapping of str to DataFrame
        Other tables, by the names that paper.yaml `reads`, each with ``model`` and ``revision``.
    suspect_above : mapping of str to float
        Of each estimator that has conditions, the share of near-duplicates up to which they hold.
    digests : mapping of str to str
        Of the weights, by ``MODEL@REVISION``, of the ``text``, and of other tables, by ``KIND/MODEL``.
    """

    models: Mapping[str, EvidenceModel]
    curves: Mapping[tuple[str, ...], Curve] = field(default_factory=dict)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    suspect_above: Mapping[str, float] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)


def read_evidence(
    models: Sequence[Mapping[str, Any]],
    suspect_above: Mapping[str, float],
    left_out: Iterable[Path],
    tables: Sequence[Path],
    checkpoints: Path,
    text_digest: str,
) -> Evidence:
    """Read what the claims of a paper are judged by.

    Parameters
    ----------
    models : sequence of mapping
        Of each model of the run what :class:`EvidenceModel` holds.
    suspect_above : mapping of str to float
        As in :class:`Evidence`.
    left_out : iterable of Path
        ``tables/left_out/{model}.csv``.
    tables : sequence of Path
        Further tables, ``tables/{kind}/{model}.csv``. Those of the kind ``verdicts`` say which checkpoints
        are sound: a model that has one is judged by these alone, in all tables.
    checkpoints : Path
        The folder of digests of weights, ``{model}/{revision}.tensors.csv``.
    text_digest : str
    """
    # Of the last checkpoints alone, a table is of the same kind.
    files = {f"{path.parent.name.removeprefix('last_')}/{path.stem}": path for path in tables}
    of_kind: dict[str, list[Path]] = {}
    for name, path in files.items():
        of_kind.setdefault(name.partition("/")[0], []).append(path)
    read = {kind: read_tables(paths) for kind, paths in of_kind.items()}
    verdicts = read.get("verdicts", NO_ROWS)
    read = {kind: sound(rows, verdicts) for kind, rows in read.items()}
    values = sound(read_tables(left_out, ["layer"]), verdicts)
    for rows in (values, *read.values()):
        for model, revision in zip(rows["model"], rows["revision"], strict=True):
            files[f"{model}@{revision}"] = checkpoints / model / f"{revision}.tensors.csv"
    digests = {name: sha256_of(file) for name, file in files.items() if file.exists()}
    curves = curves_by(["model", "estimator"], values)
    known = {each["name"]: EvidenceModel(**each) for each in models}
    return Evidence(known, curves, read, suspect_above, {"text": text_digest, **digests})


def read_tables(paths: Iterable[Path], words: Sequence[str] = ()) -> pd.DataFrame:
    """Read tables of one kind below each other; `words` are columns that only look like numbers."""
    options: dict[str, Any] = {
        "dtype": dict.fromkeys(("model", "revision", *words), str),
        "keep_default_na": False,
        "na_values": [""],
    }
    tables = [pd.read_csv(path, **options) for path in paths]
    filled = [table for table in tables if len(table)]  # empty columns have no type
    return pd.concat(filled, ignore_index=True) if filled else NO_ROWS


def sound(rows: pd.DataFrame, verdicts: pd.DataFrame) -> pd.DataFrame:
    """Rows of models without verdicts, and of checkpoints that theirs say to show."""
    shown = {
        model: set(of.loc[of["shown"] == "yes", "revision"])
        for model, of in verdicts.groupby("model")
    }
    both = zip(rows["model"], rows["revision"], strict=True)
    return rows.loc[[model not in shown or revision in shown[model] for model, revision in both]]


def curves_by(keys: Sequence[str], rows: pd.DataFrame) -> dict[tuple[str, ...], Curve]:
    """Curves by some columns, from rows with left-out values; averages over layers are left out."""
    if rows.empty:
        return {}
    rows = rows[rows["layer"].str.isdigit()].astype({"layer": int})
    return {key: _curve(of) for key, of in rows.groupby([*keys], sort=False)}


def _curve(rows: pd.DataFrame) -> Curve:
    first = rows.drop_duplicates("revision").fillna({"step": 0}).sort_values("step", kind="stable")
    place = {revision: number for number, revision in enumerate(first["revision"])}
    rows = rows.assign(place=rows["revision"].map(place)).sort_values(["place", "layer"])
    layers = np.unique(rows["layer"])
    shape = (len(place), len(layers))
    return Curve(
        revisions=list(place),
        steps=rows["step"].to_numpy(np.float64)[:: len(layers)],
        selection=rows["selection"].iloc[0],
        layers=layers,
        values=rows[VALUES].to_numpy(np.float64).reshape(*shape, len(VALUES)),
        near_duplicates=rows["near_duplicates"].to_numpy(np.float64).reshape(shape),
        n=rows["n"].to_numpy(np.float64).reshape(shape).mean(axis=1),
    )
