"""What is done to blocks; section `block_editing` of the configuration."""

from dataclasses import dataclass

from shape_of_learning.checkpoints.shapes import Shape
from shape_of_learning.errors import InputError


@dataclass(frozen=True)
class BlockEditing:
    """How blocks are changed, and on how much text.

    Attributes
    ----------
    fitting_windows, evaluation_windows : int
        Windows of the training text that maps are fitted on, and of the held-out end that perplexity is taken
        on.
    most_blocks : int
        How many blocks are changed at most.
    orders : list of str
        Of :data:`~shape_of_learning.blocks.edits.ORDERS`.
    kinds : list of str
        Of :data:`~shape_of_learning.blocks.edits.KINDS`.
    distillation_steps, distillation_windows : int
        Updates of a distillation, and windows of each.
    learning_rate : float
        Of a distillation, at its first update.
    """

    fitting_windows: int
    evaluation_windows: int
    most_blocks: int
    orders: list[str]
    kinds: list[str]
    distillation_steps: int
    distillation_windows: int
    learning_rate: float


def check_blocks(most_blocks: int, shape: Shape, model: str) -> None:
    """Refuse a model that has no blocks to change, or fewer than `block_editing.most_blocks`."""
    if shape.role != "decoder":
        raise InputError(
            f"model `{model}` is an {shape.role}, but blocks are changed of decoders only, which predict the "
            "next token; remove it from the figures that draw changed blocks"
        )
    if most_blocks > shape.layers:
        raise InputError(
            f"configuration key `block_editing.most_blocks` is {most_blocks}, but model `{model}` has "
            f"{shape.layers} blocks; lower it"
        )
