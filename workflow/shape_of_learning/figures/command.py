"""The arguments that every figure's script takes."""

import argparse
from pathlib import Path

from shape_of_learning.figures.output import DEFAULT_PROTOCOL


def figure_parser(description: str, *, measurements: bool = True) -> argparse.ArgumentParser:
    """Parser of the arguments that :func:`~shape_of_learning.figures.output.produce` takes.

    Parameters
    ----------
    description : str
    measurements : bool
        Whether the figure draws measurements of hidden states. If not, there is no argument
        ``--measurements``, and the caption says nothing of the last layer by default.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    if measurements:
        parser.add_argument(
            "--measurements", type=Path, nargs="+", required=True, metavar="CSV", help="tidy tables"
        )
    parser.add_argument("--models", nargs="+", required=True, metavar="NAME", help="in order")
    parser.add_argument(
        "--labels", nargs="+", default=(), metavar="LABEL", help="as printed (default: the names)"
    )
    parser.add_argument(
        "--families", nargs="+", default=(), metavar="FAMILY", help="models of one share a colour"
    )
    parser.add_argument(
        "--protocol",
        default=DEFAULT_PROTOCOL if measurements else "",
        metavar="TEXT",
        help="closing sentences of the caption: what the table does not say "
        "(default: '%(default)s')",
    )
    for kind in ("pdf", "png", "csv"):
        parser.add_argument(f"--{kind}", type=Path, required=True, metavar="OUT")
    return parser


def add_verdicts_argument(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """Add what figures by training step take: which checkpoints are shown, and why not."""
    parser.add_argument(
        "--verdicts",
        type=Path,
        nargs="+",
        required=required,
        metavar="CSV",
        help="verdicts on the checkpoints" + ("" if required else " (default: all are shown)"),
    )


def add_curve_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what figures of training curves take besides."""
    parser.add_argument(
        "--average-over",
        choices=("block_outputs", "all_layers"),
        default="block_outputs",
        help="layers 1 to L, or 0 to L (default: %(default)s)",
    )
    parser.add_argument(
        "--progress",
        choices=("step", "tokens"),
        default="step",
        help="what the x axis counts (default: %(default)s)",
    )
