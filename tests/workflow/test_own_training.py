"""A user's training run, as the library's Trainer saves it, becomes a curve."""

import shutil
import sys
from pathlib import Path

import pytest
import torch
import transformers

from checkouts import Checkout, check_out
from tiny_models import CONFIGURATIONS, TEXT, save_tokenizer

RUN = "my \"run\" {a} $(touch X) 'ü'"
STEPS = (2, 4, 6)
CONFIGURATION = ("--configfile", "config/demo.yaml", "own.yaml", "--cores", "2")


def train(folder: Path) -> None:
    """Train a small decoder for six updates, and save every second one."""
    save_tokenizer(folder / "words")
    words = transformers.AutoTokenizer.from_pretrained(folder / "words")
    ids = words("".join(TEXT * 40))["input_ids"]
    examples = [
        dict.fromkeys(("input_ids", "labels"), part) for part in torch.tensor(ids[:512]).split(32)
    ]
    torch.manual_seed(0)
    transformers.Trainer(
        model=transformers.AutoModelForCausalLM.from_config(CONFIGURATIONS["gpt_neox"]()),
        args=transformers.TrainingArguments(
            folder / "run",
            max_steps=STEPS[-1],
            save_steps=2,
            per_device_train_batch_size=2,
            use_cpu=True,
            report_to=[],
            disable_tqdm=True,
        ),
        train_dataset=examples,
        processing_class=words,
        data_collator=transformers.default_data_collator,
    ).train()
    shutil.move(folder / "run", folder / RUN)


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory) -> Checkout:
    checkout = check_out(tmp_path_factory.mktemp("own") / "a \"b\" 'd' $(touch X) ü")
    train(checkout.folder)
    # Step 4 is saved twice, in different files.
    copy = checkout.folder / RUN / "checkpoint-5"
    shutil.copytree(checkout.folder / RUN / "checkpoint-4", copy)
    model = transformers.AutoModelForCausalLM.from_pretrained(copy)
    (copy / "model.safetensors").unlink()
    model.save_pretrained(copy, max_shard_size="40KB")
    training = {"steps": "all", "tokens_per_step": 64}
    entry = {"path": f"{RUN}/checkpoint-{{step}}", "training": training}
    checkout.write("config/models/own.yaml", {"mine": entry})
    settings = {
        "models": ["mine"],
        "sampling": {"windows": 24, "window_characters": 100},
        "measurement": {"batch_vectors": 1000},
        "figures": {"figure_2": "all", "figure_3": [], "figure_4": []},
    }
    checkout.write("own.yaml", settings)
    checkout.snakemake(
        *CONFIGURATION, "--quiet", "rules", "--", "figure_2", "results/tables/verdicts/mine.csv"
    )
    return checkout


def test_each_saved_step_is_a_point_of_the_curve(finished_run):
    drawn_rows = finished_run.read_rows("results/figures/figure_2.csv")
    # Steps 4 and 5 hold the same weights, which may belong to either.
    assert {row["step"] for row in drawn_rows} == {"2", "6"}
    assert len(list((finished_run.folder / RUN / "checkpoint-5").glob("*.safetensors"))) > 1
    verdict_rows = finished_run.read_rows("results/tables/verdicts/mine.csv")
    steps = [(row["revision"], row["step"], row["tokens"]) for row in verdict_rows]
    assert steps == [(f"step{n}", str(n), str(64 * n)) for n in (2, 4, 5, 6)]
    assert all(float(row["loss"]) > 0 for row in verdict_rows)
    assert not [path for path in finished_run.folder.rglob("X") if path.name == "X"]


def test_a_training_that_was_moved_or_goes_on_reruns_only_new_steps(finished_run, tmp_path):
    checkout = Checkout(tmp_path / "copy", Path(sys.executable))
    shutil.copytree(finished_run.folder, checkout.folder)
    assert checkout.plan_jobs("figure_2", *CONFIGURATION) == {}
    last = checkout.folder / RUN / "checkpoint-6"
    shutil.copytree(last, last.with_name("checkpoint-8"))
    jobs = checkout.plan_jobs("figure_2", *CONFIGURATION)
    # The new step, and the step that was the last, for which figures of last checkpoints needed more measures.
    assert jobs["measure_checkpoint"] == 2
