"""``results/tables/verdicts/{model}.csv``: all that is known of each checkpoint of a model."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shape_of_learning.checkpoints.integrity import OK
from shape_of_learning.checkpoints.losses import COLUMNS as LOSS_COLUMNS
from shape_of_learning.checkpoints.sanity import MeasuredLoss, broken
from shape_of_learning.errors import InputError
from shape_of_learning.storage.csv_table import read_rows, write_table

COLUMNS = ("model", "revision", "step", "tokens", *LOSS_COLUMNS, "verdict", "shown")
SHOWN = ("yes", "hollow", "no")
NOT_MEASURED = ("", "", "")


@dataclass(frozen=True)
class ListedCheckpoint:
    """A checkpoint and the gate's verdict on it; step and tokens are None where there are none."""

    revision: str
    step: int | None
    tokens: int | None
    verdict: str


def write_verdicts(
    path: Path, model: str, checkpoints: Sequence[ListedCheckpoint], losses: Path, *, policy: str
) -> None:
    """Judge the checkpoints of a model by their losses and write the table, one row each.

    Parameters
    ----------
    path : Path
        CSV file to write.
    model : str
        Its name.
    checkpoints : sequence of ListedCheckpoint
        All that the model's entry lists.
    losses : Path
        Folder of ``{revision}.csv``, which only the measured ones have.
    policy : {"skip", "flag", "fail"}
        What figures do with a checkpoint that is not ``ok``: leave it out (``shown`` is ``no``), or draw
        it hollow if it has been measured.

    Raises
    ------
    InputError
        If a measured checkpoint is broken and the policy is ``fail``, or if a loss cannot be read.
    """
    measured = {
        each.revision: read_rows(losses / f"{each.revision}.csv", LOSS_COLUMNS)[0]
        for each in checkpoints
        if (losses / f"{each.revision}.csv").exists()
    }
    found = broken(
        [
            MeasuredLoss(each.revision, each.step or 0, float(loss), int(vocabulary or 0))
            for each in checkpoints
            for loss, _, vocabulary in [measured.get(each.revision, NOT_MEASURED)]
            if each.verdict == OK and loss
        ]
    )
    if found and policy == "fail":
        listing = ", ".join(f"`{name}` ({verdict})" for name, verdict in found.items())
        raise InputError(
            f"model `{model}`: {listing}; remove them from the entry, or set `bad_checkpoints` to `skip` "
            "or `flag`"
        )

    def shown(revision: str, verdict: str) -> str:
        if verdict == OK:
            return "yes"
        return "hollow" if policy == "flag" and revision in measured else "no"

    rows = []
    for each in checkpoints:
        verdict = found.get(each.revision, each.verdict)
        identity = [model, each.revision, each.step, each.tokens]
        loss = measured.get(each.revision, NOT_MEASURED)
        rows.append([*identity, *loss, verdict, shown(each.revision, verdict)])
    write_table(path, COLUMNS, rows)
