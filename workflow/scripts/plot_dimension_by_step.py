"""Rule figure_4: intrinsic dimension averaged over layers, by training step, of several models."""

from shape_of_learning.figures.command import (
    add_curve_arguments,
    add_verdicts_argument,
    figure_parser,
)
from shape_of_learning.figures.output import produce
from shape_of_learning.figures.training_curves import draw_dimension_by_step
from shape_of_learning.script_arguments.running import run


def main(estimator: str, **arguments: object) -> None:
    """Draw the figure; the arguments are those of the command line, by name."""
    produce(draw_dimension_by_step, estimators=[estimator], **arguments)


if __name__ == "__main__":
    parser = figure_parser(__doc__)
    add_verdicts_argument(parser)
    parser.add_argument("--estimator", default="two_nn", help="default: %(default)s")
    add_curve_arguments(parser)
    run(main, parser)
