"""Compare the results of runs with what these wrote, and say of each file that differs in what."""

import argparse
import sys
from pathlib import Path

from shape_of_learning.provenance.verification import described_runs, differences
from shape_of_learning.script_arguments.running import run


def main(folder: Path) -> None:
    """Print a sentence for each difference; the exit status is 1 if there is any."""
    found = 0
    for crate in described_runs(folder):
        own = 0
        for own, sentence in enumerate(differences(crate), start=1):
            print(sentence)
        if not own:
            print(f"{crate}: every file is what the run wrote")
        found += own
    sys.exit(found > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("results"))
    run(main, parser)
