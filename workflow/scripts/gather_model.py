"""Gather what was measured of the checkpoints of one model, with intervals, changes and left-out values."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shape_of_learning.job import job
from shape_of_learning.metrics.tables import Curve, MeasuredModel, write_model_tables


def main(
    folder: Path,
    model: Mapping[str, Any],
    curves: Sequence[Mapping[str, Any]],
    output: Mapping[str, str],
) -> None:
    """Read ``{folder}/{revision}/{family}/layer_{layer}.csv`` and write four tables.

    Parameters
    ----------
    folder : Path
        Of the model's measurements.
    model : mapping
        Fields of :class:`.MeasuredModel`.
    curves : sequence of mapping
        Fields of :class:`.Curve`.
    output : mapping of str to str
        Paths of ``measurements``, ``estimates``, ``changes`` and ``left_out``.
    """
    write_model_tables(
        folder,
        MeasuredModel(**model),
        [Curve(**curve) for curve in curves],
        {name: Path(path) for name, path in output.items()},
    )


if __name__ == "__main__":
    with job(snakemake.log[0]):
        results = Path(snakemake.output.measurements).parents[2]
        main(
            results / snakemake.params.folder / snakemake.wildcards.model,
            snakemake.params.model,
            snakemake.params.curves,
            dict(snakemake.output.items()),
        )
