"""How far a training has come, as an x axis: in steps, or in tokens where batch sizes differ."""

import pandas as pd

from shape_of_learning.errors import InputError

LABELS = {"step": "Training step", "tokens": "Training tokens"}
SAME = 1.01  # ratio of batch sizes; some models state their tokens rounded


def progress_column(table: pd.DataFrame, progress: str) -> str:
    """Choose the column that the x axis counts.

    Parameters
    ----------
    table : pandas.DataFrame
        With the columns ``model``, ``step`` and ``tokens``.
    progress : {"auto", "step", "tokens"}
        Key ``figures.progress``; ``auto`` is tokens where batch sizes differ and all checkpoints state them.

    Returns
    -------
    {"step", "tokens"}

    Raises
    ------
    InputError
        If some checkpoint does not state what was asked for.
    """
    if progress == "auto":
        known = table["tokens"].notna().all()
        return "tokens" if known and _batch_sizes_differ(table) else "step"
    lacking = table.loc[table[progress].isna(), "model"]
    if not lacking.empty:
        raise InputError(
            f"key `figures.progress` asks for {progress}, which checkpoints of {lacking.iloc[0]} do not "
            "state; set it to auto, or complete the model's entry"
        )
    return progress


def on_progress(table: pd.DataFrame, column: str) -> str:
    """Say what a reader must know of an x axis of steps or tokens."""
    sentences = []
    if _batch_sizes_differ(table):
        words = {
            "tokens": "The x axis counts tokens, since the models' batch sizes differ.",
            "step": "The models' batch sizes differ, so equal steps are not equal tokens.",
        }
        sentences.append(words[column])
    if (table[column] == 0).any() and (table[column] > 0).any():
        sentences.append("Left of the axis break: before training.")
    return " ".join(sentences)


def _batch_sizes_differ(table: pd.DataFrame) -> bool:
    trained = table[(table["step"] > 0) & table["tokens"].notna()]
    per_step = trained["tokens"].astype("float64") / trained["step"].astype("float64")
    sizes = per_step.groupby(trained["model"]).median()
    return len(sizes) > 0 and bool(sizes.max() > SAME * sizes.min())
