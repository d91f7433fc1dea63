"""Put the gate's verdict and the measured loss of every checkpoint of a model together.

A checkpoint whose perplexity is far from its neighbours' is broken, even if its files are whole. What figures
do with a bad one is the configuration's `bad_checkpoints`.
"""

import argparse
from pathlib import Path

from shape_of_learning.checkpoints.gate import OK
from shape_of_learning.checkpoints.sanity import MeasuredLoss, broken
from shape_of_learning.command_line import run
from shape_of_learning.csv_table import read_rows, write_table
from shape_of_learning.embeddings.losses import COLUMNS as LOSS_COLUMNS
from shape_of_learning.errors import InputError

COLUMNS = (
    *("model", "revision", "step", "tokens"),
    *("loss", "predicted_tokens", "vocabulary"),
    *("verdict", "shown"),
)

NOT_MEASURED = ["", "", ""]


def main(model: str, checkpoint: list[list[str]], losses: Path, policy: str, output: Path) -> None:
    """Write the table of verdicts.

    `checkpoint` holds (revision, step, tokens, verdict) of each; `losses` is the folder of
    ``{revision}.csv``, which only the measured ones have.
    """
    rows = []
    compared = []
    for revision, step, tokens, verdict in checkpoint:
        file = losses / f"{revision}.csv"
        measurement = read_rows(file, LOSS_COLUMNS)[0] if file.exists() else NOT_MEASURED
        rows.append([model, revision, step, tokens, *measurement, verdict])
        loss, _, vocabulary = measurement
        if verdict == OK and loss:
            compared.append(MeasuredLoss(revision, int(step), float(loss), int(vocabulary)))
    found = broken(compared)
    if found and policy == "fail":
        listing = ", ".join(f"`{name}` ({verdict})" for name, verdict in found.items())
        raise InputError(
            f"model `{model}`: {listing}; remove them from the entry, or set `bad_checkpoints` to `skip` "
            "or `flag`"
        )
    write_table(output, COLUMNS, (_judged(row, found, policy) for row in rows))


def _judged(row: list[str], found: dict[str, str], policy: str) -> list[object]:
    *facts, verdict = row
    verdict = found.get(row[1], verdict)
    measured = facts[4:] != NOT_MEASURED
    shown = "yes" if verdict == OK else "hollow" if policy == "flag" and measured else "no"
    return [*facts, verdict, shown]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--checkpoint", nargs=4, action="append", required=True)
    parser.add_argument("--losses", type=Path, required=True)
    parser.add_argument("--policy", choices=["fail", "skip", "flag"], required=True)
    parser.add_argument("--output", type=Path, required=True)
    run(main, parser)
