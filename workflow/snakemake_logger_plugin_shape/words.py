"""The words for jobs on the terminal."""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import yaml

PAPERS = Path(__file__).resolve().parents[1] / "papers"


def read_words(papers: Path) -> dict[str, str]:
    """Read the words for the jobs of papers, under key ``jobs`` of their ``paper.yaml``."""
    words: dict[str, str] = {}
    for rules in sorted(papers.glob("*/rules.smk")):
        text = rules.with_name("paper.yaml").read_text(encoding="utf-8")
        # The workflow itself refuses an invalid file with one sentence.
        with suppress(yaml.YAMLError):
            content = yaml.safe_load(text)
            jobs = content.get("jobs") if isinstance(content, dict) else None
            words |= jobs if isinstance(jobs, dict) else {}
    return words


# The name of a rule -> the words for the results of its jobs. A rule that is missing here appears with its name and its
# wildcards.
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
    **read_words(PAPERS),
}
# Jobs of these rules take minutes before any measurement, so the terminal also shows when they begin.
LONG = {"fetch_corpus", "fetch_checkpoint", "pretrain_model", "finetune_model"}
NAMES = {"two_nn": "TwoNN", "mada": "MADA", "mom": "MOM", "mle": "MLE"}


def strip_prefix(rule: str) -> str:
    """Return the name of a rule in `WORDS`, without a prefix that another workflow puts before it."""
    return next((name for name in WORDS if f"_{rule}".endswith(f"_{name}")), rule)


def describe_job(rule: str, wildcards: Mapping[str, str]) -> str:
    """Describe a job by the results that it will have."""
    values = {key: re.sub(r"^step(?=\d)", "step ", value) for key, value in wildcards.items()}
    try:
        return WORDS[strip_prefix(rule)].format(**values)
    except KeyError:
        return " ".join([rule, *wildcards.values()])


def describe_outputs(words: str, outputs: Iterable[str]) -> str:
    """Describe a finished job by its words, or by the measures and layers in its tables if it measured layers."""
    files = [file for output in map(Path, outputs) for file in [output, *output.rglob("*.csv")]]
    layers = {file: int(file.stem[6:]) for file in files if re.fullmatch(r"layer_\d+", file.stem)}
    rows = [row for file in layers for row in file.read_text(encoding="utf-8").splitlines()[1:]]
    if not rows:
        return words
    names = [NAMES.get(name, name) for name in dict.fromkeys(row.split(",")[0] for row in rows)]
    measures = f"{len(names)} measures" if len(names) > 3 else " and ".join(names)
    first, last = min(layers.values()), max(layers.values())
    place = f"layer {first}" if first == last else f"layers {first} to {last}"
    return re.sub(r"^.*? of ([^,]*).*", rf"{measures} of \1, {place}", words)
