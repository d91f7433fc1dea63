"""Measure all layers of a checkpoint while its hidden states are in memory."""

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
        Number of layers that are measured at a time. Each has one thread, so that numbers do not depend on `threads`.
    places : sequence of (int, str)
        Layers, and the state of the last one: :data:`.AFTER` (the default, for all layers) or :data:`.BEFORE`.

    Yields
    ------
    layer, last_layer, part, family, rows
        In the order of the places, then of :func:`measure_parts`.
    """
    places = places or [(layer, AFTER) for layer in range(states.layers + 1)]
    if any(part.drops_massive_tokens for part in parts):
        _ = states.massive  # computed once, before threads share the states
    with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
        results = pool.map(lambda place: list(measure_parts(states, parts, *place)), places)
        for (layer, last_layer), layer_results in zip(places, results, strict=True):
            logger.info("layer %d is measured", layer)
            for part, family, rows in layer_results:
                yield layer, last_layer, part, family, rows
