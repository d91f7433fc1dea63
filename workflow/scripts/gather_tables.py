"""Gather tables: what was measured of the checkpoints of one model or of its matrices, or tables of all models."""

from collections.abc import Sequence
from pathlib import Path

from shape_of_learning.files import read_rows, write_table
from shape_of_learning.job import read_parameters, run_job
from shape_of_learning.metrics import tidy
from shape_of_learning.metrics.tables import write_model_tables

COLUMNS = {
    "measurements": tidy.MEASUREMENT_COLUMNS,
    "estimates": tidy.ESTIMATE_COLUMNS,
    "changes": tidy.CHANGE_COLUMNS,
    "controls": tidy.CONTROL_COLUMNS,
    "massive": tidy.MASSIVE_TABLE_COLUMNS,
    "weights": tidy.WEIGHT_COLUMNS,
    "weight_points": tidy.WEIGHT_POINT_COLUMNS,
}


def main(
    kind: str,
    tables: Sequence[Path],
    output: Path,
    curves: Sequence[Sequence[str]] | None = None,
    checkpoints: Sequence[Sequence[object]] | None = None,
) -> None:
    """Put tables together.

    Parameters
    ----------
    kind : str
        One of :data:`COLUMNS`.
    tables : sequence of Path
    output : Path
    curves : sequence of (str, str), optional
        Model and estimator of the rows that are taken, in the order of the table; by default all as they are.
    checkpoints : sequence of (model, role, revision, step, tokens), optional
        The checkpoint that each table is of, where its rows do not say so.
    """
    columns, named = COLUMNS[kind], checkpoints or [()] * len(tables)
    rows = [
        [*checkpoint, *row]
        for table, checkpoint in zip(tables, named, strict=True)
        for row in read_rows(table, columns[len(checkpoint) :])
    ]
    if curves is not None:
        model, estimator = columns.index("model"), columns.index("estimator")
        place = {tuple(curve): number for number, curve in enumerate(curves)}
        rows = [row for row in rows if (row[model], row[estimator]) in place]
        rows.sort(key=lambda row: place[row[model], row[estimator]])
    write_table(output, columns, rows)


if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        given = read_parameters(snakemake)
        if "kind" in given:
            main(
                tables=[Path(table) for table in snakemake.input],
                output=Path(snakemake.output[0]),
                **given,
            )
        else:
            results = Path(snakemake.output.measurements).parents[2]
            folder = results / given.pop("folder") / snakemake.wildcards.model
            tables = {name: Path(path) for name, path in snakemake.output.items()}
            write_model_tables(folder, tables=tables, **given)
