"""One sample, measured as all specifications have it: each set of rows once."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from shape_of_learning.claims.choices import BEFORE, WHOLE, Rows
from shape_of_learning.metrics.measure import (
    HiddenStates,
    MeasuringProtocol,
    by_selection,
    measure_layer,
)
from shape_of_learning.metrics.measure_entry import FAMILIES, Measure
from shape_of_learning.metrics.selections import Selection, share_of_windows
from shape_of_learning.metrics.tidy import TidyRow

SMALLEST_BATCH = 3  # vectors


@dataclass(frozen=True)
class Part:
    """Measures of the same rows in batches of one size, and the choices that have these rows.

    Attributes
    ----------
    how : MeasuringProtocol
    measures : sequence of Measure
    choices : list of Rows
        Different ones may leave the same rows.
    """

    how: MeasuringProtocol
    measures: Sequence[Measure]
    choices: list[Rows] = field(default_factory=list)


def windows_of_choices(choices: Iterable[Rows], how: MeasuringProtocol) -> np.ndarray:
    """Numbers of the windows that any of some choices looks at, ascending."""
    return share_of_windows(how.groups, max(float(each.windows_share) for each in choices))


def parts_of_choices(
    rows: Mapping[str, np.ndarray],
    choices: Sequence[Rows],
    measures: Sequence[Measure],
    how: MeasuringProtocol,
) -> list[Part]:
    """Divide what is wanted of a sample into parts, each of which is measured once.

    Where fewer vectors are selected than a batch has, as of one vector per token type, all are one batch.
    Where there are not more than the neighbours that are searched, nothing is measured.

    Parameters
    ----------
    rows : mapping of str to ndarray
        What each row of a hidden state is, as of :class:`.HiddenStates`.
    choices : sequence of Rows
        All of one text.
    measures : sequence of Measure
    how : MeasuringProtocol
        Of the run.
    """
    parts: dict[tuple[bytes, int, tuple[str, ...]], Part] = {}
    for choice in choices:
        # With batches of another size, only what is taken of batches is another.
        is_own_size = choice.batch_share == choices[0].batch_share
        wanted = [each for each in measures if is_own_size or each.family not in WHOLE]
        size = max(SMALLEST_BATCH, round(float(choice.batch_share) * how.batch_vectors))
        chosen = Selection(
            choice.special_tokens,
            choice.first_token,
            choice.token_types,
            windows_share=float(choice.windows_share),
        )
        for selection, together in by_selection(wanted, chosen):
            kept = how.chosen(rows, selection)
            if len(kept) > how.neighbours:
                vectors = min(size, len(kept))
                own = replace(how, selection=selection, batch_vectors=vectors)
                key = kept.tobytes(), vectors, tuple(each.name for each in together)
                parts.setdefault(key, Part(own, together)).choices.append(choice)
    return list(parts.values())


def measure_choices(
    states: HiddenStates, parts: Iterable[Part], layer: int, last_layer: str
) -> Iterator[tuple[Rows, TidyRow]]:
    """Measure one layer, the last one as the state before or after the final norm, under all choices."""
    for part in parts:
        selection = replace(part.how.selection, before_final_norm=True)
        how = replace(part.how, selection=selection) if last_layer == BEFORE else part.how
        for family in FAMILIES:
            for row in measure_layer(states, layer, family, part.measures, how):
                if row.batch is None:
                    yield from ((choice, row) for choice in part.choices)
