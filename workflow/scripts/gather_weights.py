"""Gather what was measured of the matrices of a model over its checkpoints."""

from collections.abc import Sequence
from pathlib import Path

from shape_of_learning.files import read_rows, write_table
from shape_of_learning.job import job
from shape_of_learning.metrics import table_columns

# Of a checkpoint, and of a model.
COLUMNS = {
    "weights": (table_columns.MATRIX_COLUMNS, table_columns.WEIGHT_COLUMNS),
    "weight_points": (table_columns.POINT_COLUMNS, table_columns.WEIGHT_POINT_COLUMNS),
}


def main(
    kind: str, checkpoints: Sequence[Sequence[object]], tables: Sequence[Path], output: Path
) -> None:
    """Put before each row which checkpoint it is of: model, role, revision, step and tokens."""
    read, written = COLUMNS[kind]
    rows = (
        [*checkpoint, *row]
        for table, checkpoint in zip(tables, checkpoints, strict=True)
        for row in read_rows(table, read)
    )
    write_table(output, written, rows)


if __name__ == "__main__":
    with job(snakemake.log[0]):
        main(
            snakemake.params.kind,
            snakemake.params.checkpoints,
            [Path(table) for table in snakemake.input],
            Path(snakemake.output[0]),
        )
