"""What claims are judged by: the values of sound checkpoints."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from shape_of_learning.claims.claim import EvidenceModel
from shape_of_learning.metrics.tidy import GROUPS, TIDY_COLUMNS

NO_ROWS = pd.DataFrame({"model": [], "revision": [], "shown": []}, dtype=str)
VALUES = list(TIDY_COLUMNS[-1 - GROUPS :])  # with all windows, and without each group of them


@dataclass(frozen=True)
class LayerValues:
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
    near_duplicates, same_token : ndarray of float64, shape (checkpoints, layers)
        Share of vectors with a near-duplicate, and of those whose nearest neighbour is the same token; NaN for
        measures that are not of neighbours.
    n : ndarray of float64, shape (checkpoints,)
        Vectors of a batch.
    undefined : int
        Layers that are left out, since they are undefined somewhere.
    before_norm : bool
        Whether the last layer is known to be the state before the final norm.
    """

    revisions: Sequence[str]
    steps: np.ndarray
    selection: str
    layers: np.ndarray
    values: np.ndarray
    near_duplicates: np.ndarray
    n: np.ndarray
    same_token: np.ndarray | None = None
    undefined: int = 0
    before_norm: bool = False

    @property
    def means(self) -> np.ndarray:
        """Means over layers, shape (..., checkpoints, 17)."""
        return self.values.mean(axis=-2)

    @property
    def last(self) -> np.ndarray:
        """Values at the last checkpoint, shape (..., layers, 17)."""
        return self.values[..., -1, :, :]


@dataclass(frozen=True)
class Evidence:
    """All that a claim may be judged by, under one selection of rows, of one text.

    Attributes
    ----------
    models : mapping of str to EvidenceModel
        Those of the run.
    curves : mapping of (str, str) to Curve
        Of each model and estimator, without checkpoints that are not shown.
    tables : mapping of str to DataFrame
        Other tables, by the names that paper.yaml `reads`, each with ``model`` and ``revision``.
    suspect_above : mapping of str to float
        Of each estimator that has conditions, the share of near-duplicates up to which they hold.
    controls : mapping of (str, str, str) to Curve
        Of each model, estimator and control, such as ``untrained``.
    """

    models: Mapping[str, EvidenceModel]
    curves: Mapping[tuple[str, ...], LayerValues] = field(default_factory=dict)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    suspect_above: Mapping[str, float] = field(default_factory=dict)
    controls: Mapping[tuple[str, ...], LayerValues] = field(default_factory=dict)


def read_evidence(
    models: Sequence[Mapping[str, Any]],
    suspect_above: Mapping[str, float],
    left_out: Iterable[Path],
    tables: Sequence[Path],
    controls: Iterable[Path] = (),
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
    controls : iterable of Path
        ``tables/controls/{model}.csv``.
    """
    of_kind = defaultdict(list)
    for path in tables:
        of_kind[path.parent.name.removeprefix("last_")].append(path)
    verdicts = read_tables(of_kind["verdicts"])
    read = {
        kind: select_sound_rows(read_tables(paths), verdicts) for kind, paths in of_kind.items()
    }
    values = select_sound_rows(read_tables(left_out, ["layer"]), verdicts)
    known = {model["name"]: EvidenceModel(**model) for model in models}
    curves = group_curves(["model", "estimator"], values)
    null = select_sound_rows(read_tables(controls, ["layer"]), verdicts)
    of_controls = group_curves(["model", "estimator", "control"], null)
    return Evidence(known, curves, read, suspect_above, of_controls)


def read_tables(paths: Iterable[Path], words: Sequence[str] = ()) -> pd.DataFrame:
    """Read tables of one kind below each other; `words` are columns that only look like numbers."""
    types: Any = dict.fromkeys(("model", "revision", *words), str)
    tables = [pd.read_csv(p, dtype=types, keep_default_na=False, na_values=[""]) for p in paths]
    filled = [table for table in tables if len(table)]  # empty columns have no type
    return pd.concat(filled, ignore_index=True) if filled else NO_ROWS


def select_sound_rows(rows: pd.DataFrame, verdicts: pd.DataFrame) -> pd.DataFrame:
    """Rows of models without verdicts, and of checkpoints that theirs say to show."""
    judged, good = set(verdicts["model"]), verdicts[verdicts["shown"] == "yes"]
    shown = set(zip(good["model"], good["revision"], strict=True))
    both = zip(rows["model"], rows["revision"], strict=True)
    return rows.loc[[each[0] not in judged or each in shown for each in both]]


def group_curves(keys: Sequence[str], rows: pd.DataFrame) -> dict[tuple[str, ...], LayerValues]:
    """Curves by some columns, from rows with left-out values; averages over layers are left out."""
    if rows.empty:
        return {}
    rows = rows[rows["layer"].str.isdigit()].astype({"layer": int})
    return {key: _make_curve(of) for key, of in rows.groupby([*keys], sort=False)}


def _make_curve(rows: pd.DataFrame) -> LayerValues:
    first = rows.drop_duplicates("revision").fillna({"step": 0}).sort_values("step", kind="stable")
    place = {revision: number for number, revision in enumerate(first["revision"])}
    rows = rows.assign(place=rows["revision"].map(place)).sort_values(["place", "layer"])
    layers = np.unique(rows["layer"])
    shape = (len(place), len(layers))
    return LayerValues(
        revisions=list(place),
        steps=rows["step"].to_numpy(np.float64)[:: len(layers)],
        selection=rows["selection"].iloc[0],
        layers=layers,
        values=rows[VALUES].to_numpy(np.float64).reshape(*shape, len(VALUES)),
        near_duplicates=rows["near_duplicates"].to_numpy(np.float64).reshape(shape),
        same_token=rows["same_token"].to_numpy(np.float64).reshape(shape),
        before_norm="before_final_norm" in rows["selection"].iloc[-1],
        n=rows["n"].to_numpy(np.float64).reshape(shape).mean(axis=1),
    )
