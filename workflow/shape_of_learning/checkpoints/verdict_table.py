"""``results/tables/verdicts/{model}.csv``: all that is known of each checkpoint of a model."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from shape_of_learning.checkpoints.judged_checkpoint import OK, JudgedCheckpoint
from shape_of_learning.checkpoints.losses import COLUMNS as LOSS_COLUMNS
from shape_of_learning.checkpoints.sanity import MeasuredLoss, broken
from shape_of_learning.checkpoints.tensor_digests import read_tensor_digests
from shape_of_learning.checkpoints.tensor_evidence import Evidence, judged_by_weights
from shape_of_learning.errors import InputError
from shape_of_learning.storage.csv_table import read_rows, write_table

COLUMNS = ("model", "revision", "step", "tokens", *LOSS_COLUMNS, "verdict", "shown")
SHOWN = ("yes", "hollow", "no")
NOT_MEASURED = ("", "", "")
INFINITE = "broken: perplexity is infinite"


def judged_by_measurements(
    checkpoints: Sequence[JudgedCheckpoint],
    measured: Mapping[str, Evidence],
    vocabularies: Mapping[str, int],
) -> list[JudgedCheckpoint]:
    """Judge checkpoints of one training by their tensors, then those that are still ok by their losses.

    A loss that is infinite comes first: such weights are broken, whosesoever they are, and condemn no other.

    Parameters
    ----------
    checkpoints, measured
        As in :func:`.judged_by_weights`.
    vocabularies : mapping of str to int
        Tokens among which each of the measured ones chooses.
    """
    infinite = {name for name, each in measured.items() if math.isinf(each.loss)}
    judged = judged_by_weights(
        [
            replace(each, verdict=INFINITE)
            if each.name in infinite and not each.is_condemned
            else each
            for each in checkpoints
        ],
        {name: each for name, each in measured.items() if name not in infinite},
    )
    found = broken(
        [
            MeasuredLoss(
                each.name, each.step or 0, measured[each.name].loss, vocabularies[each.name]
            )
            for each in judged
            if each.verdict == OK and each.name in measured
        ]
    )
    return [replace(each, verdict=found.get(each.name, each.verdict)) for each in judged]


def write_verdicts(
    path: Path,
    model: str,
    checkpoints: Sequence[JudgedCheckpoint],
    measured: Sequence[str],
    losses: Path,
    tensors: Path,
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
    measured : sequence of str
        Names of those that this run has measured; what else lies in the folders is of earlier runs.
    losses, tensors : Path
        Folders of ``{revision}.csv`` and ``{revision}.tensors.csv`` of the measured ones.
    policy : {"skip", "flag", "fail"}
        What figures do with a checkpoint that is not ``ok``: leave it out (``shown`` is ``no``), or draw
        it hollow if it has been measured.

    Raises
    ------
    InputError
        If a checkpoint turns out to be bad and the policy is ``fail``, or if a table cannot be read.
    """
    rows = {name: read_rows(losses / f"{name}.csv", LOSS_COLUMNS)[0] for name in measured}
    evidence = {
        name: Evidence(
            read_tensor_digests(tensors / f"{name}.tensors.csv"), float(loss or "nan"), int(tokens)
        )
        for name, (loss, tokens, _) in rows.items()
    }
    vocabularies = {name: int(vocabulary or 0) for name, (_, _, vocabulary) in rows.items()}
    judged = judged_by_measurements(checkpoints, evidence, vocabularies)
    found = [
        each for before, each in zip(checkpoints, judged, strict=True) if not before.is_condemned
    ]
    bad = ", ".join(f"`{each.name}` ({each.verdict})" for each in found if each.verdict != OK)
    if bad and policy == "fail":
        raise InputError(
            f"model `{model}`: {bad}; remove them from the entry, or set `bad_checkpoints` to `skip` "
            "or `flag`"
        )

    def shown(each: JudgedCheckpoint) -> str:
        if each.verdict == OK:
            return "yes"
        return "hollow" if policy == "flag" and each.name in rows else "no"

    table = []
    for each in judged:
        identity = [model, each.name, each.step, each.tokens]
        loss = rows.get(each.name, NOT_MEASURED)
        table.append([*identity, *loss, each.verdict, shown(each)])
    write_table(path, COLUMNS, table)
