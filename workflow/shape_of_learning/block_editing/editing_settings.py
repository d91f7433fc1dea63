"""What is done to blocks; section `block_editing` of the configuration."""

import json
from dataclasses import dataclass

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
        Of :data:`~shape_of_learning.block_editing.edits.ORDERS`.
    kinds : list of str
        Of :data:`~shape_of_learning.block_editing.edits.KINDS`.
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

    @classmethod
    def from_json(cls, text: str) -> "BlockEditing":
        """Read the argument of a script."""
        return cls(**json.loads(text))


def check_blocks(most_blocks: int, role: str, layers: int, where: str) -> None:
    """Refuse a model that has no blocks to change, or too few.

    Parameters
    ----------
    most_blocks : int
        Key `block_editing.most_blocks`.
    role : str
        ``"decoder"`` or ``"encoder"``.
    layers : int
        Blocks that the model has.
    where : str
        How an error names it.

    Raises
    ------
    InputError
        One sentence that names the key.
    """
    if role != "decoder":
        raise InputError(
            f"{where} is an {role}, but blocks are changed of decoders only, which predict the next token; "
            "remove it from the figures that draw changed blocks"
        )
    if most_blocks > layers:
        raise InputError(
            f"configuration key `block_editing.most_blocks` is {most_blocks}, but {where} has {layers} "
            "blocks; lower it"
        )
