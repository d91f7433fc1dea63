"""Make the labelled texts of a task, from the cleaned corpus or the Hub, and say beside them what they are."""

from pathlib import Path

from shape_of_learning.job import read_parameters, run_job
from shape_of_learning.tasks.examples import write_task
from shape_of_learning.tasks.sources import make_task

if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        text = Path(snakemake.input[0]) if snakemake.input else None
        task = make_task(snakemake.wildcards.task, text=text, **read_parameters(snakemake))
        write_task(Path(snakemake.output.table), task)
