"""Put all results of a run into one page that needs no server and no network."""

import argparse
import json
from pathlib import Path

from shape_of_learning.explorer.curves import read_curves
from shape_of_learning.explorer.explorer_page import explorer_page
from shape_of_learning.explorer.judged_claims import read_claims
from shape_of_learning.script_arguments.running import run
from shape_of_learning.storage.files import atomic_write


def main(
    description: str, estimates: Path, verdicts: list[Path], claims: list[Path], output: Path
) -> None:
    """Read the tables and write the page."""
    content = json.loads(description)
    names = {key: [each["name"] for each in content[key]] for key in ("models", "measures")}
    curves = read_curves(estimates, verdicts, **names)
    content |= {"checkpoints": curves.checkpoints, "series": curves.series}
    content["claims"] = read_claims(claims, content.pop("claimed"))
    with atomic_write(output) as partial:
        partial.write_text(explorer_page(content, curves.columns), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--description", required=True, metavar="JSON", help="what tables do not say"
    )
    parser.add_argument("--estimates", type=Path, required=True, metavar="CSV")
    parser.add_argument("--verdicts", type=Path, nargs="*", default=[], metavar="CSV")
    parser.add_argument(
        "--claims", type=Path, nargs="*", default=[], metavar="CSV", help="{paper}.csv"
    )
    parser.add_argument("--output", type=Path, required=True, metavar="HTML")
    run(main, parser)
