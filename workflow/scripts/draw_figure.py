"""Draw one figure of a paper."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from shape_of_learning.corpus.changes import read_removed_text
from shape_of_learning.figures.captions import join_sentences
from shape_of_learning.figures.inputs import FigureInputs, read_tables
from shape_of_learning.figures.job import FigureJob
from shape_of_learning.figures.output import save
from shape_of_learning.figures.style import use_theme
from shape_of_learning.figures.tables import join_seeds
from shape_of_learning.job import run_job

logger = logging.getLogger("shape_of_learning")


def main(
    job: FigureJob, tables: Mapping[str, Sequence[Path]], alphabet: Path, output: Mapping[str, Path]
) -> None:
    """Read the tables, draw the figure and save it.

    The caption also states the losses of the text by cleaning, which the file `alphabet` records.
    """
    inputs = FigureInputs(
        models=job.models,
        measures=job.measures,
        caption=join_sentences(job.caption, read_removed_text(alphabet)),
        tables=read_tables(tables),
        note=job.note,
        sample=job.sample,
    )
    module, _, name = job.function.partition(":")
    with use_theme():
        drawing = getattr(import_module(module), name)(join_seeds(inputs), **job.options)
        drawing = replace(drawing, caption=join_sentences(drawing.caption, job.protocol))
        save(drawing, **output)
    logger.info("%s", drawing.caption)


if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        output = {name: Path(path) for name, path in snakemake.output.items()}
        # The alphabet is no input of the rule, so that a figure can be drawn from tables alone.
        corpus = output["pdf"].parents[1] / "corpus" / snakemake.resources.text
        main(
            snakemake.params.job,
            tables=dict(snakemake.input.items()),
            alphabet=corpus / "alphabet.json",
            output=output,
        )
