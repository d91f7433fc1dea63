"""The job that describes a run; the Snakefile imports this module at every start, so it imports nothing slow."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class ProvenanceJob(NamedTuple):
    """The job that describes a run when it has all its results.

    Attributes
    ----------
    name : str
        The name of the run; empty for a run without one.
    source : str
        The source of its text.
    inputs : tuple of str
        Files in the folder of the results with digests of texts and checkpoints. A missing file is ignored, since its
        checkpoint was planned for another target.
    locks : tuple of str
        The locks of the models; a missing lock is ignored.
    papers : tuple of (str, str)
        Title and citation of each paper.
    titles : mapping of str to str
        Titles of results, by their paths without suffix.
    configuration : mapping
        All settings, as ``--configfile`` takes them.
    """

    name: str
    source: str
    inputs: tuple[str, ...]
    locks: tuple[str, ...]
    papers: tuple[tuple[str, str], ...]
    titles: Mapping[str, str]
    configuration: Mapping[str, Any]
