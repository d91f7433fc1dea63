"""The run that the configuration describes, and the functions by which rules ask it.

RUN (shape_of_learning/plan/run.py) has the models with their checkpoints and measures, and the tables that figures and
claims read. Many rules ask RUN by `ask_plan`, which calls a function with the values of wildcards and ends Snakemake
with one sentence if the function raises an InputError. Other rules ask RUN in functions of their own.

The `priority` of a rule is 1 for jobs that load weights, 2 for measures of hidden states and null models, and 3 for
gathered tables, verdicts on checkpoints, and figures. So the first figures are finished long before the last checkpoint
is measured, and weights and hidden states are measured and removed before the next are written. Trainings and tasks
have 10, since many jobs wait for them. The other rules, such as measure_choices and edit_blocks, have none.
"""

import hashlib
import os
import re
import shlex
import sys
from difflib import get_close_matches
from functools import cache
from pathlib import Path

import snakemake
from snakemake.logging import logger
from snakemake.settings.types import DeploymentMethod

# This library comes first in the path of the plan, and by PYTHONPATH in that of jobs, even where another copy is
# installed.
WORKFLOW = Path(workflow.current_basedir.get_path_or_uri(secret_free=True)).absolute().parent
sys.path.insert(0, str(WORKFLOW))
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(WORKFLOW), os.environ.get("PYTHONPATH")])
)

from shape_of_learning.code_digest import digest_code
from shape_of_learning.errors import InputError, escape_controls
from shape_of_learning.files import read_yaml
from shape_of_learning.job import hide_bars
from shape_of_learning.embeddings.protocol import SamplingProtocol
from shape_of_learning.metrics.protocol import MeasuringProtocol, Selection
from shape_of_learning.plan import resources as needs
from shape_of_learning.plan.entries import FolderEntry
from shape_of_learning.plan.jobs import digest_measures, escape_for_report
from shape_of_learning.plan.papers import read_papers
from shape_of_learning.plan.run import (
    CHECKPOINT_TABLES,
    Run,
    add_defaults,
    collect_near_duplicate_limits,
    read_run,
)
from shape_of_learning.plan.series import is_closed
from shape_of_learning.plan.settings import RESERVED_RUN_NAMES
from shape_of_learning.validation import make_unknown_name_error

# --- The run ----------------------------------------------------------------------------------------


def say(line):
    """Print a line for the user while the run is planned."""
    print(escape_controls(line), file=sys.stderr, flush=True)


def exit_on_input_error(function, *arguments, **options):
    """Call a function, and end Snakemake with the sentence of an InputError, without a traceback."""
    try:
        return function(*arguments, **options)
    except InputError as error:
        raise SystemExit(f"ERROR: {error}") from None


def require_environment():
    """Refuse a copy of the library that jobs would import, and a Python that Snakemake cannot start."""
    settings = workflow.deployment_settings
    if settings and DeploymentMethod.CONDA in settings.deployment_method:
        # Jobs in conda do not inherit PYTHONPATH, and look beside Snakemake first.
        copy = Path(snakemake.__file__).parents[1] / "shape_of_learning"
        if copy.exists():
            raise InputError(
                f"jobs would run the code of {copy} instead of {WORKFLOW}; install this clone in its place: "
                f"`python -m pip install --no-deps --editable {shlex.quote(str(WORKFLOW.parent))}`"
            )
        return
    # Snakemake writes the path of Python without quotes into a command of the shell.
    if re.search(r"[^\w@%+=:,./~-]", sys.executable):
        raise InputError(
            f"Snakemake cannot start jobs by {sys.executable}, since its path has a blank or a character of the "
            "shell; clone into another folder, and give the command again there"
        )


def plan_run(settings):
    """Read configuration, model list and papers; model entries of the working directory take precedence."""
    if workflow.modifier.is_main_snakefile():  # the files of an outer workflow have its own keys
        for file in filter(Path.is_file, map(Path, workflow.configfiles)):
            # A key that occurs twice is refused here; Snakemake takes its last value.
            read_yaml(file)
    return read_run(
        add_defaults(settings, WORKFLOW.parent / "config/config.yaml"),
        WORKFLOW.parent / "config/models",
        Path("config/models"),
        papers=read_papers(WORKFLOW / "papers"),
        say=say,
        is_closed=is_closed,
    )


hide_bars()  # the plan may import libraries that show progress bars
exit_on_input_error(require_environment)
RUN: Run = exit_on_input_error(plan_run, config)
SETTINGS = RUN.settings
MODELS = RUN.models
SEED = SETTINGS.seed


# All results lie under results/, or in a folder of the run there.
pathvars:
    results=f"results/{SETTINGS.run}" if SETTINGS.run else "results",
    logs="<results>/logs",
    benchmarks="<results>/benchmarks",


# --- Functions of rules -----------------------------------------------------------------------------


def ask_plan(function, *wildcards, **options):
    """Return a function for a rule, which calls `function` with the values of these wildcards."""

    def call(values):
        if {"model", "revision"} <= {*wildcards}:
            exit_on_input_error(RUN.require_checkpoint, values["model"], values["revision"])
        return exit_on_input_error(function, *(values[name] for name in wildcards), **options)

    return call


def ask_job(function, *wildcards):
    """Return a function for the parameter `job` of a rule, whose text the report shows unchanged.

    The job must be a NamedTuple. Snakemake does not compare a parameter that is a dataclass, so a changed dataclass
    would rerun nothing; Snakemake does compare a dataclass inside a NamedTuple.
    """

    def make_job(*values):
        return escape_for_report(function(*values))

    return ask_plan(make_job, *wildcards)


def match_any(names):
    """Return a wildcard constraint that admits only these names."""
    return "|".join(re.escape(name) for name in sorted(names)) or r"(?!)"


wildcard_constraints:
    source=match_any(SETTINGS.corpus.sources),
    model=match_any(MODELS),
    revision=r"[^/]+",
    layer=r"\d+",


def list_table_files(pairs):
    """List the files of tables by their kinds and models."""
    return [f"<results>/tables/{kind}/{model}.csv" for kind, model in pairs]


def find_makers(target):
    """Find the rules that make a file."""
    return [rule for rule in workflow.rules if rule.is_producer(target)]


ENDINGS = ("csv", "h5", "html", "json", "md", "pdf", "png", "txt", "yaml")


def suggest_target(target):
    """Write a sentence that suggests a target in place of a target that no rule makes; empty without a suggestion."""
    rules = [rule.name for rule in workflow.rules]
    if Path(target).name == target:
        return str(make_unknown_name_error(target, rules, "target", "the command line"))
    problem = f"the command line: no rule makes `{target}`"
    for part in re.split(r"[/.]", target):
        names = [*MODELS, *RUN.figures, *RUN.tables, *RESERVED_RUN_NAMES, *ENDINGS]
        for near_name in get_close_matches(part, names):
            near_target = target.replace(part, near_name)
            if near_name != part and find_makers(near_target):
                return f"{problem}; did you mean `{near_target}`?"
    for folder in map(str, Path(target).parents):
        for rule in find_makers(folder):
            wildcards = rule.get_wildcards(folder)
            try:
                RUN.require_checkpoint(wildcards["model"], wildcards["revision"])
            except (InputError, KeyError) as error:
                return str(error) if isinstance(error, InputError) else ""
            return f"{problem} alone; ask for all of `{folder}`"
    return ""


def explain_target(record):
    """Replace Snakemake's message on a target that no rule makes, if there is a better sentence."""
    match = re.search(r"No rule to produce (.+) \(if you use input functions", record.getMessage())
    if match and (sentence := suggest_target(match[1])):
        record.msg, record.args = f"ERROR: {sentence}", ()
    return True


# --- The text ---------------------------------------------------------------------------------------

_CORPUS = f"<results>/corpus/{SETTINGS.corpus.source}"
CLEAN_CORPUS = {"text": f"{_CORPUS}/text.txt", "alphabet": f"{_CORPUS}/alphabet.json"}


# --- Checkpoints: their files, and the windows that are run through them ----------------------------

# Files that several runs share lie in <resources>, where a job writes them under a lock. These files are no outputs of
# a rule, since Snakemake removes the outputs of a job before the job begins, while another run may read them. The
# output is a link.
SHARED_FOLDER = workflow.pathvars.apply("<resources>")
DOWNLOADS = "<results>/downloads"


def name_shared_place(folder, name, pin):
    """Name the place of a file or folder that runs with the same pin share."""
    return f"{SHARED_FOLDER}/{folder}/{name}-{hashlib.sha256(pin.encode()).hexdigest()[:12]}"


def list_weights_input(model, revision):
    """List the input of jobs that read a checkpoint: a download, or all steps of a training; empty for a folder."""
    return {
        "fetch_checkpoint": [f"{DOWNLOADS}/{model}/{revision}"],
        "pretrain_model": [f"<results>/pretrained/{model}"],
        "finetune_model": [f"<results>/finetuned/{model}"],
    }.get(MODELS[model].input_rule, [])


def find_weights_folder(model, revision, inputs):
    """Find the folder of a checkpoint.

    Rules pass it as a resource, not as a parameter: results do not depend on where the folder lies.
    """
    entry = MODELS[model]
    if isinstance(entry, FolderEntry):
        return entry.local_folders[revision]
    return str(Path(inputs[0], revision if entry.saved_steps else ""))


def find_tokenizer_folder(model, weights):
    """Find the tokenizer of a checkpoint: the folder that its entry names, or the folder of its weights."""
    entry = MODELS[model]
    return entry.tokenizer if isinstance(entry, FolderEntry) and entry.tokenizer else weights


def make_sampling_protocol(model):
    """Make the protocol by which windows are drawn and run through a model."""
    return SamplingProtocol(
        windows=SETTINGS.sampling.count_windows(MODELS[model].shape.hidden_size),
        window_characters=SETTINGS.sampling.window_characters,
        seed=SEED,
        precision=MODELS[model].precision or SETTINGS.forward.precision,
        last_layer=SETTINGS.forward.last_layer,
    )


def count_forward_threads(wildcards):
    """Return the number of cores of a forward pass: one for a small model, which more cores would not make faster."""
    shape = MODELS[wildcards.model].shape
    is_large = 12 * shape.layers * shape.hidden_size**2 > 50_000_000
    return SETTINGS.forward.threads if is_large else 1


# --- Resources of jobs ------------------------------------------------------------------------------


@cache
def estimate_needs(estimate, model, threads):
    """Estimate the needs of a job of a model by a function of plan/resources.py."""
    return estimate(MODELS[model], SETTINGS, threads)


def request_resources(estimate):
    """Return the memory and the time of a job, which grow at each attempt."""
    return {
        "mem_mb": lambda wildcards, threads, attempt: (
            estimate_needs(estimate, wildcards.model, threads).mem_mb(attempt)
        ),
        "runtime": lambda wildcards, threads, attempt: (
            estimate_needs(estimate, wildcards.model, threads).runtime(attempt)
        ),
    }


def ask_weights_folder(wildcards, input):
    """Find the folder of the checkpoint that a job reads."""
    return find_weights_folder(wildcards.model, wildcards.revision, input.get("checkpoint", []))


# No number depends on these values. They are resources, which Snakemake does not compare, so a change reruns nothing.
RUNTIME_RESOURCES = {
    "checkpoint": ask_weights_folder,
    "tokenizer": lambda wildcards, input: find_tokenizer_folder(
        wildcards.model, ask_weights_folder(wildcards, input)
    ),
    "gpu": 1,
}

# --- Measures and results ---------------------------------------------------------------------------


def make_measuring_protocol(model):
    """Make the protocol by which the hidden states of a model are measured."""
    measurement = SETTINGS.measurement
    return MeasuringProtocol(
        model=model,
        windows=SETTINGS.sampling.count_windows(MODELS[model].shape.hidden_size),
        seed=SEED,
        batch_vectors=measurement.batch_vectors,
        neighbours=measurement.neighbours,
        selection=Selection(
            special_tokens=measurement.special_tokens,
            first_token=measurement.first_token,
            token_types=measurement.token_types,
            massive_tokens=measurement.massive_tokens,
            same_window=measurement.same_window,
            sequence=measurement.sequence,
        ),
    )


# The measures of the matrices of a checkpoint.
WEIGHT_MEASURES = [RUN.all_measures[name] for name in RUN.weight_measures]
# All tables on the matrices and massive tokens of a checkpoint, also those that nothing reads: Snakemake compares no
# parameter of a job that has an output which it did not make before.
CHECKPOINT_TABLE_FILES = {
    folder: f"<results>/{folder}/{{model}}/{{revision}}.csv"
    for folder in dict.fromkeys(CHECKPOINT_TABLES.values())
}


def mark_temporary(output, is_kept):
    """Mark an output as temporary unless the configuration keeps it."""
    return output if is_kept else temp(output)


def list_in_report(path, category, caption, labels=None):
    """Mark a result for the report, with some labels or with the name of its file."""

    def name_file(wildcards):
        return {"result": Path(path.format(**wildcards)).stem.capitalize()}

    caption = f"../report/{caption}.rst"
    return report(path, category=category, caption=caption, labels=labels or name_file)


# These tables have a row per batch; a row per value, with its interval; and a row per pair of checkpoints.
GATHERED_TABLES = ("measurements", "estimates", "changes")
FIGURE_SUFFIXES = ("pdf", "png", "csv", "md")
