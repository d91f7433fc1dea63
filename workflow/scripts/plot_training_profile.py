"""Rules figure_2 and figure_3: one model's anisotropy profile at each training step."""

from shape_of_learning.figures.command import add_verdicts_argument, figure_parser
from shape_of_learning.figures.output import produce
from shape_of_learning.figures.training_profile import draw_training_profile
from shape_of_learning.script_arguments.running import run


def main(**arguments: object) -> None:
    """Draw the figure; the arguments are those of the command line, by name."""
    produce(draw_training_profile, **arguments)


if __name__ == "__main__":
    parser = figure_parser(__doc__)
    add_verdicts_argument(parser)
    parser.add_argument("--estimator", default="anisotropy", help="default: %(default)s")
    run(main, parser)
