"""Measure one layer of a dumped checkpoint with all measures of one family."""

from pathlib import Path

from shape_of_learning.embeddings.states import StateFiles
from shape_of_learning.job import run_job
from shape_of_learning.metrics.measure import measure_layer
from shape_of_learning.metrics.protocol import MeasureJob
from shape_of_learning.metrics.tidy import write_tidy


def main(job: MeasureJob, embeddings: Path, output: Path) -> None:
    """Read the layer from the dump, for blocks also the layer before it, and write the tidy table."""
    states = StateFiles(embeddings, job.layers)
    write_tidy(output, measure_layer(states, job.layer, job.family, job.measures, job.protocol))


if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        main(snakemake.params.job, Path(snakemake.input.embeddings), Path(snakemake.output[0]))
