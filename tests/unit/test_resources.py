"""What is asked of a scheduler grows with what jobs take."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from shape_of_learning.files import read_yaml
from shape_of_learning.plan import resources as needs
from shape_of_learning.plan.models import read_entries, read_models

REPOSITORY = Path(__file__).parents[2]
SETTINGS = read_yaml(REPOSITORY / "config/config.yaml")
ENTRIES = read_entries(REPOSITORY / "config/models")
LLAMA_2_7B = replace(
    needs.measuring(read_models(ENTRIES, ["llama-2-7b"])["llama-2-7b"], SETTINGS),
    step_tokens=4096,
    training_tokens=10**6,
)
FORMULAS = [
    *(needs.forward_memory, needs.layer_memory, needs.checkpoint_memory, needs.training_memory),
    *(needs.editing_memory, needs.forward_minutes, needs.layer_minutes, needs.checkpoint_minutes),
    needs.training_minutes,
]


def wide(work):
    return replace(work, hidden_size=2 * work.hidden_size, weights=4 * work.weights)


def test_a_known_model_has_about_its_number_of_weights():
    # Llama-2-7B has 6.74e9, of which the output's 131 million are not shared with the input.
    # The bound on its vocabulary is BLOOM's.
    assert 6.74e9 < LLAMA_2_7B.weights < 1.15 * 6.74e9


@pytest.mark.parametrize("formula", FORMULAS)
def test_needs_grow_with_the_width(formula):
    assert formula(wide(LLAMA_2_7B), 8) > 1.2 * formula(LLAMA_2_7B, 8) > 0


def test_states_grow_with_the_sample_and_are_beside_the_weights_without_a_dump():
    assert replace(LLAMA_2_7B, tokens=512 * 171).states_mb == pytest.approx(
        4 * LLAMA_2_7B.states_mb
    )
    kept = needs.checkpoint_memory(LLAMA_2_7B, 2) - LLAMA_2_7B.states_mb
    assert kept == needs.forward_memory(LLAMA_2_7B, 2)
    # Many threads measure more at a time than the weights of a small model take.
    small = replace(LLAMA_2_7B, layers=2, hidden_size=512, weights=10**6)
    assert needs.checkpoint_memory(small, 32) > 32 * needs.layer_memory(small)


def test_a_model_that_no_card_holds_asks_for_several():
    assert needs.gpus(LLAMA_2_7B) == 1
    large = wide(LLAMA_2_7B)
    large = replace(large, layers=80, weights=large.weights * 80 // 32)
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
