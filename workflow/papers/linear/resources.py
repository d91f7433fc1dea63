"""Estimate the memory and the time of the job that changes the blocks of a model."""

from papers.linear.settings import BlockEditing
from shape_of_learning.plan.entries import Entry
from shape_of_learning.plan.resources import (
    Needs,
    Work,
    count_window_tokens,
    estimate_forward,
    estimate_updates,
)
from shape_of_learning.plan.settings import Settings


def estimate_editing(model: Entry, settings: Settings, threads: int) -> Needs:
    """Estimate the needs of a job that measures all orders, kinds and numbers of changed blocks."""
    editing = settings.find_section(BlockEditing)
    window_tokens = count_window_tokens(settings)
    sets = len(editing.orders) * editing.most_blocks + model.shape.layers
    distillations = sum(kind.endswith("distilled") for kind in editing.kinds)
    training_windows = distillations * editing.distillation_steps * editing.distillation_windows
    # An evaluation takes a third of the time of an update.
    evaluation_windows = len(editing.kinds) * editing.evaluation_windows // 3
    windows = sets * (evaluation_windows + training_windows) + editing.fitting_windows
    work = Work.make_work(model, settings, editing.fitting_windows * window_tokens)
    memory, minutes = estimate_updates(
        work, editing.distillation_windows * window_tokens, windows * window_tokens, threads
    )
    return Needs(work.states_mb + estimate_forward(model, settings, 1).memory + memory, minutes)
