"""What is asked of a scheduler covers what jobs take, and the page says what is asked."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import yaml

from shape_of_learning.plan import resources as needs
from shape_of_learning.plan import task_resources as task_needs

REPOSITORY = Path(__file__).parents[2]
SCRIPTS = REPOSITORY / "workflow/scripts"
LLAMA_2_7B = needs.Work(
    layers=32, hidden_size=4096, windows=128, window_characters=512, vocabulary=32_000
)


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
    asks = re.compile(r"^ +(gpu=|\*\*SAMPLE_RESOURCES)", re.MULTILINE)
    asking = {re.match(r"\w+", block)[0] for block in blocks if asks.search(block)}
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
