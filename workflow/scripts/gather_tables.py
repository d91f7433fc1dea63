"""Gather tables of one kind, of all checkpoints of one model or of all models."""

from collections.abc import Sequence
from pathlib import Path

from shape_of_learning.files import read_rows, write_table
from shape_of_learning.job import run_job
from shape_of_learning.metrics import tidy
from shape_of_learning.metrics.series import TablesJob

COLUMNS = {
    "measurements": tidy.MEASUREMENT_COLUMNS,
    "estimates": tidy.ESTIMATE_COLUMNS,
    "changes": tidy.CHANGE_COLUMNS,
    "controls": tidy.CONTROL_COLUMNS,
    "massive": tidy.MASSIVE_TABLE_COLUMNS,
    "weights": tidy.WEIGHT_COLUMNS,
    "weight_points": tidy.WEIGHT_POINT_COLUMNS,
}


def main(job: TablesJob, tables: Sequence[Path], output: Path) -> None:
    """Write one table with the rows of all tables."""
    columns = COLUMNS[job.kind]
    checkpoints = job.checkpoints or [()] * len(tables)
    rows = [
        [*checkpoint, *row]
        for table, checkpoint in zip(tables, checkpoints, strict=True)
        for row in read_rows(table, columns[len(checkpoint) :])
    ]
    if job.series is not None:
        model = columns.index("model")
        estimator = columns.index("estimator")
        places = {series: number for number, series in enumerate(job.series)}
        rows = [row for row in rows if (row[model], row[estimator]) in places]
        rows.sort(key=lambda row: places[row[model], row[estimator]])
    write_table(output, columns, rows)


if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        main(
            snakemake.params.job,
            [Path(table) for table in snakemake.input],
            Path(snakemake.output[0]),
        )
