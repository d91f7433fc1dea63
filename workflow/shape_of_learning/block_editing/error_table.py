"""How the errors of the fitted maps are spread over tokens."""

from collections.abc import Sequence

from shape_of_learning.block_editing.fitting import FittedBlock
from shape_of_learning.estimators.linearity import QUANTILES, error_summary

FIT_ERROR_COLUMNS = (
    *("model", "revision", "layer", "depth", "tokens", "linearity", "share_of_worst_tokens"),
    *(f"quantile_{quantile:g}" for quantile in QUANTILES),
)


def fit_error_rows(model: str, revision: str, fitted: Sequence[FittedBlock]) -> list[tuple]:
    """One row per block, of the columns :data:`FIT_ERROR_COLUMNS`.

    `layer` is the number of the block from 1, and `depth` its share of them; the quantiles are those of the
    errors of all tokens, and `share_of_worst_tokens` is what the tokens with the largest errors, one in a
    hundred, have of the sum of their squares.
    """
    return [
        (model, revision, number, number / len(fitted), *_summary(block))
        for number, block in enumerate(fitted, start=1)
    ]


def _summary(block: FittedBlock) -> tuple:
    summary = error_summary(block.errors)
    return len(block.errors), block.linearity, summary.worst_share, *summary.quantiles.tolist()
