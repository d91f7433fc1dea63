"""How much memory and time changing blocks of a decoder takes; units are those of plan/resources.py."""

from collections.abc import Mapping
from typing import Any

from shape_of_learning.plan.resources import (
    CORE_FLOPS,
    GPU_FLOPS,
    MB,
    Work,
    forward_memory_mb,
)


def editing_memory_mb(work: Work, editing: Mapping[str, Any]) -> float:
    """Memory of changing blocks: hidden states of the text that maps are fitted on, and a distillation.

    A distillation of all parameters has a second copy of the weights, their gradients and two moments, in
    four bytes each; activations are as in a pretraining. A fit has some matrices of d^2.
    """
    tokens = work.tokens / work.windows
    states = editing["fitting_windows"] * tokens * (work.layers + 1) * work.hidden_size * 4 / MB
    fit = 8 * work.hidden_size**2 * 8 / MB
    values = 34 * work.layers * work.hidden_size
    activations = editing["distillation_windows"] * tokens * values * 4 / MB
    copies = 4 if "all_distilled" in editing["kinds"] else 0
    distilling = copies * work.weights * 4 / MB + activations
    return forward_memory_mb(work, 1) + states + max(fit, distilling)


def editing_minutes(work: Work, editing: Mapping[str, Any], *, on_gpu: bool) -> float:
    """Time of all evaluations and distillations, as many as there are orders, kinds and numbers of blocks.

    An update takes six operations per weight and token. A fit has a product of all vectors with themselves
    and a few times the cube of the width.
    """
    tokens = work.tokens / work.windows
    sets = len(editing["orders"]) * editing["most_blocks"] + work.layers
    distilled = sum(kind.endswith("distilled") for kind in editing["kinds"])
    shown = editing["distillation_steps"] * editing["distillation_windows"]
    passes = 2 * len(editing["kinds"]) * editing["evaluation_windows"] + 6 * distilled * shown
    operations = sets * passes * tokens * work.weights
    fitted = editing["fitting_windows"] * tokens + 10 * work.hidden_size
    fits = 4 * work.layers * fitted * work.hidden_size**2 / CORE_FLOPS
    return (operations / (GPU_FLOPS if on_gpu else CORE_FLOPS) + fits) / 60
