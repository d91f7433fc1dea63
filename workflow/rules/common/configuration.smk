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
from shape_of_learning.plan.configuration import read_configuration
from shape_of_learning.plan.curve import curve_of
from shape_of_learning.plan.papers import read_papers
from shape_of_learning.plan.science import SCRIPTS, science
from shape_of_learning.metrics.registry import ESTIMATORS, NEIGHBOURS

WORKFLOW = Path(workflow.current_basedir).parents[1]

# A conda environment drops PYTHONPATH and may see the user's own packages, so each job sets both. Where the
# scripts lie is here and in no rule, since no result depends on it.
shell.prefix(
    f"set -euo pipefail; export PYTHONPATH={shlex.quote(str(WORKFLOW))} PYTHONNOUSERSITE=1"
    f" SCRIPTS={shlex.quote(str(SCRIPTS))}; "
)


def hub_token_file():
    """Where the Hugging Face client keeps the token of a login."""
    home = os.environ.get("HF_HOME", os.path.expanduser("~/.cache/huggingface"))
    return Path(os.environ.get("HF_TOKEN_PATH", Path(home) / "token"))


def read_configuration_or_stop():
    token = bool(os.environ.get("HF_TOKEN")) or hub_token_file().exists()
    try:
        papers = read_papers(WORKFLOW / "papers")
        return papers, read_configuration(
            config, WORKFLOW.parent / "config/models", papers=papers, has_hub_token=token
        )
    except InputError as error:
        raise WorkflowError(str(error)) from None


PAPERS, CONFIGURATION = read_configuration_or_stop()
MODELS = CONFIGURATION.models


wildcard_constraints:
    source=r"[^/]+",
    model=r"[^/]+",
    revision=r"[^/]+",
    layer=r"\d+",
    estimator=r"[^/]+",


def shared(path):
    """Path of a download that other runs may share.

    It is no output of a rule, since Snakemake removes the outputs of a job that fails and touches those of one
    that does not; a small receipt in <results> is, and stands for it.
    """
    return workflow.pathvars.apply(f"<resources>/{path}")


def science_of_estimator(script):
    """Digest of what a script computes with that loads the estimator which the wildcard names."""
    return lambda wildcards: science(script, ESTIMATORS[wildcards.estimator].module)


def registry_entry(wildcards):
    """The entry of the estimator that the wildcard names; the registry's other entries decide nothing."""
    return str(ESTIMATORS[wildcards.estimator])


def setting(section, key):
    """One value of the configuration."""
    return CONFIGURATION.settings[section][key]


# What is measured with and without a dump lies apart. Of a file that a rule has not made itself, Snakemake takes
# whatever is there, and would not see that windows or batches are others since the other rule made it.
MEASURED = "<results>" if setting("embeddings", "dump") else "<results>/within_the_pass"


def any_of(names):
    """Wildcard constraint that admits just these names."""
    return "|".join(re.escape(name) for name in sorted(names)) or r"(?!)"


def fail(reason):
    """End with one sentence: around an exception in an input function Snakemake puts a traceback."""
    raise SystemExit(f"ERROR: {reason}")


def warn(sentences):
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
