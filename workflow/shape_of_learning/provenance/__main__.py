"""Compare the results of runs with what these wrote, and say of each file that differs in what.

``python -m shape_of_learning.provenance FOLDER``
"""

import argparse
import sys
from io import TextIOWrapper
from pathlib import Path

from shape_of_learning.provenance.verification import described_runs, differences
from shape_of_learning.script_arguments.running import run


def main(folder: Path) -> None:
    """Print a sentence for each difference; the exit status is 1 if there is any."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files are any bytes
    found = {crate: list(differences(crate)) for crate in described_runs(folder)}
    for crate, sentences in found.items():
        print(*(sentences or [f"{crate}: every file is what the run wrote"]), sep="\n")
    sys.exit(any(found.values()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="verify", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("results"))
    run(main, parser)
