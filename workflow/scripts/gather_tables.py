"""Gather a table of all models into one."""

from collections.abc import Sequence
from pathlib import Path

from shape_of_learning.files import read_rows, write_table
from shape_of_learning.job import job
from shape_of_learning.metrics import table_columns

COLUMNS = {
    "measurements": table_columns.MEASUREMENT_COLUMNS,
    "estimates": table_columns.ESTIMATE_COLUMNS,
    "changes": table_columns.CHANGE_COLUMNS,
    "weights": table_columns.WEIGHT_COLUMNS,
}


def main(
    kind: str, tables: Sequence[Path], curves: Sequence[Sequence[str]] | None, output: Path
) -> None:
    """Put together what the tables of models hold.

    Parameters
    ----------
    kind : {"measurements", "estimates", "changes", "weights"}
    tables : sequence of Path
        Of each model one.
    curves : sequence of (str, str), optional
        Model and estimator of the rows that are taken, in the order of the table; by default all as they are.
    output : Path
    """
    columns = COLUMNS[kind]
    rows = [row for table in tables for row in read_rows(table, columns)]
    if curves is not None:
        model, estimator = columns.index("model"), columns.index("estimator")
        place = {tuple(curve): number for number, curve in enumerate(curves)}
        rows = [row for row in rows if (row[model], row[estimator]) in place]
        rows.sort(key=lambda row: place[row[model], row[estimator]])
    write_table(output, columns, rows)


if __name__ == "__main__":
    with job(snakemake.log[0]):
        main(
            snakemake.wildcards.table,
            [Path(table) for table in snakemake.input],
            snakemake.params.curves,
            Path(snakemake.output[0]),
        )
