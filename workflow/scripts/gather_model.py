"""Gather what was measured of the checkpoints of one model, with intervals, changes and left-out values."""

from pathlib import Path

from shape_of_learning.job import job
from shape_of_learning.metrics.tables import write_model_tables

if __name__ == "__main__":
    with job(snakemake.log[0]):
        results = Path(snakemake.output.measurements).parents[2]
        write_model_tables(
            results / snakemake.params.folder / snakemake.wildcards.model,
            snakemake.params.model,
            snakemake.params.curves,
            {name: Path(path) for name, path in snakemake.output.items()},
        )
