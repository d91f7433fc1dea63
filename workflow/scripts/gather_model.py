"""Gather the measurements of the checkpoints of one model, with intervals and changes."""

from pathlib import Path

from shape_of_learning.job import run_job
from shape_of_learning.metrics.series import ModelTablesJob
from shape_of_learning.metrics.tables import write_model_tables

if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        job: ModelTablesJob = snakemake.params.job
        output = {name: Path(path) for name, path in snakemake.output.items()}
        folder = output["measurements"].parents[2] / job.folder / job.model.name
        write_model_tables(folder, job.model, job.series, output)
