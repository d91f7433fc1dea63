"""The jobs that list, download and judge the checkpoints of a model.

This module imports nothing heavy, because the Snakefile reads it at every start.
"""

from collections.abc import Mapping
from typing import NamedTuple

from shape_of_learning.checkpoints.lock import LockedRevision, WeightFile
from shape_of_learning.checkpoints.shapes import Shape
from shape_of_learning.checkpoints.verdict import JudgedCheckpoint, Verdict


class PinnedCheckpoint(NamedTuple):
    """A checkpoint as a lock pins it.

    Attributes
    ----------
    revision : str
        Its branch, tag or commit on the Hub.
    step, tokens : int or None
        None if the model has no training curve.
    commit : str or None
        Empty if the Hub lacks the revision; None if the lock does not pin it.
    files : mapping of str to WeightFile
        The files of weights by name, in alphabetical order.
    verdict : Verdict
    """

    revision: str
    step: int | None
    tokens: int | None
    commit: str | None
    files: Mapping[str, WeightFile]
    verdict: Verdict


class ListingJob(NamedTuple):
    """The checkpoints of a model that a table lists before any download."""

    model: str
    checkpoints: tuple[PinnedCheckpoint, ...]


class DownloadJob(NamedTuple):
    """A checkpoint that is downloaded from the Hub.

    Attributes
    ----------
    model, revision : str
        Names of the model and, within it, of the checkpoint.
    weights : LockedRevision or None
        The entry of the model's lock; None if the Hub could not be asked for it.
    tokenizer : LockedRevision or None
        The entry of a tokenizer in another repository; None if the tokenizer is beside the weights.
    shape : Shape
        The shape in the model's entry.
    """

    model: str
    revision: str
    weights: LockedRevision | None
    tokenizer: LockedRevision | None
    shape: Shape


class CheckpointJudgementJob(NamedTuple):
    """The checkpoints of a model that are judged by their tensors and losses.

    Attributes
    ----------
    model : str
    checkpoints : tuple of JudgedCheckpoint
        All checkpoints in the model's entry, by step, with the verdicts on their files.
    measured_names : tuple of str
        The names of the measured checkpoints, in the order of the tables of their losses and tensors.
    policy : {"skip", "flag"}
        Key ``bad_checkpoints`` of the configuration.
    is_from_scratch : bool
        Whether the training is a pretraining and not a fine-tuning.
    """

    model: str
    checkpoints: tuple[JudgedCheckpoint, ...]
    measured_names: tuple[str, ...]
    policy: str
    is_from_scratch: bool
