"""Section 2.3: anisotropy beside average cosine over relative depth, centred and not."""

from shape_of_learning.figures.command import figure_parser
from shape_of_learning.figures.output import produce
from shape_of_learning.figures.profiles import draw_anisotropy_measures
from shape_of_learning.script_arguments.running import run


def main(**arguments: object) -> None:
    """Draw the figure; the arguments are those of the command line, by name."""
    produce(draw_anisotropy_measures, **arguments)


if __name__ == "__main__":
    run(main, figure_parser(__doc__))
