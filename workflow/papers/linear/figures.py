"""The figures of "Your Transformer is Secretly Linear"; paper.yaml says what each of them shows."""

from shape_of_learning.figures.changed_blocks import draw_edits
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.output import Drawing
from shape_of_learning.figures.token_errors import draw_token_errors


def perplexity_of_changed_blocks(inputs: FigureInputs) -> Drawing:
    """Figures 6 and 7: perplexity against the number of blocks that are dropped, replaced or distilled."""
    return draw_edits(inputs)


def errors_of_tokens(inputs: FigureInputs) -> Drawing:
    """Figure 9: how the errors of the affine maps are spread over tokens, by block."""
    return draw_token_errors(inputs)
