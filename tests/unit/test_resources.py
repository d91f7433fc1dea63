"""What is asked of a scheduler grows with what jobs take."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from shape_of_learning.plan import resources as needs

REPOSITORY = Path(__file__).parents[2]
LLAMA_2_7B = needs.Work(
    layers=32,
    hidden_size=4096,
    windows=128,
    window_characters=512,
    vocabulary=32_000,
    batch_tokens=4096,
    training_tokens=10**6,
    texts=1000,
    editing={
        **{"orders": ["alone"], "kinds": ["dropped", "all_distilled"], "most_blocks": 8},
        **{"fitting_windows": 512, "evaluation_windows": 256},
        **{"distillation_steps": 200, "distillation_windows": 8},
    },
)
FORMULAS = [
    *(needs.forward_memory, needs.layer_memory, needs.checkpoint_memory, needs.training_memory),
    *(needs.editing_memory, needs.forward_minutes, needs.layer_minutes, needs.checkpoint_minutes),
    *(needs.training_minutes, needs.editing_minutes, needs.task_minutes, needs.download_minutes),
]


def test_a_known_model_has_about_its_number_of_weights():
    # Llama-2-7B has 6.74e9, of which the output's 131 million are not shared with the input.
    assert LLAMA_2_7B.weights == pytest.approx(6.74e9, rel=0.04)


@pytest.mark.parametrize("formula", FORMULAS)
def test_needs_grow_with_the_width(formula):
    wider = replace(LLAMA_2_7B, hidden_size=8192)
    assert formula(wider, 8) > 1.2 * formula(LLAMA_2_7B, 8) > 0


def test_states_grow_with_the_sample_and_are_beside_the_weights_without_a_dump():
    assert replace(LLAMA_2_7B, windows=512).states_mb == pytest.approx(4 * LLAMA_2_7B.states_mb)
    kept = needs.checkpoint_memory(LLAMA_2_7B, 2) - LLAMA_2_7B.states_mb
    assert kept == needs.forward_memory(LLAMA_2_7B, 2)
    # Many threads measure more at a time than the weights of a small model take.
    small = replace(LLAMA_2_7B, layers=2, hidden_size=512)
    assert needs.checkpoint_memory(small, 32) > 32 * needs.layer_memory(small)


def test_more_is_asked_for_at_each_attempt():
    for ask in (needs.asked_mb, needs.asked_minutes):
        assert [ask(3000, attempt) for attempt in (1, 2, 3)] == [ask(3000) * n for n in (1, 2, 3)]
    assert needs.asked_mb(0) == needs.LEAST_MB


def test_a_model_that_no_card_holds_asks_for_several():
    assert needs.gpus(LLAMA_2_7B) == 1
    large = replace(LLAMA_2_7B, layers=80, hidden_size=8192)
    assert needs.gpus(large) > 3
    assert 1 < needs.gpus(replace(large, value_bytes=2)) < needs.gpus(large)


def test_rules_that_ask_for_a_gpu_are_sent_where_there_is_one():
    rules = "".join(path.read_text() for path in (REPOSITORY / "workflow").rglob("*.smk"))
    blocks = re.split(r"^ *(?:use rule \w+ as|rule) ", rules, flags=re.MULTILINE)[1:]
    asks = re.compile(r"^ +(gpu=|\*\*RUNNING|\*\*\{key: RUNNING)", re.MULTILINE)
    asking = {re.match(r"\w+", block)[0] for block in blocks if asks.search(block)}
    profile = yaml.safe_load((REPOSITORY / "workflow/profiles/slurm/profile.yaml").read_text())
    sent = {
        rule for rule, own in profile["set-resources"].items() if own["slurm_partition"] == "gpu"
    }
    assert asking == sent
