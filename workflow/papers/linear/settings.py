"""The section `block_editing` of the configuration."""

from typing import Annotated, Literal, get_args

from pydantic import model_validator

from shape_of_learning.plan.settings import Count, nonempty_unique
from shape_of_learning.training.recipe import Positive, TenThousand
from shape_of_learning.validation import Section, make_validation_error

Order = Literal["most_linear_first", "least_linear_first", "smallest_contribution_first", "alone"]
Change = Literal["dropped", "replaced", "maps_distilled", "all_distilled"]


class BlockEditing(Section):
    """The changes of blocks of decoders.

    Attributes
    ----------
    fitting_windows
        windows on which affine maps are fitted to blocks, from the text without its held-out end (the last
        5 %, on which local models are not pretrained); their length is `sampling.window_characters`. They
        must have more tokens than a hidden state has coordinates, and should have several times as many
    evaluation_windows
        windows of the held-out end, on which perplexity is measured
    most_blocks
        the largest number of blocks that are changed together; every number from 0 to it is measured
    orders
        the orders in which blocks are changed: `most_linear_first`, `least_linear_first`,
        `smallest_contribution_first` (median norm of what a block adds, over that of its output), and
        `alone`, each by itself
    kinds
        the kinds of change: `dropped`, `replaced` by the affine map, and replaced and distilled: the maps
        (`maps_distilled`) or all parameters (`all_distilled`), which takes five times the memory of the
        weights
    distillation_steps
        updates of a distillation by Adam
    distillation_windows
        windows of each update, of those that maps are fitted on
    learning_rate
        at the start of a distillation; it falls to zero
    """

    fitting_windows: Count = 512
    evaluation_windows: Count = 256
    most_blocks: TenThousand = 8
    orders: Annotated[list[Order], *nonempty_unique] = [*get_args(Order)]
    kinds: Annotated[list[Change], *nonempty_unique] = [*get_args(Change)]
    distillation_steps: Count = 200
    distillation_windows: Count = 8
    learning_rate: Positive = 0.0001

    @model_validator(mode="after")
    def _check_windows(self) -> "BlockEditing":
        if self.distillation_windows > self.fitting_windows:
            raise make_validation_error(
                f"draws {self.distillation_windows} windows for an update (`distillation_windows`) of "
                f"{self.fitting_windows} (`fitting_windows`); lower the former"
            )
        return self
