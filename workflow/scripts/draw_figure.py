"""Draw one figure of a paper."""

import logging
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from shape_of_learning.corpus.changes import read_losses
from shape_of_learning.figures.captions import join_sentences
from shape_of_learning.figures.inputs import DrawnMeasure, DrawnModel, FigureInputs, read_tables
from shape_of_learning.figures.output import save
from shape_of_learning.figures.style import use_theme
from shape_of_learning.figures.tables import join_seeds
from shape_of_learning.job import run_job

logger = logging.getLogger("shape_of_learning")


def main(
    function: str,
    models: Sequence[Mapping[str, Any]],
    measures: Sequence[Mapping[str, Any]],
    options: Mapping[str, Any],
    words: Mapping[str, str],
    tables: Mapping[str, Sequence[Path]],
    output: Mapping[str, Path],
) -> None:
    """Read the tables, draw and save."""
    inputs = FigureInputs(
        models=[DrawnModel(**model) for model in models],
        measures=[DrawnMeasure(**measure) for measure in measures],
        tables=read_tables(tables),
        **words,
    )
    inputs = join_seeds(inputs)
    module, _, name = function.partition(":")
    with use_theme():
        drawing = getattr(import_module(module), name)(inputs, **options)
        save(drawing, **output)
    logger.info("%s", drawing.caption)


def record_of_text(figure: str, text: str) -> Path:
    """Find what cleaning has written of the text of this run: no input, so that tables alone make a figure."""
    return Path(figure).parents[1] / "corpus" / text / "alphabet.json"


if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        figure, output = dict(snakemake.params.figure), snakemake.output
        losses = read_losses(record_of_text(output.pdf, snakemake.resources.text))
        words = dict(figure["words"])
        figure["words"] = words | {"caption": join_sentences(words["caption"], losses)}
        main(
            tables=dict(snakemake.input.items()),
            output={name: Path(path) for name, path in output.items()},
            **figure,
        )
