"""What is asked of a scheduler covers what jobs take, and the page says what is asked."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pytest
import transformers
import yaml

from shape_of_learning.embeddings.run import SamplingProtocol
from shape_of_learning.metrics.registry import MEASURES
from shape_of_learning.metrics.selections import Selection
from shape_of_learning.plan import resources as needs
from shape_of_learning.plan import task_resources as task_needs
from shape_of_learning.storage.digests import add_digest
from tiny_models import save_stirred_model

REPOSITORY = Path(__file__).parents[2]
SCRIPTS = REPOSITORY / "workflow/scripts"
LLAMA_2_7B = needs.Work(
    layers=32, hidden_size=4096, windows=128, window_characters=512, vocabulary=32_000
)


def test_the_page_shows_what_the_rules_ask():
    written = subprocess.run(
        [sys.executable, REPOSITORY / "docs/write_resources.py"],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "workflow")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    page = (REPOSITORY / "docs/resources.md").read_text()
    assert page == written, "run `make docs/resources.md`"


def test_a_known_model_has_about_its_number_of_weights():
    # Llama-2-7B has 6.74e9, of which the output's 131 million are not shared with the input.
    assert LLAMA_2_7B.weights == pytest.approx(6.74e9, rel=0.04)


def test_more_is_asked_for_at_each_attempt():
    in_group = partial(needs.asked_minutes_in_group, starts=True)
    for ask in (needs.asked_mb, needs.asked_minutes, in_group):
        assert [ask(3000, attempt) for attempt in (1, 2, 3)] == [ask(3000) * n for n in (1, 2, 3)]


def test_even_the_smallest_group_has_time_to_start():
    assert needs.asked_minutes_in_group(0.0, starts=True) > needs.START_MINUTES
    assert needs.asked_minutes_in_group(0.0, starts=False) == 1


def test_needs_grow_with_the_model_and_with_the_sample():
    bigger = (
        replace(LLAMA_2_7B, layers=64),
        replace(LLAMA_2_7B, hidden_size=8192),
        replace(LLAMA_2_7B, windows=512),
    )

    def states_mb(work: needs.Work) -> float:
        return needs.dump_mb(work) - needs.matrices_mb(work)

    for work in bigger:
        assert states_mb(work) > 1.9 * states_mb(LLAMA_2_7B)
        assert needs.forward_minutes(work, on_gpu=True) > needs.forward_minutes(
            LLAMA_2_7B, on_gpu=True
        )


def test_a_model_that_no_card_holds_asks_for_several():
    assert needs.gpus(LLAMA_2_7B) == 1
    assert needs.gpus(replace(LLAMA_2_7B, layers=80, hidden_size=8192)) > 3
    assert needs.gpus(replace(LLAMA_2_7B, layers=80, hidden_size=8192, precision="bfloat16")) > 1


def test_rules_that_ask_for_a_gpu_are_sent_where_there_is_one():
    rules = "".join(path.read_text() for path in (REPOSITORY / "workflow").rglob("*.smk"))
    blocks = re.split(r"^(?:use rule \w+ as|rule) ", rules, flags=re.MULTILINE)[1:]
    asking = {re.match(r"\w+", block)[0] for block in blocks if re.search(r"^ +gpu=", block, re.M)}
    profile = yaml.safe_load((REPOSITORY / "workflow/profiles/slurm/profile.yaml").read_text())
    sent = {
        rule for rule, own in profile["set-resources"].items() if own["slurm_partition"] == "gpu"
    }
    assert asking == sent


def test_a_pretraining_on_a_gpu_has_its_activations_there():
    small, large = 2**10, 2**20
    for on_gpu in (False, True):
        taken = [needs.pretraining_memory_mb(LLAMA_2_7B, n, on_gpu=on_gpu) for n in (small, large)]
        assert (taken[0] == taken[1]) == on_gpu
        # Weights, and the copy that is saved.
        assert taken[0] > 2 * 4 * LLAMA_2_7B.weights / 1e6
    on_cpu, on_gpu = (
        needs.pretraining_minutes(LLAMA_2_7B, large, 8, on_gpu=each) for each in (False, True)
    )
    assert on_gpu < on_cpu


def test_a_task_that_is_made_says_how_much_it_takes(tmp_path):
    description, entry = tmp_path / "task.json", {"most": {"held_out": 50}}
    assert task_needs.examples_of(description, entry) == {"train": 10_000, "held_out": 50}
    description.write_text('{"metric": "accuracy", "train": 67349, "held_out": 872}')
    found = task_needs.examples_of(description, entry)
    assert found == {"train": 67349, "held_out": 872}
    small, large = (replace(LLAMA_2_7B, windows=windows) for windows in (1, 10_000))
    for ask in (
        lambda work: task_needs.task_memory_mb(work, found, 1),
        lambda work: task_needs.task_minutes(work, found, threads=1, on_gpu=False),
    ):
        assert ask(small) == ask(large)


def test_without_a_dump_memory_holds_all_layers_beside_the_weights():
    states = (LLAMA_2_7B.layers + 1) * LLAMA_2_7B.layer_mb
    for on_gpu in (False, True):
        dumped = needs.forward_memory_mb(LLAMA_2_7B, 2, on_gpu=on_gpu)
        assert needs.checkpoint_memory_mb(LLAMA_2_7B, 2, on_gpu=on_gpu) == dumped + states
    # Many threads measure more at a time than the weights of a small model take.
    small = replace(LLAMA_2_7B, layers=2, hidden_size=512)
    measuring = 16 * needs.neighbours_memory_mb(small)
    assert needs.checkpoint_memory_mb(small, 16) > measuring > needs.forward_memory_mb(small, 16)


def peak_megabytes(*command: object) -> float:
    """Largest resident memory of a job; raises if it fails."""
    code = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    # Without a GPU, whose libraries alone take more memory of the host than these jobs.
    environment = {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY / "workflow"),
        "CUDA_VISIBLE_DEVICES": "",
    }
    for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        environment[threads] = "1"
    run = subprocess.run(
        [sys.executable, "-c", code, sys.executable, *map(str, command)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return int(run.stdout.split()[-1]) * 1024 / 1e6


@pytest.mark.parametrize(("tokens", "hidden_size"), [(8_191, 1024), (20_000, 256)])
def test_measurements_take_no_more_memory_than_they_ask_for(tmp_path, tokens, hidden_size):
    values = np.random.default_rng(0).standard_normal((tokens, hidden_size), dtype=np.float32)
    values[:, 0] = 0  # at worst all rows must be compared whole to be told apart
    with h5py.File(tmp_path / "layer_0.h5", "w") as file:
        file["embeddings"] = values
        file["positions"] = np.ones(tokens, dtype=int)
        file["token_ids"] = np.ones(tokens, dtype=int)
        file["special"] = np.arange(tokens) % 512 == 0
        file["windows"] = np.arange(tokens) * 128 // tokens
    add_digest(tmp_path / "layer_0.h5")
    work = needs.Work(
        layers=1, hidden_size=hidden_size, windows=128, window_characters=tokens * 3 // 128
    )
    # One row in 512 is left out, so that the others are a second copy.
    rows = (
        "--selection", Selection(special_tokens="drop").to_json(), "--batch-vectors", 4000,
        "--protocol", SamplingProtocol(128, 0, 0).to_json(),
    )  # fmt: skip

    def peak_of_measure(name, folder):
        return peak_megabytes(
            SCRIPTS / "measure.py", *rows, "--folder", folder, "--layers", 0, "--measure",
            MEASURES[name].chosen(name, {}).to_json(), "--output", tmp_path / "values.csv",
            "--left-out", tmp_path / "left_out.csv",
        )  # fmt: skip

    layer = ("--embeddings", tmp_path / "layer_0.h5", *rows)
    neighbours = peak_megabytes(
        SCRIPTS / "find_neighbours.py", *layer, "--model", "m", "--neighbours", 128,
        "--output", tmp_path / "neighbours/layer_0.h5",
    )  # fmt: skip
    spectra = peak_megabytes(SCRIPTS / "find_spectra.py", *layer, "--output", tmp_path / "s.h5")
    assert neighbours < needs.neighbours_memory_mb(work) * needs.MARGIN
    assert spectra < needs.isotropy_memory_mb(work) * needs.MARGIN
    asked = needs.measure_memory_mb(work, "vectors")
    assert peak_of_measure("anisotropy", tmp_path) < asked * needs.MARGIN
    asked = needs.measure_memory_mb(work, "neighbours")
    assert peak_of_measure("mle", tmp_path / "neighbours") < asked * needs.MARGIN


def test_measuring_in_memory_takes_no_more_memory_than_it_asks_for(tmp_path):
    work = needs.Work(
        layers=20, hidden_size=256, windows=60, window_characters=512, vocabulary=300,
        batch_vectors=500,
    )  # fmt: skip
    configuration = transformers.GPTNeoXConfig(
        vocab_size=300, hidden_size=256, num_hidden_layers=20, num_attention_heads=2,
        intermediate_size=512, max_position_embeddings=512,
    )  # fmt: skip
    checkpoint = save_stirred_model(tmp_path / "model", "gpt_neox", configuration)
    text = tmp_path / "text.txt"
    text.write_text("the shape of what a model learns; layers, tokens, windows. " * 2000)
    shape = {"role": "decoder", "layers": 20, "hidden_size": 256, "last_hidden_size": 256}
    measurement = {
        "measures": [MEASURES[name].chosen(name, {}).to_json() for name in ("anisotropy", "mle")],
        "selection": Selection().to_json(),
        "batch_vectors": work.batch_vectors,
        "neighbours": 128,
    }
    measured = peak_megabytes(
        SCRIPTS / "measure_checkpoint.py", "--checkpoint", checkpoint, "--text", text,
        "--model", "m", "--revision", "main", "--shape", json.dumps(shape), "--protocol",
        SamplingProtocol(work.windows, work.window_characters, 0).to_json(), "--threads", 2,
        "--measurement", json.dumps(measurement), "--output", tmp_path / "anisotropy.csv",
        tmp_path / "mle.csv", "--left-out", tmp_path / "left_out/anisotropy.csv",
        tmp_path / "left_out/mle.csv", "--loss", tmp_path / "loss.csv", "--tensors",
        tmp_path / "t.csv", "--log", tmp_path / "log",
    )  # fmt: skip
    # Half of it is PyTorch: that the rest is right is seen in the large.
    assert measured < needs.checkpoint_memory_mb(work, 2) * needs.MARGIN
    assert len((tmp_path / "mle.csv").read_text().splitlines()) > 21
    assert len((tmp_path / "left_out/mle.csv").read_text().splitlines()) == 22
