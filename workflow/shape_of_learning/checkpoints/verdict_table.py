"""``results/tables/verdicts/{model}.csv``: all that is known of each checkpoint of a model."""

from collections.abc import Sequence
from pathlib import Path

from shape_of_learning.checkpoints.integrity import OK, JudgedCheckpoint
from shape_of_learning.checkpoints.losses import COLUMNS as LOSS_COLUMNS
from shape_of_learning.checkpoints.sanity import MeasuredLoss, broken
from shape_of_learning.errors import InputError
from shape_of_learning.storage.csv_table import read_rows, write_table

COLUMNS = ("model", "revision", "step", "tokens", *LOSS_COLUMNS, "verdict", "shown")
SHOWN = ("yes", "hollow", "no")
NOT_MEASURED = ("", "", "")


def write_verdicts(
    path: Path, model: str, checkpoints: Sequence[JudgedCheckpoint], losses: Path, *, policy: str
) -> None:
    """Judge the checkpoints of a model by their losses and write the table, one row each.

    Parameters
    ----------
    path : Path
        CSV file to write.
    model : str
        Its name.
    checkpoints : sequence of JudgedCheckpoint
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
        each.name: read_rows(losses / f"{each.name}.csv", LOSS_COLUMNS)[0]
        for each in checkpoints
        if (losses / f"{each.name}.csv").exists()
    }
    found = broken(
        [
            MeasuredLoss(each.name, each.step or 0, float(loss), int(vocabulary or 0))
            for each in checkpoints
            for loss, _, vocabulary in [measured.get(each.name, NOT_MEASURED)]
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
        verdict = found.get(each.name, each.verdict)
        identity = [model, each.name, each.step, each.tokens]
        loss = measured.get(each.name, NOT_MEASURED)
        rows.append([*identity, *loss, verdict, shown(each.name, verdict)])
    write_table(path, COLUMNS, rows)
