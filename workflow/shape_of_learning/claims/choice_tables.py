"""The table of what is measured of checkpoints for all specifications."""

from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass

from shape_of_learning.claims.choices import ROW_CHOICES, Rows
from shape_of_learning.metrics.measurements import LEFT_OUT_COLUMNS, Estimate

AFTER, BEFORE = LAST_LAYERS = ("after_final_norm", "before_final_norm")
# Of a checkpoint: rows, layer and estimator of each value, and what intervals come from.
COLUMNS = ("revision", *ROW_CHOICES, "last_layer", "estimator", *LEFT_OUT_COLUMNS)
KEYS = len(COLUMNS) - len(LEFT_OUT_COLUMNS)  # that say whose values they are


@dataclass(frozen=True)
class Place:
    """Where a value belongs, besides its model and layer.

    Attributes
    ----------
    revision : str
    rows : Rows
    last_layer : {"after_final_norm", "before_final_norm"}
        Which state the last layer is; layers below are written once, as ``after_final_norm``.
    estimator : str
        With its parameters, where these are not the run's.
    """

    revision: str
    rows: Rows
    last_layer: str
    estimator: str


def choice_rows(
    place: Place, layers: Iterable[tuple[int, Estimate]]
) -> Iterator[tuple[object, ...]]:
    """Rows of the table, with `COLUMNS`, one per layer."""
    for layer, estimate in layers:
        *numbers, left_out = astuple(estimate)
        rows = astuple(place.rows)
        yield (
            *(place.revision, *rows, place.last_layer, place.estimator),
            *(layer, *numbers, *left_out),
        )
