"""The evidence that measured values make under each specification."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path

import numpy as np

from shape_of_learning.claims.choice_tables import AFTER, BEFORE, COLUMNS, KEYS, Place
from shape_of_learning.claims.choices import Rows
from shape_of_learning.claims.evidence import Evidence, LayerValues
from shape_of_learning.claims.evidence_tables import VERDICTS
from shape_of_learning.errors import InputError
from shape_of_learning.storage.csv_table import read_rows


@dataclass(frozen=True)
class _Measured:
    """One estimator at one checkpoint: of each layer 17 values, n and the share of near-duplicates."""

    values: dict[int, list[float]] = field(default_factory=dict)
    near_duplicates: dict[int, float] = field(default_factory=dict)
    n: dict[int, float] = field(default_factory=dict)


class MeasuredChoices:
    """Values of all models for all specifications, from the tables of their jobs.

    Parameters
    ----------
    frame : Evidence
        What is known besides, from :func:`.read_evidence`; of its table ``verdicts``, sound checkpoints.
    tables : mapping of str to sequence of Path
        Of each model that was measured.
    steps : mapping of str to mapping
        Step and tokens of each model's revisions, in order.
    judged : collection of str
        Models whose checkpoints were judged: of these, only sound ones count.

    Raises
    ------
    InputError
        If a table is damaged.
    """

    def __init__(
        self,
        frame: Evidence,
        tables: Mapping[str, Sequence[Path]],
        steps: Mapping[str, Mapping[str, Sequence[int | None]]],
        judged: Collection[str],
    ):
        self._frame = frame
        sound = {(row["model"], row["revision"]) for row in frame.tables.get(VERDICTS, ())}
        self._steps = {
            model: {
                name: step
                for name, step in of.items()
                if model not in judged or (model, name) in sound
            }
            for model, of in steps.items()
        }
        self._measured: dict[tuple[str, Place], _Measured] = {}
        for model, paths in tables.items():
            for path in paths:
                self._read(model, path)

    def _read(self, model: str, path: Path) -> None:
        try:
            for row in read_rows(path, COLUMNS):
                revision, *chosen, last_layer, estimator = row[:KEYS]
                place = Place(revision, Rows(*chosen), last_layer, estimator)
                layer, value, _, n, _, near, _, *without = (
                    float(cell or "nan") for cell in row[KEYS:]
                )
                found = self._measured.setdefault((model, place), _Measured())
                found.values[int(layer)] = [value, *without]
                found.near_duplicates[int(layer)], found.n[int(layer)] = near, n
        except ValueError as error:
            raise InputError(f"{path}: {error}; delete it and run again") from error

    def evidence(self, rows: Rows, last_layer: str, estimators: Iterable[str]) -> Evidence:
        """Put together what one specification says.

        Parameters
        ----------
        rows : Rows
        last_layer : {"after_final_norm", "before_final_norm"}
        estimators : iterable of str
            By the names of the tables.

        Returns
        -------
        Evidence
            A checkpoint at which an estimator is not measured is absent from it.
        """
        wanted = tuple(estimators)
        values = {
            (model, estimator): found
            for model in self._steps
            for estimator in wanted
            if (found := self._curve(model, rows, last_layer, estimator))
        }
        return replace(self._frame, values=values)

    def _curve(
        self, model: str, rows: Rows, last_layer: str, estimator: str
    ) -> tuple[LayerValues, ...]:
        curve = []
        for revision, (step, tokens) in self._steps[model].items():
            found = self._measured.get((model, Place(revision, rows, AFTER, estimator)))
            if found is None:
                continue
            whole = [found]
            if last_layer == BEFORE:
                before = self._measured.get((model, Place(revision, rows, BEFORE, estimator)))
                whole += [before] if before is not None else []
            parts = {
                name: {k: v for each in whole for k, v in getattr(each, name).items()}
                for name in ("values", "near_duplicates", "n")
            }
            layers = tuple(sorted(parts["values"]))
            curve.append(
                LayerValues(
                    revision=revision,
                    step=step,
                    tokens=tokens,
                    estimator=estimator,
                    selection="+".join(astuple(rows)),
                    layers=layers,
                    values=np.array([parts["values"][layer] for layer in layers]),
                    near_duplicates=tuple(parts["near_duplicates"][layer] for layer in layers),
                    n=float(np.mean(list(parts["n"].values()))),
                )
            )
        return tuple(curve)
