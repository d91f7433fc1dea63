"""Memory and minutes that a job asks for which changes the blocks of a model."""

from collections.abc import Mapping
from typing import Any

from shape_of_learning.plan.entries import Entry
from shape_of_learning.plan.resources import (
    Needs,
    Work,
    count_window_tokens,
    estimate_updates,
    forward,
)


def estimate_editing(model: Entry, settings: Mapping[str, Any], threads: int) -> Needs:
    """Blocks that are changed, by as many orders, kinds and numbers of blocks as are asked for."""
    given, window = settings["block_editing"], count_window_tokens(settings)
    sets = len(given["orders"]) * given["most_blocks"] + model.shape.layers
    distilled = sum(kind.endswith("distilled") for kind in given["kinds"])
    shown = distilled * given["distillation_steps"] * given["distillation_windows"]
    # To evaluate takes a third of what an update does.
    windows = sets * (len(given["kinds"]) * given["evaluation_windows"] // 3 + shown)
    work = Work.make_work(model, settings, given["fitting_windows"] * window)
    tokens = (windows + given["fitting_windows"]) * window
    memory, minutes = estimate_updates(
        work, given["distillation_windows"] * window, tokens, threads
    )
    return Needs(work.states_mb + forward(model, settings, 1).memory + memory, minutes)
