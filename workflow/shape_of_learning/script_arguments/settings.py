"""Settings that reach a job by an environment variable, since no result depends on them.

What a rule names as a parameter is part of what its result is computed from. Where a download comes
from and how many windows pass at a time is not; to change them must make nothing anew.
"""

import json
import os
from collections.abc import Mapping
from typing import Any

VARIABLE = "SHAPE_OF_LEARNING_SETTINGS"


def export_plumbing_settings(settings: Mapping[str, Any]) -> None:
    """Set the variable, for all processes that this one starts.

    Parameters
    ----------
    settings : mapping
        The sections of the configuration.
    """
    plumbing = {
        "corpus_sources": settings["corpus"]["sources"],
        "window_batch_size": settings["forward"]["batch_size"],
    }
    os.environ[VARIABLE] = json.dumps(plumbing)


def plumbing_settings() -> dict[str, Any]:
    """Read what :func:`export_plumbing_settings` has left.

    Returns
    -------
    dict
        ``corpus_sources``, the key `corpus.sources`, and ``window_batch_size``, the key
        `forward.batch_size`; empty for a script that Snakemake has not started.
    """
    return json.loads(os.environ.get(VARIABLE, "{}"))
