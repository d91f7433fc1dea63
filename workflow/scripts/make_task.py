"""Make the labelled texts of a task: from the cleaned corpus or the Hub."""

from pathlib import Path
from typing import Any

from shape_of_learning.job import job
from shape_of_learning.tasks.examples import write_task
from shape_of_learning.tasks.sources import make_task


def main(task: str, entry: dict[str, Any], seed: int, text: Path | None, output: Path) -> None:
    """Write the table of examples to `output`, and what it holds beside it as JSON."""
    write_task(output, make_task(task, entry, text=text, seed=seed))


if __name__ == "__main__":
    with job(snakemake.log[0]):
        main(
            snakemake.wildcards.task,
            snakemake.params.entry,
            snakemake.params.seed,
            Path(snakemake.input[0]) if snakemake.input else None,
            Path(snakemake.output.table),
        )
