"""What all rules share: the parsed configuration, and how the user is told something."""

import json
import os
import re
import sys
from functools import cache
from pathlib import Path

from snakemake.exceptions import WorkflowError

from shape_of_learning.errors import InputError
from shape_of_learning.plan.configuration import read_configuration
from shape_of_learning.plan.corpus_receipt import check_receipt
from shape_of_learning.plan.curve import curve_of
from shape_of_learning.plan.merging import results_folder, with_defaults
from shape_of_learning.plan.papers import read_papers
from shape_of_learning.plan.science import SCRIPTS, science
from shape_of_learning.script_arguments.settings import (
    export_plumbing_settings,
    without_plumbing,
)


def has_hub_token():
    """Whether gated models can be asked for: by a variable, or by a login of the Hugging Face client."""
    home = os.environ.get("HF_HOME", os.path.expanduser("~/.cache/huggingface"))
    file = Path(os.environ.get("HF_TOKEN_PATH", Path(home) / "token"))
    return bool(os.environ.get("HF_TOKEN")) or file.exists()


def at_the_door(function, *arguments, **options):
    """Call a function while the rules are read; what it refuses ends Snakemake with one sentence."""
    try:
        return function(*arguments, **options)
    except InputError as error:
        raise WorkflowError(str(error)) from None


# Entries of the working directory go before those that the workflow brings.
MODEL_FOLDERS = (WORKFLOW.parent / "config/models", Path("config/models"))
PAPERS = at_the_door(read_papers, WORKFLOW / "papers")
CONFIGURATION = at_the_door(
    read_configuration,
    with_defaults(config, WORKFLOW.parent / "config/config.yaml"),
    *MODEL_FOLDERS,
    papers=PAPERS,
    has_hub_token=has_hub_token(),
)
MODELS = CONFIGURATION.models


def setting(section, key):
    """One value of the configuration."""
    return CONFIGURATION.settings[section][key]


RESULTS = at_the_door(results_folder, CONFIGURATION.settings["run"])


# Everything that is made lies under results/, or in a folder of the run there; benchmarks/ at the top is
# another thing.
pathvars:
    results=RESULTS,
    logs="<results>/logs",
    benchmarks="<results>/benchmarks",


if CONFIGURATION.settings["run"] and path_variable("results") != RESULTS:
    raise WorkflowError(
        f"configuration key `run` puts results into {RESULTS}, but the path variable `results` is set to "
        f"{path_variable('results')}; remove one of them"
    )


wildcard_constraints:
    source=r"[^/]+",
    model=r"[^/]+",
    revision=r"[^/]+",
    layer=r"\d+",
    estimator=r"[^/]+",


# Snakemake compares the times of folders and large files, which a copy of the checkout may set anew. So the text
# counts as ever old, and the small alphabet.json, which holds its digest, says whether it is another.
_CORPUS = f"<results>/corpus/{setting('corpus', 'source')}"
CLEAN_CORPUS = {"text": ancient(f"{_CORPUS}/text.txt"), "alphabet": f"{_CORPUS}/alphabet.json"}

export_plumbing_settings(
    CONFIGURATION.settings,
    {
        f"{name}/{c.name}": c.path
        for name, model in MODELS.items()
        for c in model.checkpoints
        if c.path
    },
)
at_the_door(
    check_receipt,
    setting("corpus", "source"),
    setting("corpus", "sources")[setting("corpus", "source")],
    Path(own_path(f"{_CORPUS}/source.json")),
)


def any_of(names):
    """Wildcard constraint that admits just these names."""
    return "|".join(re.escape(name) for name in sorted(names)) or r"(?!)"


def fail(reason):
    """End with one sentence: around an exception in an input function Snakemake puts a traceback."""
    raise SystemExit(f"ERROR: {reason}")


def warn(sentences):
    """Tell the user, on the terminal and not only in a log: once, and not again in each job's own Snakemake."""
    if is_main_process() and "--lint" not in sys.argv:
        for sentence in sentences:
            print(f"NOTE: {sentence}", file=sys.stderr)


warn(CONFIGURATION.notices)
