"""Put the verdict on the files, the tensors and the measured loss of every checkpoint of a model together.

Checkpoints with the same tensors are copies though their files differ, and one whose perplexity is far from
that of the others is broken though its files are whole. What figures do with a bad one is the
configuration's `bad_checkpoints`.
"""

from pathlib import Path
from typing import Any

from shape_of_learning.checkpoints.verdict_table import write_verdicts
from shape_of_learning.checkpoints.verdicts import JudgedCheckpoint
from shape_of_learning.job import job


def main(
    model: str,
    checkpoints: list[dict[str, Any]],
    measured: list[str],
    losses: list[str],
    tensors: list[str],
    policy: str,
    output: Path,
) -> None:
    """Write the table; `checkpoints` are what JudgedCheckpoint holds, `measured` the names of some."""
    judged = [JudgedCheckpoint(**each) for each in checkpoints]
    tables = zip(map(Path, losses), map(Path, tensors), strict=True)
    write_verdicts(output, model, judged, dict(zip(measured, tables, strict=True)), policy=policy)


if __name__ == "__main__":
    with job(snakemake.log[0]):
        main(
            snakemake.wildcards.model,
            losses=snakemake.input.losses,
            tensors=snakemake.input.tensors,
            output=Path(snakemake.output[0]),
            **snakemake.params.verdicts,
        )
