"""Judge the claims of one paper by the tables of a run."""

import logging
from collections.abc import Sequence
from pathlib import Path

from shape_of_learning.claims.claim import ClaimsJob
from shape_of_learning.claims.evidence import read_evidence
from shape_of_learning.claims.judgement import judge
from shape_of_learning.claims.page import write_ledger, write_page
from shape_of_learning.job import run_job

logger = logging.getLogger("shape_of_learning")


def main(
    job: ClaimsJob,
    jackknife: Sequence[Path],
    tables: Sequence[Path],
    controls: Sequence[Path],
    ledger: Path,
    page: Path,
) -> None:
    """Write the ledger of a paper and its page."""
    evidence = read_evidence(job.models, job.near_duplicate_limits, jackknife, tables, controls)
    judgements = [(claim, judge(claim, evidence)) for claim in job.claims]
    for claim, judgement in judgements:
        logger.info("%s: %s. %s", claim.name, judgement.verdict, judgement.because)
    write_ledger(ledger, judgements)
    write_page(page, job.title, judgements)


if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        main(
            snakemake.params.job,
            jackknife=[Path(path) for path in snakemake.input.jackknife],
            tables=[Path(path) for path in snakemake.input.tables],
            controls=[Path(path) for path in snakemake.input.controls],
            ledger=Path(snakemake.output.csv),
            page=Path(snakemake.output.markdown),
        )
