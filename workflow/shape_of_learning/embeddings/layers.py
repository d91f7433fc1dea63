"""All layers of a checkpoint measured at a time, while its hidden states are in memory."""

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from threadpoolctl import threadpool_limits

from shape_of_learning.metrics.measure import Part, measure_parts
from shape_of_learning.metrics.measure_entry import AFTER
from shape_of_learning.metrics.selections import HiddenStates
from shape_of_learning.metrics.tidy import TidyRow

logger = logging.getLogger(__name__)


def measure_layers(
    states: HiddenStates,
    parts: Sequence[Part],
    threads: int,
    places: Sequence[tuple[int, str]] = (),
) -> Iterator[tuple[int, str, Part, str, list[TidyRow]]]:
    """Measure several layers at a time.

    Parameters
    ----------
    states : HiddenStates
    parts : sequence of Part
    threads : int
        Each measures a layer, and starts no others, so that numbers do not depend on them.
    places : sequence of (int, str)
        Layers, and which state the last one is; by default all, after the final norm.

    Yields
    ------
    layer, last_layer, part, family, rows
        In the order of the places, then as :func:`measure_parts`.
    """
    places = places or [(layer, AFTER) for layer in range(states.layers + 1)]
    with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
        found = pool.map(lambda place: list(measure_parts(states, parts, *place)), places)
        for place, of_place in zip(places, found, strict=True):
            logger.info("layer %d is measured", place[0])
            yield from ((*place, *each) for each in of_place)
