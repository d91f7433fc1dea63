"""What all rules share: the parsed configuration, and how the user is told something."""

import json
import os
import re
import sys
from functools import cache
from pathlib import Path

from shape_of_learning.errors import InputError
from shape_of_learning.plan.configuration import read_configuration
from shape_of_learning.plan.corpus_receipt import check_receipt
from shape_of_learning.plan.curve import curve_of
from shape_of_learning.plan import gates
from shape_of_learning.plan.merging import check_configuration_file, results_folder, with_defaults
from shape_of_learning.plan.papers import read_papers
from shape_of_learning.plan.reported_run import reported_configuration
from shape_of_learning.plan.science import SCRIPTS, science
from shape_of_learning.script_arguments.settings import (
    export_plumbing_settings,
    without_plumbing,
)


def fail(reason):
    """End with one sentence: around any other exception Snakemake puts where it was raised."""
    raise SystemExit(f"ERROR: {reason}") from None


def at_the_door(function, *arguments, **options):
    """Call a function while the rules are read; what it refuses ends Snakemake with one sentence."""
    try:
        return function(*arguments, **options)
    except InputError as error:
        fail(error)


def say(line):
    """Tell the user how planning goes on."""
    print(line, file=sys.stderr, flush=True)


CLOSED_MODELS = "SHAPE_OF_LEARNING_CLOSED_MODELS"


def is_closed(model):
    """Whether the Hub refuses a gated model; asked once, and by no job, which must plan what the run plans."""
    closed = os.environ.get(CLOSED_MODELS, "").split() if not is_main_process() else None
    return gates.is_closed(model) if closed is None else model.name in closed


# Entries of the working directory go before those that the workflow brings.
MODEL_FOLDERS = (WORKFLOW.parent / "config/models", Path("config/models"))
# Snakemake has read them, and kept the last of keys that are there twice.
for file in configuration_files():
    at_the_door(check_configuration_file, file)
at_the_door(gates.check_endpoint)
if makes_report():
    config.update(at_the_door(reported_configuration, config))
PAPERS = at_the_door(read_papers, WORKFLOW / "papers")
CONFIGURATION = at_the_door(
    read_configuration,
    at_the_door(with_defaults, config, WORKFLOW.parent / "config/config.yaml"),
    *MODEL_FOLDERS,
    papers=PAPERS,
    has_hub_token=gates.has_hub_token(),
    is_closed=is_closed,
)
# Those that are measured, and before them those from which they are trained further.
MODELS = {**CONFIGURATION.origins, **CONFIGURATION.models}
if is_main_process():
    os.environ[CLOSED_MODELS] = " ".join(CONFIGURATION.closed)


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
    fail(
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
        f"{name}/{revision}": folder
        for name, model in MODELS.items()
        for revision, folder in model.source.local_folders.items()
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


def warn(sentences):
    """Tell the user, on the terminal and not only in a log: once, and not again in each job's own Snakemake."""
    if is_main_process() and "--lint" not in sys.argv:
        for sentence in sentences:
            print(f"NOTE: {sentence}", file=sys.stderr)


warn(CONFIGURATION.notices)
