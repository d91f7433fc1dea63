"""Settings that reach a job by an environment variable, since no result depends on them.

What a rule names as a parameter is part of what its result is computed from. Where a download comes
from and how many windows pass at a time is not; to change them must make nothing anew.
"""

import json
import os
from collections.abc import Mapping
from typing import Any

from shape_of_learning.errors import without_secrets

VARIABLE = "SHAPE_OF_LEARNING_SETTINGS"
# In the place of a checkpoint's folder: where it lies is a setting, too.
LOCAL = "local:"


def export_plumbing_settings(
    settings: Mapping[str, Any], model_folders: Mapping[str, str] | None = None
) -> None:
    """Set the variable, for all processes that this one starts.

    Parameters
    ----------
    settings : mapping
        The sections of the configuration.
    model_folders : mapping of str to str, optional
        Where local checkpoints lie, by ``{model}/{revision}``.
    """
    plumbing = {
        "corpus_sources": settings["corpus"]["sources"],
        "window_batch_size": settings["forward"]["batch_size"],
        "forward_threads": settings["forward"]["threads"],
        "model_folders": dict(model_folders or {}),
    }
    os.environ[VARIABLE] = json.dumps(plumbing)


def without_plumbing(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out of the configuration what no number depends on.

    Parameters
    ----------
    settings : mapping
        The sections of the configuration.

    Returns
    -------
    dict
        Without ``forward.batch_size`` and ``forward.threads``, of the corpus sources just the one
        in use, without its addresses and digests, and without a
        ``pretraining`` that replaces nothing.
    """
    corpus, forward = settings["corpus"], settings["forward"]
    source = corpus["sources"][corpus["source"]]
    kept = {key: source[key] for key in ("builtin", "member", "format") if key in source}
    return {
        **{key: value for key, value in settings.items() if (key, value) != ("pretraining", {})},
        "corpus": {**corpus, "sources": {corpus["source"]: kept}},
        "forward": {key: forward[key] for key in forward if key not in ("batch_size", "threads")},
    }


def plumbing_settings() -> dict[str, Any]:
    """Read what :func:`export_plumbing_settings` has left.

    Returns
    -------
    dict
        ``corpus_sources``, ``window_batch_size`` and ``forward_threads``: the keys `corpus.sources`,
        `forward.batch_size` and `forward.threads`; ``model_folders``;
        Empty for a script that Snakemake has not started.
    """
    return json.loads(os.environ.get(VARIABLE, "{}"))


def with_plumbing(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Undo :func:`without_plumbing` in a job, by :func:`plumbing_settings`, where there are any.

    Of addresses, only passwords and queries are not given back: what is returned is written down.
    """
    plumbing = plumbing_settings()
    if not plumbing:
        return dict(settings)
    sources = {
        name: {**entry, "urls": [without_secrets(url) for url in entry["urls"]]}
        if "urls" in entry
        else entry
        for name, entry in plumbing["corpus_sources"].items()
    }
    corpus = {**settings["corpus"], "sources": sources}
    forward = {
        **settings["forward"],
        "batch_size": plumbing["window_batch_size"],
        "threads": plumbing["forward_threads"],
    }
    return {**settings, "corpus": corpus, "forward": forward}
