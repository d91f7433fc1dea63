"""The rows of a figure: values by layer, or their averages over layers."""

import logging
from collections.abc import Sequence

import pandas as pd

from shape_of_learning.figures.inputs import DrawnMeasure, DrawnModel
from shape_of_learning.figures.table_reader import Table
from shape_of_learning.metrics.table_columns import AVERAGED_LAYERS

logger = logging.getLogger(__name__)

CURVE_POINT = ["model", "revision", "estimator"]
AVERAGED_LAYERS_IN_WORDS = {
    "block_outputs": "Averaged are the outputs of all blocks, without the embedding output.",
    "all_layers": "Averaged are the embedding output and the outputs of all blocks.",
}


def by_layer(estimates: Table, measures: Sequence[DrawnMeasure]) -> pd.DataFrame:
    """Keep the rows of layers.

    Returns
    -------
    pandas.DataFrame
        Columns of :data:`~shape_of_learning.figures.table_reader.ESTIMATES` and the boolean ``suspect``:
        whether more vectors have a near-duplicate than the measure's conditions allow.
    """
    return _layers(estimates, measures, first=0)


def over_layers(
    estimates: Table, measures: Sequence[DrawnMeasure], average_over: str = "block_outputs"
) -> pd.DataFrame:
    """Keep the averages over layers, and count what went into them.

    Parameters
    ----------
    estimates : Table
        With the rows of layers, too.
    measures : sequence of DrawnMeasure
    average_over : {"block_outputs", "all_layers"}
        What the averages are of: layers 1 to L, or 0 to L. Layer 0 is a function of the token alone in models
        that do not add positions to the embeddings.

    Returns
    -------
    pandas.DataFrame
        As :func:`by_layer`, without ``layer`` and ``depth`` and with ``layers`` (averaged),
        ``layers_left_out`` (undefined ones) and ``suspect_layers``. An average is ``suspect`` if any of its
        layers is.
    """
    layers = _layers(estimates, measures, first=AVERAGED_LAYERS[average_over])
    defined = layers["value"].notna()
    counts = layers.assign(
        layers=defined, layers_left_out=~defined, suspect_layers=defined & layers["suspect"]
    )
    counted = ["layers", "layers_left_out", "suspect_layers"]
    counts = counts.groupby(CURVE_POINT, sort=False)[counted].sum().reset_index()
    averages = estimates.rows[estimates.rows["layer"].isna()].drop(columns=["layer", "depth"])
    table = averages.merge(counts, how="left", on=CURVE_POINT)
    return table.assign(suspect=table["suspect_layers"] > 0)


def uneven_averages(table: pd.DataFrame, measures: Sequence[DrawnMeasure]) -> list[str]:
    """Say which averages lack layers, since they do not compare with those of all.

    Parameters
    ----------
    table : pandas.DataFrame
        From :func:`over_layers`, with labels.
    measures : sequence of DrawnMeasure

    Returns
    -------
    list of str
        A sentence for each measure of which one does, such as "TwoNN is undefined in some layers, which are
        left out of the average: A 2 of 9 points, up to 3 of 24 layers.".
    """
    sentences = []
    for measure in measures:
        parts = []
        rows = table[(table["estimator"] == measure.name) & table["value"].notna()]
        for label, own in rows.groupby("label", sort=False):
            lacking = own[own["layers_left_out"] > 0]
            if lacking.empty:
                continue
            most = lacking.loc[lacking["layers_left_out"].idxmax()]
            parts.append(
                f"{label} {len(lacking):,} of {len(own):,} points, up to {most['layers_left_out']} of "
                f"{most['layers'] + most['layers_left_out']} layers"
            )
        if parts:
            sentences.append(
                f"{measure.label} is undefined in some layers, which are left out of the average: "
                f"{'; '.join(parts)}."
            )
    return sentences


def with_labels(table: pd.DataFrame, models: Sequence[DrawnModel]) -> pd.DataFrame:
    """Order by model as given, then by step, and add the column ``label`` after ``model``."""
    labels = {model.name: model.label for model in models}
    order = {name: place for place, name in enumerate(labels)}
    table = table.sort_values("step", kind="stable")
    table = table.sort_values("model", key=lambda names: names.map(order), kind="stable")
    table.insert(1, "label", table["model"].map(labels))
    return table.reset_index(drop=True)


def _layers(estimates: Table, measures: Sequence[DrawnMeasure], first: int) -> pd.DataFrame:
    rows = estimates.rows[estimates.rows["layer"].ge(first).fillna(value=False)]
    for row in rows[rows["value"].isna()].itertuples():
        logger.info(
            "%s %s, layer %d: %s is undefined, a gap in the line or left out of the average",
            row.model,
            row.revision,
            row.layer,
            row.estimator,
        )
    allowed = {measure.name: measure.suspect_above for measure in measures}
    above = rows["near_duplicates"] > rows["estimator"].map(allowed).astype("float64")
    return rows.assign(suspect=above)
