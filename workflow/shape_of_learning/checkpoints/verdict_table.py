"""``results/tables/verdicts/{model}.csv``: all that is known of each checkpoint of a model."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from shape_of_learning.checkpoints.losses import COLUMNS as LOSS_COLUMNS
from shape_of_learning.checkpoints.tensor_table import read_tensor_digests
from shape_of_learning.checkpoints.verdicts import (
    Evidence,
    JudgedCheckpoint,
    judged_by_measurements,
)
from shape_of_learning.errors import InputError
from shape_of_learning.files import read_rows, write_table

COLUMNS = ("model", "revision", "step", "tokens", *LOSS_COLUMNS, "verdict", "shown")


def write_verdicts(
    path: Path,
    model: str,
    checkpoints: Sequence[JudgedCheckpoint],
    measured: Mapping[str, tuple[Path, Path]],
    *,
    policy: str,
) -> None:
    """Judge the checkpoints of a model by what has been measured and write the table, one row each.

    Parameters
    ----------
    path : Path
        CSV file to write.
    model : str
        Its name.
    checkpoints : sequence of JudgedCheckpoint
        All that the model's entry lists, by step.
    measured : mapping of str to (Path, Path)
        Name of a measured one -> the tables of its loss and of its tensors.
    policy : {"skip", "flag", "fail"}
        What figures do with a checkpoint that is not good: leave it out (``shown`` is ``no``), or draw it
        hollow if it has been measured.

    Raises
    ------
    InputError
        If a checkpoint turns out to be bad and the policy is ``fail``, or if a table cannot be read.
    """
    losses = {name: read_rows(loss, LOSS_COLUMNS)[0] for name, (loss, _) in measured.items()}
    evidence = {}
    for name, (loss, tokens, vocabulary) in losses.items():
        digests = read_tensor_digests(measured[name][1])
        evidence[name] = Evidence(
            digests.of, float(loss or "nan"), int(tokens), int(vocabulary or 0), digests.sample
        )
    judged = judged_by_measurements(checkpoints, evidence)
    new = [b for a, b in zip(checkpoints, judged, strict=True) if not (a.is_condemned or b.is_good)]
    if new and policy == "fail":
        bad = ", ".join(f"`{each.name}` ({each.verdict})" for each in new)
        raise InputError(
            f"model `{model}`: {bad}; remove them from the entry, or set `bad_checkpoints` to `skip` "
            "or `flag`"
        )
    rows = []
    for each in judged:
        shown = "yes" if each.is_good else "no"
        if not each.is_good and policy == "flag" and each.name in measured:
            shown = "hollow"
        loss = losses.get(each.name, ("", "", ""))
        rows.append([model, each.name, each.step, each.tokens, *loss, each.verdict, shown])
    write_table(path, COLUMNS, rows)
