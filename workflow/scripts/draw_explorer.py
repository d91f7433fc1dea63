"""Put all results of a run into one page that needs no server and no network."""

import argparse
import json
from itertools import chain
from pathlib import Path

from shape_of_learning.explorer.curves import read_curves
from shape_of_learning.explorer.explorer_page import explorer_page
from shape_of_learning.explorer.further_tables import (
    VERDICTS,
    further_rows,
    measure_of,
    without_entry,
)
from shape_of_learning.explorer.judged_claims import read_claims
from shape_of_learning.script_arguments.running import named_path, run
from shape_of_learning.storage.files import atomic_write


def main(
    description: str,
    estimates: Path,
    verdicts: list[Path],
    further: list[tuple[str, Path]],
    claims: list[Path],
    output: Path,
) -> None:
    """Read the tables and write the page."""
    content = json.loads(description)
    models = [each["name"] for each in content["models"]]
    rows = further_rows([*((VERDICTS, table) for table in verdicts), *further], models)
    content["measures"] += without_entry(rows, [each["name"] for each in content["measures"]])
    measures = [each["name"] for each in content["measures"]]
    curves = read_curves(estimates, verdicts, models, measures, [*chain(*rows.values())])
    content |= {"checkpoints": curves.checkpoints, "series": curves.series}
    content["claims"] = read_claims(claims, content.pop("claimed"))
    # What names tables and no measure is of all that these hold.
    for each in (*content["papers"], *content["claims"]):
        held = map(measure_of, chain(*(rows.get(kind, ()) for kind in each.pop("tables"))))
        each["measures"] = [*dict.fromkeys([*each["measures"], *held])]
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
        "--further", type=named_path, nargs="*", default=[], metavar="KIND=CSV", help="other tables"
    )
    parser.add_argument(
        "--claims", type=Path, nargs="*", default=[], metavar="CSV", help="{paper}.csv"
    )
    parser.add_argument("--output", type=Path, required=True, metavar="HTML")
    run(main, parser)
