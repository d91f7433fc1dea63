"""What claims are judged by: values of sound checkpoints, with those without each group of windows."""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from shape_of_learning.files import sha256_of
from shape_of_learning.metrics.table_columns import AVERAGED_LAYERS, GROUPS, TIDY_COLUMNS

Row = Mapping[str, str]
VALUES = TIDY_COLUMNS[-1 - GROUPS :]  # with all windows, and without each group of them


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
class LayerValues:
    """One estimator at one checkpoint, under one selection of rows.

    Attributes
    ----------
    revision : str
    step : int or None
    selection : str
        As in the tables.
    layers : tuple of int
        Which are measured, ascending.
    values : ndarray of float64, shape (..., len(layers), 17)
        Of each layer with all windows, then without each of the 16 groups. NaN where undefined. Axes before
        these are draws of a simulation.
    near_duplicates : tuple of float
        Of each layer the share of vectors with a near-duplicate; NaN for measures that are not of neighbours.
    n : float
        Vectors of a batch.
    """

    revision: str
    step: int | None
    selection: str
    layers: tuple[int, ...]
    values: np.ndarray
    near_duplicates: tuple[float, ...] = ()
    n: float = float("nan")


@dataclass(frozen=True)
class Curve:
    """One estimator of one model at chosen checkpoints, by layer.

    Attributes
    ----------
    model : EvidenceModel
    checkpoints : tuple of LayerValues
        By ascending step.
    layers : tuple of int
        Those that are chosen, and defined at every one of these checkpoints, also without any group.
    values : ndarray of float64, shape (..., len(checkpoints), len(layers), 17)
    undefined : int
        Chosen layers that are left out, since they are undefined somewhere.
    """

    model: EvidenceModel
    checkpoints: tuple[LayerValues, ...]
    layers: tuple[int, ...]
    values: np.ndarray
    undefined: int = 0

    @property
    def steps(self) -> list[int]:
        """The step of each checkpoint; 0 where it has none."""
        return [each.step or 0 for each in self.checkpoints]

    @property
    def means(self) -> np.ndarray:
        """Means over layers, shape (..., len(checkpoints), 17)."""
        return self.values.mean(axis=-2)


@dataclass(frozen=True)
class Evidence:
    """All that a claim may be judged by, under one selection of rows, of one text.

    Attributes
    ----------
    models : mapping of str to EvidenceModel
        Those of the run.
    values : mapping of (str, str) to sequence of LayerValues
        Of each model and estimator, by ascending step. Checkpoints whose verdict is not ``ok`` are left out.
    tables : mapping of str to sequence of mapping
        Rows of other tables, by the names that paper.yaml `reads`, each with ``model`` and ``revision``.
    suspect_above : mapping of str to float
        Of each estimator that has conditions, the share of near-duplicates up to which they hold.
    digests : mapping of str to str
        Of the weights, by ``MODEL@REVISION``, of the ``text``, and of other tables, by ``KIND/MODEL``.
    """

    models: Mapping[str, EvidenceModel]
    values: Mapping[tuple[str, str], Sequence[LayerValues]] = field(default_factory=dict)
    tables: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    suspect_above: Mapping[str, float] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)

    def with_estimators(self, instead: Mapping[str, str]) -> "Evidence":
        """Let other estimators stand for those that a claim names.

        Parameters
        ----------
        instead : mapping of str to str
            By the name that claims use, the one whose values are taken; itself stays what it is elsewhere.
            Where these are not measured, nothing is.
        """
        kept = {key: of for key, of in self.values.items() if key[1] not in instead}
        limits = {name: limit for name, limit in self.suspect_above.items() if name not in instead}
        for name, other in instead.items():
            kept |= {
                (model, name): self.values[model, other]
                for model in self.models
                if (model, other) in self.values
            }
            if other in self.suspect_above:
                limits[name] = self.suspect_above[other]
        return replace(self, values=kept, suspect_above=limits)

    def curve(
        self, model: str, estimator: str, checkpoints: str, average_over: str
    ) -> Curve | None:
        """Choose checkpoints and layers of one estimator of a model.

        Parameters
        ----------
        model, estimator : str
        checkpoints : {"last", "training"}
        average_over : {"block_outputs", "all_layers"}
            Layers 1 to L, or 0 to L.

        Returns
        -------
        Curve or None
            None where it is not measured: for a training, at two steps at least. Its layers may be none.
        """
        measured = list(self.values.get((model, estimator), ()))
        if checkpoints != "last":
            measured = [each for each in measured if each.step is not None]
            if len(measured) < 2:
                return None
        if not measured:
            return None
        chosen = measured[-1:] if checkpoints == "last" else measured
        return _curve(self.models[model], chosen, AVERAGED_LAYERS[average_over])


def _curve(model: EvidenceModel, checkpoints: Sequence[LayerValues], first: int) -> Curve:
    layers = [layer for layer in checkpoints[0].layers if layer >= first]
    places = ([each.layers.index(layer) for layer in layers] for each in checkpoints)
    values = np.stack(
        [each.values[..., of, :] for each, of in zip(checkpoints, places, strict=True)], axis=-3
    )
    defined = _defined(values)
    if not defined.any():  # as of too few windows, where no layer has an interval
        defined = _defined(values[..., :1])
    kept = tuple(layer for layer, whole in zip(layers, defined, strict=True) if whole)
    undefined = len(layers) - len(kept)
    return Curve(model, tuple(checkpoints), kept, values[..., defined, :], undefined)


def _defined(values: np.ndarray) -> np.ndarray:
    """Which layers are numbers everywhere."""
    return ~np.isnan(values).any(axis=(*range(values.ndim - 2), -1))


def read_evidence(
    models: Sequence[Mapping[str, Any]],
    suspect_above: Mapping[str, float],
    left_out: Iterable[Path],
    tables: Iterable[Path],
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
    tables : iterable of Path
        Further tables, ``tables/{kind}/{model}.csv``. Those of the kind ``verdicts`` say which checkpoints
        are sound: a model that has one is judged by these alone, in all tables.
    checkpoints : Path
        The folder of digests of weights, ``{model}/{revision}.tensors.csv``.
    text_digest : str
    """
    rows, is_sound = read_tables(tables)
    layers = read_layers(left_out, ("model", "estimator"), is_sound)
    read = {(row["model"], row["revision"]) for of in rows.values() for row in of}
    read |= {(model, revision) for (model, _), of in layers.items() for revision in of}
    files = {f"{m}@{r}": checkpoints / m / f"{r}.tensors.csv" for m, r in sorted(read)}
    files |= {f"{_kind(path)}/{path.stem}": path for path in tables}
    return Evidence(
        models={each["name"]: EvidenceModel(**each) for each in models},
        values={(model, name): by_step(of) for (model, name), of in layers.items()},
        tables=rows,
        suspect_above=suspect_above,
        digests={
            "text": text_digest,
            **{name: sha256_of(file) for name, file in files.items() if file.exists()},
        },
    )


IsSound = Callable[[str, str], bool]
Layers = dict[int, Row]  # rows of a table by layer


def read_tables(paths: Iterable[Path]) -> tuple[dict[str, list[Row]], IsSound]:
    """Read tables of sound checkpoints by kind, and which model at which revision is sound."""
    rows: dict[str, list[Row]] = {}
    for path in paths:
        rows.setdefault(_kind(path), []).extend(_rows(path))
    shown = {(r["model"], r["revision"]): r["shown"] == "yes" for r in rows.get("verdicts", ())}
    judged = {model for model, _ in shown}

    def is_sound(model: str, revision: str) -> bool:
        return model not in judged or shown.get((model, revision), False)

    sound = {
        kind: [row for row in of if is_sound(row["model"], row["revision"])]
        for kind, of in rows.items()
    }
    return sound, is_sound


def read_layers(
    paths: Iterable[Path], by: Sequence[str], is_sound: IsSound
) -> dict[tuple[str, ...], dict[str, Layers]]:
    """Read rows of layers, without averages, from tables of left-out values: by some columns and revision."""
    found: dict[tuple[str, ...], dict[str, Layers]] = {}
    for row in (row for path in paths for row in _rows(path)):
        if row["layer"].isdigit() and is_sound(row["model"], row["revision"]):
            of_key = found.setdefault(tuple(row[column] for column in by), {})
            of_key.setdefault(row["revision"], {})[int(row["layer"])] = row
    return found


def by_step(revisions: Mapping[str, Layers]) -> list[LayerValues]:
    """Put together the layers of each checkpoint."""
    found = []
    for revision, layers in revisions.items():
        rows = [layers[layer] for layer in sorted(layers)]
        numbers = _numbers(rows, *VALUES, "near_duplicates", "n")
        step = rows[0]["step"]
        found.append(
            LayerValues(
                revision,
                int(step) if step else None,
                rows[0]["selection"],
                layers=tuple(sorted(layers)),
                values=numbers[:, :-2],
                near_duplicates=tuple(numbers[:, -2].tolist()),
                n=float(numbers[:, -1].mean()),
            )
        )
    return sorted(found, key=lambda each: each.step or 0)


def _numbers(rows: Sequence[Row], *columns: str) -> np.ndarray:
    return np.array([[float(row[column] or "nan") for column in columns] for row in rows])


def _rows(path: Path) -> list[Row]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _kind(path: Path) -> str:
    """Of the last checkpoints alone, a table is of the same kind."""
    return path.parent.name.removeprefix("last_")
