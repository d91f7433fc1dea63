"""Judge the claims of one paper by what a run has measured."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shape_of_learning.claims.claim import Claim
from shape_of_learning.claims.evidence import read_evidence
from shape_of_learning.claims.page import write_ledger, write_page
from shape_of_learning.claims.verdict import judge
from shape_of_learning.job import read_parameters, run_job

logger = logging.getLogger("shape_of_learning")


def main(
    title: str,
    claims: Sequence[Mapping[str, Any]],
    models: Sequence[Mapping[str, Any]],
    suspect_above: Mapping[str, float],
    left_out: Sequence[Path],
    tables: Sequence[Path],
    controls: Sequence[Path],
    output: tuple[Path, Path],
) -> None:
    """Write the ledger of a paper and its page."""
    evidence = read_evidence(models, suspect_above, left_out, tables, controls)
    judged = [(claim, judge(claim, evidence)) for claim in (Claim(**claim) for claim in claims)]
    for claim, judgement in judged:
        logger.info("%s: %s. %s", claim.name, judgement.verdict, judgement.because)
    ledger, page = output
    write_ledger(ledger, judged)
    write_page(page, title, judged)


if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        main(
            **read_parameters(snakemake),
            **{
                key: [Path(path) for path in snakemake.input[key]]
                for key in ("left_out", "tables", "controls")
            },
            output=(Path(snakemake.output.csv), Path(snakemake.output.markdown)),
        )
