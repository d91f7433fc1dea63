"""What all rules share: the parsed configuration, and where scripts and library are."""

import json
import os
import re
import shlex
import sys
from functools import cache
from pathlib import Path

from snakemake.exceptions import WorkflowError

from shape_of_learning.errors import InputError
from shape_of_learning.plan.configuration import FIGURES, read_configuration
from shape_of_learning.plan.curve import curve_of
from shape_of_learning.plan.source_files import modules_used
from shape_of_learning.registry import ESTIMATORS, NEIGHBOURS

WORKFLOW = Path(workflow.current_basedir).parents[1]
SCRIPTS = WORKFLOW / "scripts"

# A conda environment drops PYTHONPATH and may see the user's own packages, so each job sets both.
shell.prefix(
    f"set -euo pipefail; export PYTHONPATH={shlex.quote(str(WORKFLOW))} PYTHONNOUSERSITE=1; "
)


def hub_token_file():
    """Where the Hugging Face client keeps the token of a login."""
    home = os.environ.get("HF_HOME", os.path.expanduser("~/.cache/huggingface"))
    return Path(os.environ.get("HF_TOKEN_PATH", Path(home) / "token"))


def read_configuration_or_stop():
    token = bool(os.environ.get("HF_TOKEN")) or hub_token_file().exists()
    try:
        return read_configuration(config, WORKFLOW.parent / "config/models", has_hub_token=token)
    except InputError as error:
        raise WorkflowError(str(error)) from None


CONFIGURATION = read_configuration_or_stop()
MODELS = CONFIGURATION.models


wildcard_constraints:
    source=r"[^/]+",
    model=r"[^/]+",
    revision=r"[^/]+",
    layer=r"\d+",
    estimator=r"[^/]+",


def script(name):
    """Path of a script; an input of its rule, so that an edit reruns it."""
    return str(SCRIPTS / f"{name}.py")


def library(name):
    """Library modules that a script uses; inputs of its rule for the same reason."""
    return modules_used(SCRIPTS / f"{name}.py")


def library_of_estimator(name):
    """The same for a script that loads the estimator which the wildcard names."""

    def modules(wildcards):
        used = modules_used(SCRIPTS / f"{name}.py", ESTIMATORS[wildcards.estimator].module)
        # An entry of the registry is a parameter, lest a new one remeasures all the others.
        return [module for module in used if not module.endswith("registry.py")]

    return modules


def library_of_all_estimators(name):
    """The same for a script that loads all of them."""
    return modules_used(SCRIPTS / f"{name}.py", *{e.module for e in ESTIMATORS.values()})


def estimator_entry(wildcards):
    """How an estimator is called."""
    return str(ESTIMATORS[wildcards.estimator])


def setting(section, key):
    """One value of the configuration."""
    return CONFIGURATION.settings[section][key]


def any_of(names):
    """Wildcard constraint that admits just these names."""
    return "|".join(re.escape(name) for name in sorted(names)) or r"(?!)"


def stop(reason):
    """End with one sentence: around an exception in an input function Snakemake puts a traceback."""
    raise SystemExit(f"ERROR: {reason}")


def announce(sentences):
    """Tell the user, on the terminal and not only in a log."""
    for sentence in sentences:
        print(f"NOTE: {sentence}", file=sys.stderr)


def let_the_scheduler_rest():
    """Take out the limit on jobs per second, which makes long runs slower and slower.

    With it, Snakemake 9.27 schedules a wake-up one second later at each wake-up, so that every job that
    ends adds one more look at all ready jobs per second for the rest of the run. `--jobs` and `--cores`
    limit what runs at a time.
    """
    workflow.scheduler.job_rate_limiter = None
