"""What all rules share: the parsed configuration, and how the user is told something."""

import json
import os
import re
import sys
from functools import cache
from pathlib import Path

import shape_of_learning
from shape_of_learning.errors import InputError
from shape_of_learning.files import read_yaml
from shape_of_learning.plan.configuration import read_configuration, with_defaults
from shape_of_learning.plan.curve import curve_of
from shape_of_learning.plan.gates import check_endpoint, has_hub_token, is_closed
from shape_of_learning.plan.papers import read_papers
from shape_of_learning.plan.science import SCRIPTS, science
from shape_of_learning.script_arguments.settings import (
    export_plumbing_settings,
    without_plumbing,
)

WORKFLOW = Path(shape_of_learning.__file__).parents[1]
# Until all rules run scripts.
os.environ.update(SCRIPTS=str(WORKFLOW / "scripts"))
shell.prefix('set -euo pipefail; export PYTHONPATH="${{SCRIPTS%/*}}" PYTHONNOUSERSITE=1; ')


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


def warn(sentences):
    """Tell the user what the plan leaves out, and why."""
    for sentence in sentences:
        say(f"NOTE: {sentence}")


# Entries of the working directory go before those that the workflow brings.
MODEL_FOLDERS = (WORKFLOW.parent / "config/models", Path("config/models"))
# Snakemake has read these, and kept the last of keys that are there twice.
for file in filter(Path.is_file, map(Path, workflow.configfiles)):
    at_the_door(read_yaml, file)
at_the_door(check_endpoint)
PAPERS = at_the_door(read_papers, WORKFLOW / "papers")
CONFIGURATION = at_the_door(
    read_configuration,
    at_the_door(with_defaults, config, WORKFLOW.parent / "config/config.yaml"),
    *MODEL_FOLDERS,
    papers=PAPERS,
    has_hub_token=has_hub_token(),
    is_closed=is_closed,
)
# Those that are measured, and before them those from which they are trained further.
MODELS = {**CONFIGURATION.origins, **CONFIGURATION.models}
RESULTS = "/".join(filter(None, ["results", CONFIGURATION.settings["run"]]))


# Everything that is made lies under results/, or in a folder of the run there.
pathvars:
    results=RESULTS,
    logs="<results>/logs",
    benchmarks="<results>/benchmarks",


def own_path(path):
    return path.replace("<results>", RESULTS).replace("<resources>", "resources").replace(
        "<logs>", f"{RESULTS}/logs").replace("<benchmarks>", f"{RESULTS}/benchmarks")


wildcard_constraints:
    source=r"[^/]+",
    model=r"[^/]+",
    revision=r"[^/]+",
    layer=r"\d+",
    estimator=r"[^/]+",


def setting(section, key):
    """One value of the configuration."""
    return CONFIGURATION.settings[section][key]


def any_of(names):
    """Wildcard constraint that admits just these names."""
    return "|".join(re.escape(name) for name in sorted(names)) or r"(?!)"


# Snakemake compares the times of folders and large files, which a copy of the checkout may set anew. So the text
# counts as ever old, and the small alphabet.json, which holds its digest, says whether it is another.
_CORPUS = f"<results>/corpus/{setting('corpus', 'source')}"
CLEAN_CORPUS = {"text": ancient(f"{_CORPUS}/text.txt"), "alphabet": f"{_CORPUS}/alphabet.json"}

export_plumbing_settings(
    CONFIGURATION.settings,
    {
        f"{name}/{revision}": folder
        for name, model in MODELS.items()
        for revision, folder in model.local_folders.items()
    },
)
warn(CONFIGURATION.notices)
