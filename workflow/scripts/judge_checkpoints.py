"""Judge every checkpoint of a model by its files, its tensors and its measured loss.

Checkpoints with the same tensors are copies even if their files differ. A checkpoint whose perplexity is far above that
of the others is broken or suspicious even if its files are whole. The configuration key `bad_checkpoints` decides
whether figures draw bad checkpoints.
"""

from pathlib import Path

from shape_of_learning.checkpoints.job import CheckpointJudgementJob
from shape_of_learning.checkpoints.verdict import write_verdicts
from shape_of_learning.job import run_job

if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        job: CheckpointJudgementJob = snakemake.params.job
        tables = zip(
            map(Path, snakemake.input.losses), map(Path, snakemake.input.tensors), strict=True
        )
        write_verdicts(
            Path(snakemake.output[0]),
            job.model,
            job.checkpoints,
            dict(zip(job.measured_names, tables, strict=True)),
            policy=job.policy,
            is_from_scratch=job.is_from_scratch,
        )
