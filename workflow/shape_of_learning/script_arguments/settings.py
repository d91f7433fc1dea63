"""Settings that no result depends on: scripts get them past Snakemake, which would run jobs again for them."""

import json
import os
from typing import Any

VARIABLE = "SHAPE_OF_LEARNING_SETTINGS"


def plumbing_settings() -> dict[str, Any]:
    """Read what the workflow has exported: ``corpus_sources`` and ``window_batch_size``."""
    return json.loads(os.environ.get(VARIABLE, "{}"))
