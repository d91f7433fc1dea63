"""Judge the claims of one paper by what a run has measured."""

import argparse
import json
import logging
from pathlib import Path

from shape_of_learning.claims.claim import Claim
from shape_of_learning.claims.evidence_tables import read_evidence
from shape_of_learning.claims.judging import judge
from shape_of_learning.claims.ledger import write_ledger, write_page
from shape_of_learning.script_arguments.running import named_path, run

logger = logging.getLogger("shape_of_learning")


def main(
    title: str,
    claims: str,
    models: str,
    suspect_above: str,
    left_out: list[Path],
    tables: list[tuple[str, Path]],
    places: tuple[Path, Path],
    output: list[Path],
) -> None:
    """Judge the claims, a JSON list, and write the ledger and its page."""
    evidence = read_evidence(
        json.loads(models), json.loads(suspect_above), left_out, tables, places
    )
    given = [Claim(**claim) for claim in json.loads(claims)]
    judged = [(claim, judge(claim, evidence)) for claim in given]
    for claim, of in judged:
        logger.info("%s: %s. %s", claim.name, of.verdict, of.because)
    ledger, page = output
    write_ledger(ledger, judged)
    write_page(page, title, judged)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--title", required=True, help="of the paper")
    parser.add_argument("--claims", required=True, metavar="JSON")
    parser.add_argument("--models", required=True, metavar="JSON", help="what is known of them")
    parser.add_argument("--suspect-above", required=True, metavar="JSON", help="by estimator")
    parser.add_argument("--left-out", type=Path, nargs="*", default=[], metavar="CSV")
    parser.add_argument("--tables", type=named_path, nargs="*", default=[], metavar="NAME=CSV")
    parser.add_argument("--places", type=Path, nargs=2, required=True, metavar=("FOLDER", "JSON"))
    parser.add_argument("--output", type=Path, nargs=2, required=True, metavar=("CSV", "MARKDOWN"))
    run(main, parser)
