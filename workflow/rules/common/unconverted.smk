"""What the rules of the corpus, of tasks and of the explorer still ask for."""

import json
import os

from shape_of_learning.plan.corpus_receipt import check_receipt
from shape_of_learning.script_arguments.settings import export_plumbing_settings, without_plumbing

CONFIGURATION, PAPERS, FIGURES, TABLES = RUN.configuration, RUN.papers, RUN.figures, RUN.tables
science, is_judged, name_in_paper = code, RUN.is_judged, RUN.name_in_paper
os.environ.update(SCRIPTS=str(WORKFLOW / "scripts"))
shell.prefix('set -euo pipefail; export PYTHONPATH="${{SCRIPTS%/*}}" PYTHONNOUSERSITE=1; ')
RESULTS = "/".join(filter(None, ["results", SETTINGS["run"]]))


def setting(section, key):
    return SETTINGS[section][key]


def own_path(path):
    return path.replace("<results>", RESULTS).replace("<resources>", "resources")


def runs_beside_snakemake(rule):
    return True


def fail(reason):
    raise SystemExit(f"ERROR: {reason}") from None


def checkpoints(name):
    return at_the_door(RUN.checkpoints, name)


def tables_in_the_run(kind):
    return paths("<results>/tables/{kind}/{model}.csv", RUN.tables_read([kind]))


def cleaning_memory(wildcards, threads, attempt):
    return needs.asked_mb(needs.NUMPY_MB * (1 + threads), attempt)


def cleaning_minutes(wildcards, attempt):
    return needs.asked_minutes(needs.CLEANING_MINUTES, attempt)


export_plumbing_settings(SETTINGS, {})
at_the_door(
    check_receipt,
    setting("corpus", "source"),
    setting("corpus", "sources")[setting("corpus", "source")],
    Path(own_path(f"{_CORPUS}/source.json")),
)


include: "corpus.smk"
include: "tasks.smk"
include: "explorer.smk"
