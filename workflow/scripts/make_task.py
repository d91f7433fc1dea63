"""Make the labelled texts of a task from the cleaned corpus or the Hub, and describe them in a second file."""

from pathlib import Path

from shape_of_learning.job import run_job
from shape_of_learning.tasks.examples import write_task
from shape_of_learning.tasks.sources import make_task

if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        text = Path(snakemake.input[0]) if snakemake.input else None
        write_task(Path(snakemake.output.table), make_task(snakemake.params.job, text))
