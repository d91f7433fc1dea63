"""Put the verdict on the files, the tensors and the measured loss of every checkpoint of a model together.

Checkpoints with the same tensors are copies though their files differ, and one whose perplexity is far from
that of the others is broken though its files are whole. What figures do with a bad one is the
configuration's `bad_checkpoints`.
"""

import argparse
import json
from pathlib import Path

from shape_of_learning.checkpoints.judged_checkpoint import JudgedCheckpoint
from shape_of_learning.checkpoints.verdict_table import write_verdicts
from shape_of_learning.script_arguments.running import run


def main(
    model: str,
    checkpoints: str,
    measured: str,
    losses: Path,
    tensors: Path,
    policy: str,
    output: Path,
) -> None:
    """Write the table of verdicts; `checkpoints` is a JSON list of what JudgedCheckpoint holds."""
    judged = [JudgedCheckpoint(*each) for each in json.loads(checkpoints)]
    names = json.loads(measured)
    write_verdicts(output, model, judged, names, losses, tensors, policy=policy)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--checkpoints", required=True, metavar="JSON")
    parser.add_argument("--measured", required=True, metavar="JSON", help="their names")
    parser.add_argument("--losses", type=Path, required=True)
    parser.add_argument("--tensors", type=Path, required=True, help="folder of their digests")
    parser.add_argument("--policy", choices=["fail", "skip", "flag"], required=True)
    parser.add_argument("--output", type=Path, required=True)
    run(main, parser)
