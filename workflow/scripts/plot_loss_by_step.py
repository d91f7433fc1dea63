"""Rule loss_by_step: cross-entropy by training step, with the checkpoints that it gives away."""

from shape_of_learning.figures.command import add_verdicts_argument, figure_parser
from shape_of_learning.figures.output import produce
from shape_of_learning.figures.training_loss import PREDICTED, draw_loss_by_step
from shape_of_learning.script_arguments.running import run


def main(**arguments: object) -> None:
    """Draw the figure; the arguments are those of the command line, by name."""
    produce(draw_loss_by_step, **arguments)


if __name__ == "__main__":
    parser = figure_parser(__doc__, measurements=False)
    add_verdicts_argument(parser, required=True)
    parser.add_argument(
        "--roles",
        nargs="+",
        default=(),
        choices=tuple(PREDICTED),
        metavar="ROLE",
        help="one per model, decoder or encoder: each has a panel (default: all share one)",
    )
    run(main, parser)
