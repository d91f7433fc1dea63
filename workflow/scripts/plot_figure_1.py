"""Rule figure_1: anisotropy profiles over relative depth, decoders beside encoders."""

from shape_of_learning.figures.command import figure_parser
from shape_of_learning.figures.output import produce
from shape_of_learning.figures.profiles import draw_profiles_by_role
from shape_of_learning.script_arguments.running import run


def main(**arguments: object) -> None:
    """Draw the figure; the arguments are those of the command line, by name."""
    produce(draw_profiles_by_role, **arguments)


if __name__ == "__main__":
    parser = figure_parser(__doc__)
    parser.add_argument("--estimator", default="anisotropy", help="default: %(default)s")
    run(main, parser)
