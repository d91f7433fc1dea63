"""Mean and standard deviation over batches, by layer or of the average over layers."""

import logging
from collections.abc import Sequence

import pandas as pd

from shape_of_learning.errors import InputError
from shape_of_learning.figures.inputs import DrawnModel
from shape_of_learning.figures.table_reader import Table

logger = logging.getLogger(__name__)

CHECKPOINT = ["model", "role", "revision", "step", "tokens"]
AVERAGED_LAYERS = {"block_outputs": 1, "all_layers": 0}  # the first layer that counts
AVERAGED_LAYERS_IN_WORDS = {
    "block_outputs": "Averaged are the outputs of all blocks, without the embedding output.",
    "all_layers": "Averaged are the embedding output and the outputs of all blocks.",
}


def by_layer(measurements: Table) -> pd.DataFrame:
    """Mean and standard deviation over batches, layer by layer.

    Returns
    -------
    pandas.DataFrame
        One row per checkpoint, estimator and layer: these columns, ``n_smallest``, ``n_largest``
        (vectors in a batch), ``batches`` (with a defined value), ``undefined_batches``, ``mean``
        over the defined batches and ``sd`` with the divisor ``batches - 1``. The mean is NaN where
        no batch is defined, the standard deviation where fewer than two are.
    """
    keys = [*CHECKPOINT, "estimator", "layer", "depth"]
    groups = measurements.rows.groupby(keys, dropna=False, sort=True)
    table = groups.agg(
        n_smallest=("n", "min"),
        n_largest=("n", "max"),
        batches=("value", "count"),
        undefined_batches=("value", "size"),
        mean=("value", "mean"),
        sd=("value", "std"),
    )
    table["undefined_batches"] -= table["batches"]
    _log_undefined(table[table["batches"] == 0].reset_index())
    return table.reset_index()


def over_layers(measurements: Table, average_over: str = "block_outputs") -> pd.DataFrame:
    """Average over layers within each batch index, then mean and standard deviation over these.

    Parameters
    ----------
    average_over : {"block_outputs", "all_layers"}
        Layers 1 to L, or 0 to L. Layer 0 is a function of the token alone in models that do not
        add positions to the embeddings.

    Returns
    -------
    pandas.DataFrame
        One row per checkpoint and estimator: these columns, ``n_smallest``, ``n_largest`` (vectors
        in a batch), ``batches``, ``layers`` (averaged), ``layers_left_out``, ``mean`` and ``sd``
        with the divisor ``batches - 1``.

    Raises
    ------
    InputError
        If a checkpoint lacks a layer that others of its model have, or a layer lacks a batch.

    Notes
    -----
    A layer with an undefined value in any batch is left out of that checkpoint's average, for all
    its batches, so that every batch averages the same layers.
    """
    rows = measurements.rows
    rows = rows[rows["layer"] >= AVERAGED_LAYERS[average_over]]
    if rows.empty:
        raise InputError(f"{measurements.source} has no layer above 0: measure the block outputs")
    layers_of = rows.groupby(["model", "estimator"])["layer"].nunique()
    table = []
    for key, group in rows.groupby([*CHECKPOINT, "estimator"], dropna=False, sort=False):
        named = dict(zip([*CHECKPOINT, "estimator"], key, strict=True))
        values = group.pivot(index="layer", columns="batch", values="value")
        expected = layers_of[named["model"], named["estimator"]]
        if values.shape[0] != expected or values.size != len(group):
            raise InputError(
                f"{measurements.source} is incomplete for {named['model']} {named['revision']}: "
                f"{named['estimator']} needs every batch of {expected} layers; gather it again"
            )
        undefined = values.isna().any(axis="columns")
        if undefined.any():
            left_out = ", ".join(str(layer) for layer in values.index[undefined])
            logger.info(
                "%s %s: %s is undefined at layer %s, left out of the average over layers",
                named["model"],
                named["revision"],
                named["estimator"],
                left_out,
            )
        per_batch = values[~undefined].mean(axis="index")
        table.append(
            named
            | {
                "n_smallest": group["n"].min(),
                "n_largest": group["n"].max(),
                "batches": int(per_batch.count()),
                "layers": int((~undefined).sum()),
                "layers_left_out": int(undefined.sum()),
                "mean": per_batch.mean(),
                "sd": per_batch.std(ddof=1),
            }
        )
    whole = dict.fromkeys(("step", "tokens", "n_smallest", "n_largest"), "Int64")
    return pd.DataFrame(table).astype(whole)


def with_labels(table: pd.DataFrame, models: Sequence[DrawnModel]) -> pd.DataFrame:
    """Order by model as given, then by step, and add the column ``label`` after ``model``."""
    labels = {model.name: model.label for model in models}
    order = {name: place for place, name in enumerate(labels)}
    table = table.sort_values("step", kind="stable")
    table = table.sort_values("model", key=lambda names: names.map(order), kind="stable")
    table.insert(1, "label", table["model"].map(labels))
    return table.reset_index(drop=True)


def _log_undefined(table: pd.DataFrame) -> None:
    for row in table.itertuples():
        logger.info(
            "%s %s, layer %d: %s is undefined in every batch, a gap in the line",
            row.model,
            row.revision,
            row.layer,
            row.estimator,
        )
