"""The longest jobs of the demo: what Snakemake has noted of them in `results/benchmarks` of this folder.

One run each, from the start of the interpreter to its end, beside the demo's other jobs, which keep the other
core busy. Memory is what Snakemake saw at looks that get rarer, up to 30 s apart; its processor times, which
miss what comes after the last look, are left out.
"""

import csv
from pathlib import Path

from benchmarks.contest import ROOT, Measured
from benchmarks.results import Results
from benchmarks.targets import Target

TITLE = "Jobs of the demo"
NOTED = ROOT / "results" / "benchmarks"
EDITING, PLAIN, TWIN = "edit_blocks", "pretrain_model", "pretrain_model, regularised"
FINETUNING = "finetune_model"
# Model -> job -> its file.
JOBS = {
    "demo-decoder": {PLAIN: "pretrained", EDITING: "tables/edits"},
    "demo-twin": {TWIN: "pretrained"},
    "demo-encoder": {PLAIN: "pretrained"},
    "demo-encoder-topic": {FINETUNING: "finetuned", "measure_on_task": "tables/finetuning"},
    "demo-decoder-topic": {FINETUNING: "finetuned"},
}
OWN = (EDITING, PLAIN, TWIN, FINETUNING, "measure_on_task")


def measure(folder: Path, tiny: bool, repeats: int | None) -> list[Measured]:
    """Read what the last run of the demo left."""
    return [
        noted(model, job, NOTED / place / f"{model}.tsv")
        for model, jobs in JOBS.items()
        for job, place in jobs.items()
    ]


def noted(model: str, job: str, file: Path) -> Measured:
    """Read one job's row."""
    if not file.exists():
        return Measured(model, job, note="not measured: run `make demo` first")
    with file.open(newline="") as lines:
        (row,) = csv.DictReader(lines, delimiter="\t")
    return Measured(
        model,
        job,
        seconds=float(row["s"]),
        peak_gb=float(row["max_rss"]) * 2**20 / 1e9,
        threads=1,
        repeats=1,
    )


def as_long(results: Results) -> float:
    """How many times as long as the plain pretraining its regularised twin takes."""
    return results["demo-twin", TWIN].seconds / results["demo-decoder", PLAIN].seconds


TARGETS = [
    Target("changing blocks", 60, lambda results: results["demo-decoder", EDITING].seconds, " s"),
    *(
        Target(
            f"fine-tuning {model}",
            60,
            lambda results, model=model: results[model, FINETUNING].seconds,
            " s",
        )
        for model in ("demo-encoder-topic", "demo-decoder-topic")
    ),
    Target("a regularised twin, against the plain one", 1.4, as_long, " times its time"),
]
AGREEMENTS: list[object] = []
