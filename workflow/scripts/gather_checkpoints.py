"""Gather what one estimator says of the checkpoints of one model, with left-out values and changes."""

import argparse
from pathlib import Path

from shape_of_learning.metrics.estimates import (
    MeasuredCurve,
    change_rows,
    estimate_rows,
    left_out_rows,
    measurement_rows,
    read_checkpoint,
)
from shape_of_learning.metrics.measurements import COLUMNS
from shape_of_learning.metrics.table_columns import (
    CHANGE_COLUMNS,
    ESTIMATE_COLUMNS,
    LEFT_OUT_TABLE_COLUMNS,
)
from shape_of_learning.script_arguments.running import run
from shape_of_learning.storage.csv_table import write_table


def main(curve: MeasuredCurve, results: Path, output: list[Path]) -> None:
    """Read ``{results}/{measurements,left_out}/{model}/{revision}/{estimator}.csv`` of each checkpoint."""
    checkpoints = []
    for revision, *_ in curve.checkpoints:
        file = Path(curve.model, revision, f"{curve.estimator}.csv")
        tables = (results / "measurements" / file, results / "left_out" / file)
        checkpoints.append(read_checkpoint(*tables, curve))
    measurements, estimates, changes, left_out = output
    write_table(measurements, COLUMNS, measurement_rows(curve, checkpoints))
    write_table(estimates, ESTIMATE_COLUMNS, estimate_rows(curve, checkpoints))
    write_table(changes, CHANGE_COLUMNS, change_rows(curve, checkpoints))
    write_table(left_out, LEFT_OUT_TABLE_COLUMNS, left_out_rows(curve, checkpoints))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--curve", type=MeasuredCurve.from_json, required=True, metavar="JSON")
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument(
        "--output",
        type=Path,
        nargs=4,
        required=True,
        metavar=("MEASUREMENTS", "ESTIMATES", "CHANGES", "LEFT_OUT"),
    )
    run(main, parser)
