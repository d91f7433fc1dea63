"""What all rules share: the run that the configuration asks for, and how jobs are told of it.

RUN (shape_of_learning/plan/run.py) knows the models and their checkpoints, what is measured of each, and what figures,
tables and claims read. Rules ask it by `ask_plan`, which calls a function with wildcards.

What is nearer to a figure has the higher `priority`: the first figures are there long before the last checkpoint, and
downloaded weights and hidden states are measured and removed before others come.
"""

import hashlib
import re
import sys
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from snakemake.logging import logger

import shape_of_learning
from shape_of_learning.errors import InputError, escape_controls
from shape_of_learning.files import read_yaml
from shape_of_learning.job import hide_bars
from shape_of_learning.embeddings.protocol import SamplingProtocol
from shape_of_learning.metrics.protocol import MeasuringProtocol, Selection
from shape_of_learning.plan import resources as needs
from shape_of_learning.plan.entries import FolderEntry
from shape_of_learning.plan.jobs import digest_code, digest_measures, escape_for_report
from shape_of_learning.plan.papers import read_papers
from shape_of_learning.plan.run import (
    WEIGHT_TABLES,
    Run,
    add_defaults,
    collect_suspect_limits,
    is_closed,
    read_run,
)
from shape_of_learning.plan.settings import FOLDERS
from shape_of_learning.validation import make_unknown_name_error

WORKFLOW = Path(shape_of_learning.__file__).parents[1]


# --- The run ----------------------------------------------------------------------------------------


def say(line):
    """Tell the user how planning goes on."""
    print(escape_controls(line), file=sys.stderr, flush=True)


def exit_on_input_error(function, *arguments, **options):
    """Call a function; what it refuses ends Snakemake with one sentence, and not with where it was raised."""
    try:
        return function(*arguments, **options)
    except InputError as error:
        raise SystemExit(f"ERROR: {error}") from None


def plan_run(given):
    """Read configuration, model list and papers; entries of the working directory go first."""
    for file in filter(Path.is_file, map(Path, workflow.configfiles)):
        read_yaml(file)  # of keys that are there twice Snakemake has kept the last
    return read_run(
        add_defaults(given, WORKFLOW.parent / "config/config.yaml"),
        *(WORKFLOW.parent / "config/models", Path("config/models")),
        papers=read_papers(WORKFLOW / "papers"),
        say=say,
        is_closed=is_closed,
    )


hide_bars()  # before planning imports libraries, to ask the Hub or to unpack a model
RUN: Run = exit_on_input_error(plan_run, config)
SETTINGS = RUN.settings
MODELS = RUN.models
SEED = SETTINGS["seed"]


# Everything that is made lies under results/, or in a folder of the run there.
pathvars:
    results=f"results/{SETTINGS['run']}" if SETTINGS["run"] else "results",
    logs="<results>/logs",
    benchmarks="<results>/benchmarks",


# --- How jobs are told of it ------------------------------------------------------------------------


def ask_plan(function, *wildcards, **options):
    """A function of a rule, which calls another one with the values of these wildcards."""

    def call(found):
        if {"model", "revision"} <= {*wildcards}:
            exit_on_input_error(RUN.require_measured, found["model"], found["revision"])
        return exit_on_input_error(function, *(found[name] for name in wildcards), **options)

    return call


def ask_job(function, *wildcards):
    """The parameter `job` of a rule: one object, whose text the report shows as it is.

    It is a NamedTuple. Snakemake compares no parameter that is a dataclass, so a changed one would rerun nothing.
    """

    def make_job(*values):
        return escape_for_report(function(*values))

    return ask_plan(make_job, *wildcards)


def match_any(names):
    """Wildcard constraint that admits just these names."""
    return "|".join(re.escape(name) for name in sorted(names)) or r"(?!)"


wildcard_constraints:
    source=match_any(SETTINGS["corpus"]["sources"]),
    model=match_any(MODELS),
    revision=r"[^/]+",
    layer=r"\d+",


def list_paths(pattern, pairs):
    """Files of pairs of kinds and models."""
    return [pattern.format(kind=kind, model=model) for kind, model in pairs]


def find_makers(target):
    """The rules that make a file."""
    return [rule for rule in workflow.rules if rule.is_producer(target)]


ENDINGS = ("csv", "h5", "html", "json", "md", "pdf", "png", "txt", "yaml")


def suggest_target(target):
    """Say what there is in the place of a target that no rule makes; nothing if nothing is near."""
    rules = [rule.name for rule in workflow.rules]
    if Path(target).name == target:
        return str(make_unknown_name_error(target, rules, "target", "the command line"))
    problem = f"the command line: no rule makes `{target}`"
    for part in re.split(r"[/.]", target):
        known = [*MODELS, *RUN.figures, *RUN.tables, *FOLDERS, *ENDINGS]
        for near in get_close_matches(part, known):
            if near != part and find_makers(other := target.replace(part, near)):
                return f"{problem}; did you mean `{other}`?"
    for folder in map(str, Path(target).parents):
        for rule in find_makers(folder):
            found = rule.get_wildcards(folder)
            try:
                RUN.require_measured(found["model"], found["revision"])
            except (InputError, KeyError) as error:
                return str(error) if isinstance(error, InputError) else ""
            return f"{problem} alone; ask for all of `{folder}`"
    return ""


def explain_target(record):
    """Change what Snakemake says of a target that no rule makes, where something is near."""
    missing = re.search(
        r"No rule to produce (.+) \(if you use input functions", record.getMessage()
    )
    if missing and (sentence := suggest_target(missing[1])):
        record.msg, record.args = f"ERROR: {sentence}", ()
    return True


# --- The text ---------------------------------------------------------------------------------------

_CORPUS = f"<results>/corpus/{SETTINGS['corpus']['source']}"
CLEAN_CORPUS = {"text": f"{_CORPUS}/text.txt", "alphabet": f"{_CORPUS}/alphabet.json"}


# --- Checkpoints: where they are, and what is run through them --------------------------------------

# What other runs may share lies in <resources>, where a job puts it under a lock. It is no output of a rule, since
# Snakemake removes the outputs of a job before it begins, while another run may read them: the output is a link.
SHARED = workflow.pathvars.apply("<resources>")
DOWNLOADS = "<results>/downloads"


def name_shared_place(folder, name, pin):
    """Where runs that ask for the same content share it."""
    return f"{SHARED}/{folder}/{name}-{hashlib.sha256(pin.encode()).hexdigest()[:12]}"


def weights_input(model, revision):
    """What a checkpoint's job waits for: a download, or all steps of a training; nothing for folders of the user's."""
    return {
        "fetch_checkpoint": [f"{DOWNLOADS}/{model}/{revision}"],
        "pretrain_model": [f"<results>/pretrained/{model}"],
        "finetune_model": [f"<results>/finetuned/{model}"],
    }.get(MODELS[model].input_rule, [])


def weights_folder(model, revision, waited_for):
    """Where a job finds the files of a checkpoint: no parameter, since its place decides no number."""
    entry = MODELS[model]
    if isinstance(entry, FolderEntry):
        return entry.local_folders[revision]
    return str(Path(waited_for[0], revision if entry.saved_steps else ""))


def tokenizer_folder(model, weights):
    """Find the tokenizer of a checkpoint: beside its weights, but for folders of the user's that have none."""
    return (
        MODELS[model].tokenizer
        if MODELS[model].kind == "path" and MODELS[model].tokenizer
        else weights
    )


def make_sampling_protocol(model):
    """Say how windows are drawn and run through a model."""
    return SamplingProtocol(
        windows=MODELS[model].count_windows(SETTINGS["sampling"]),
        window_characters=SETTINGS["sampling"]["window_characters"],
        seed=SEED,
        precision=MODELS[model].precision or SETTINGS["forward"]["precision"],
        last_layer=SETTINGS["forward"]["last_layer"],
    )


def forward_threads(wildcards):
    """Cores for a forward pass, which changes no number; below some size, more than one would not pay."""
    shape = MODELS[wildcards.model].shape
    is_large = 12 * shape.layers * shape.hidden_size**2 > 50_000_000
    return SETTINGS["forward"]["threads"] if is_large else 1


# --- What jobs ask of a scheduler -------------------------------------------------------------------


@cache
def estimate_needs(job, model, threads):
    """What a job takes, by a formula of plan/resources.py."""
    return job(MODELS[model], SETTINGS, threads)


def request_resources(job):
    """What is asked for it, more at each attempt."""
    return {
        "mem_mb": lambda wildcards, threads, attempt: (
            estimate_needs(job, wildcards.model, threads).mem_mb(attempt)
        ),
        "runtime": lambda wildcards, threads, attempt: (
            estimate_needs(job, wildcards.model, threads).runtime(attempt)
        ),
    }


def find_weights(wildcards, input):
    return weights_folder(wildcards.model, wildcards.revision, input.get("checkpoint", []))


# What no number depends on, so that to change it makes nothing anew.
RUNTIME_PARAMS = {
    "checkpoint": find_weights,
    "tokenizer": lambda wildcards, input: tokenizer_folder(
        wildcards.model, find_weights(wildcards, input)
    ),
    "gpu": 1,
}

# --- What is measured, and how readers call it ------------------------------------------------------


def make_measuring_protocol(model):
    """Say how the hidden states of a model are measured."""
    measurement = SETTINGS["measurement"]
    return MeasuringProtocol(
        model=model,
        windows=MODELS[model].count_windows(SETTINGS["sampling"]),
        seed=SEED,
        batch_vectors=measurement["batch_vectors"],
        neighbours=measurement["neighbours"],
        selection=Selection(
            special_tokens=measurement["special_tokens"],
            first_token=measurement["first_token"],
            token_types=measurement["token_types"],
            massive_tokens=measurement["massive_tokens"],
            same_window=measurement["same_window"],
            sequence=measurement["sequence"],
        ),
    )


# Measures of weights decide what a checkpoint's own matrices are measured by.
WEIGHT_MEASURES = [RUN.every_measure[name] for name in RUN.weight_measures]
WEIGHT_FILES = {
    folder: f"<results>/{folder}/{{model}}/{{revision}}.csv"
    for folder in dict.fromkeys(WEIGHT_TABLES.values())
    if any(map(RUN.list_weight_models, WEIGHT_TABLES))
}


def list_in_report(path, category, caption, labels=None):
    """A result that the report lists, with these labels or the name of its file."""

    def named(wildcards):
        return {"result": Path(path.format(**wildcards)).stem.capitalize()}

    caption = f"../report/{caption}.rst"
    return report(path, category=category, caption=caption, labels=labels or named)


# Per batch; per value, with its interval; per pair of checkpoints.
GATHERED = ("measurements", "estimates", "changes")
FIGURE_SUFFIXES = ("pdf", "png", "csv", "md")
