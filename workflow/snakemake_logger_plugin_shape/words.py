"""What a job is called on the terminal."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

# What the jobs of a rule make. A rule that is not listed is called by its name and its wildcards.
WORDS = {
    "fetch_corpus": "download of the text {source}",
    "write_python_topics": "text {source}",
    "clean_corpus": "cleaned text {source}",
    "make_task": "examples of the task {task}",
    "check_checkpoints": "list of the checkpoints of {model}",
    "fetch_checkpoint": "download of {model} at {revision}",
    "pretrain_model": "pretraining of {model}",
    "finetune_model": "fine-tuning of {model}",
    "dump_embeddings": "hidden states of {model} at {revision}",
    "measure": "{family} of {model} at {revision}, layer {layer}",
    "measure_checkpoint": "measures of {model} at {revision}",
    "measure_controls": "null models of {model} at {revision}",
    "measure_choices": "other choices of analysis for {model} at {revision}",
    "measure_on_task": "measures of {model} on its task",
    "edit_blocks": "losses of {model} with changed blocks",
    "judge_checkpoints": "verdicts on the checkpoints of {model}",
    "gather_model": "tables of {model}",
    "gather_weights": "table {kind} of {model}",
    "gather_controls": "table of null models of {model}",
    "gather_tables": "table {table} of all models",
    "draw_figure": "{figure}",
    "write_table": "{table}",
    "judge_claims": "verdicts on the claims of {paper}",
    "judge_choices": "specification curve of the claim {claim}",
    "gather_choices": "choices that flip verdicts",
    "gather_claims": "verdicts on the claims of all papers",
    "write_findings": "findings",
    "draw_explorer": "explorer",
    "provenance": "provenance of the results",
}
# Jobs that take minutes and measure nothing yet: the terminal says when one begins.
LONG = {"fetch_corpus", "fetch_checkpoint", "pretrain_model", "finetune_model"}
NAMES = {"two_nn": "TwoNN", "mada": "MADA", "mom": "MOM", "mle": "MLE"}


def strip_prefix(rule: str) -> str:
    """The name of a rule in `WORDS`, where another workflow may have put a prefix before it."""
    return next((name for name in WORDS if f"_{rule}".endswith(f"_{name}")), rule)


def describe_job(rule: str, wildcards: Mapping[str, str]) -> str:
    """What a job makes, before it has made it."""
    shown = {key: re.sub(r"^step(?=\d)", "step ", value) for key, value in wildcards.items()}
    try:
        return WORDS[strip_prefix(rule)].format(**shown)
    except KeyError:
        return " ".join([rule, *wildcards.values()])


def describe_outputs(words: str, outputs: Iterable[str]) -> str:
    """The same of a job that has measured something: which measures, of which layers, as its tables say."""
    found = [file for each in map(Path, outputs) for file in [each, *each.rglob("*.csv")]]
    files = {file: int(file.stem[6:]) for file in found if re.fullmatch(r"layer_\d+", file.stem)}
    rows = [row for file in files for row in file.read_text(encoding="utf-8").splitlines()[1:]]
    if not rows:
        return words
    names = [NAMES.get(name, name) for name in dict.fromkeys(row.split(",")[0] for row in rows)]
    what = f"{len(names)} measures" if len(names) > 3 else " and ".join(names)
    first, last = min(files.values()), max(files.values())
    where = f"layer {first}" if first == last else f"layers {first} to {last}"
    return re.sub(r"^.*? of ([^,]*).*", rf"{what} of \1, {where}", words)
