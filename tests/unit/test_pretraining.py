"""Pretraining: schedule, masking, determinism, and saved files."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import transformers

from shape_of_learning.embeddings.hooks import record_states
from shape_of_learning.errors import InputError
from shape_of_learning.training import pretrain as module
from shape_of_learning.training.job import PretrainingJob
from shape_of_learning.training.recipe import space_steps
from trainings import RECIPE, TEXT, make_recipe, read_record, run_in_another_process

STEPS = [0, 1, 2, 4, 8, 16, 24]
SHORT = {"last_step": 2, "warmup_steps": 1}


def test_steps_are_the_powers_of_two_below_the_last_and_the_last():
    assert list(map(space_steps, (1, 3, 8))) == [[0, 1], [0, 1, 2, 3], [0, 1, 2, 4, 8]]
    assert space_steps(24) == STEPS


def test_the_rate_of_a_pretraining_rises_linearly_and_falls_by_a_cosine_to_a_tenth():
    plan = make_recipe("bert", learning_rate=0.001, warmup_steps=10, last_step=110)
    expected = {0: 1e-4, 4: 5e-4, 9: 1e-3, 10: 1e-3, 35: 8.681980515339464e-4, 60: 5.5e-4}
    assert {step: plan.learning_rate_at(step) for step in expected} == pytest.approx(expected)
    assert plan.learning_rate_at(110) == pytest.approx(1e-4)


@pytest.fixture(scope="module", params=["gpt_neox", "bert"])
def pretrained_folder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp(request.param) / "model"
    module.pretrain(TEXT, make_recipe(request.param), model="tiny", destination=folder)
    return folder


def compare_files(*folders: Path) -> list[str]:
    first, again = (
        {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.*")}
        for folder in folders
    )
    assert first.keys() == again.keys()
    return [name for name in first if first[name] != again[name]]


def read_architecture(folder: Path) -> str:
    return json.loads((folder / "step0" / "config.json").read_text())["model_type"]


def test_each_step_loads_as_a_checkpoint_and_records_its_tokens(pretrained_folder):
    assert {path.name for path in pretrained_folder.iterdir()} == {f"step{step}" for step in STEPS}
    for step in STEPS:
        training_record = read_record(pretrained_folder / f"step{step}")
        assert (training_record["step"], training_record["tokens"]) == (step, step * 8 * 16)
    model = transformers.AutoModel.from_pretrained(pretrained_folder / "step24")
    tokenizer = transformers.AutoTokenizer.from_pretrained(pretrained_folder / "step24")
    inputs = tokenizer("The cat saw the river.", return_tensors="pt")
    hidden = model(**inputs, output_hidden_states=True).hidden_states
    assert [state.shape[-1] for state in hidden] == [32, 32, 32]
    # The record counts the characters of all training tokens, so that no held-out text begins among them.
    end, characters = training_record["training_tokens"], training_record["training_characters"]
    assert tokenizer.decode(module.tokenize_text(tokenizer, TEXT)[0][:end]) == TEXT[:characters]
    assert 0.9 < characters / len(TEXT) < 1
    # An encoder frames a text, a decoder does not.
    tokens = tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])
    assert (tokens[0] == "[CLS]" and tokens[-1] == "[SEP]") == (
        read_architecture(pretrained_folder) == "bert"
    )


def test_the_held_out_loss_falls_from_the_loss_of_guessing(pretrained_folder):
    vocabulary = len(transformers.AutoTokenizer.from_pretrained(pretrained_folder / "step0"))
    # Initial logits have a standard deviation below 0.02 sqrt(32) = 0.11 (of normed states), which
    # moves the expected cross-entropy by half its square; 0.1 nats allow for a sample of tokens.
    first = read_record(pretrained_folder / "step0")["loss"]
    assert first == pytest.approx(np.log(vocabulary), abs=0.1)
    assert read_record(pretrained_folder / "step24")["loss"] < first


@pytest.mark.long
def test_the_same_recipe_gives_the_same_bytes_in_another_process(pretrained_folder, tmp_path):
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    again, table = tmp_path / "again", tmp_path / "table.csv"
    job = PretrainingJob("tiny", make_recipe(read_architecture(pretrained_folder)))
    run_in_another_process(
        "pretrain_model", job, text=tmp_path / "text.txt", steps=again, table=table
    )
    assert compare_files(pretrained_folder, again) == []
    rows = pd.read_csv(table)
    assert rows.revision.tolist() == [f"step{step}" for step in STEPS]
    assert rows.held_out_loss.tolist() == [
        read_record(again / name)["loss"] for name in rows.revision
    ]


def test_another_seed_or_model_starts_from_other_weights_and_settings_of_torch_stay(
    pretrained_folder, tmp_path
):
    threads = torch.get_num_threads()
    settings = threads, torch.are_deterministic_algorithms_enabled()
    state = torch.get_rng_state()
    for model, seed in (("tiny", 8), ("other", RECIPE["seed"])):
        plan = make_recipe(
            read_architecture(pretrained_folder), seed=seed, threads=threads + 1, **SHORT
        )
        module.pretrain(TEXT, plan, model=model, destination=tmp_path / model)
        first, other = (
            folder / "step0/model.safetensors" for folder in (pretrained_folder, tmp_path / model)
        )
        assert first.read_bytes() != other.read_bytes()
    assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == settings
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"attention_heads": 3}, "attention_heads"),
        ({"warmup_steps": 24}, "warmup_steps"),
        ({"vocabulary": 260}, "vocabulary"),
        ({"context": 2000}, "context"),
        ({"regulariser": "cosine"}, "strength"),
        ({"strength": 0.5}, "strength"),
    ],
)
def test_an_impossible_recipe_is_refused_with_its_key(tmp_path, change, key):
    with pytest.raises(InputError, match=f"`pretraining.{key}`"):
        module.pretrain(
            TEXT, make_recipe("bert", **change), model="tiny", destination=tmp_path / "model"
        )
    assert not list(tmp_path.iterdir())


def test_tokenising_in_parts_keeps_any_text_and_counts_its_characters(monkeypatch):
    monkeypatch.setattr(module, "CHUNK_CHARACTERS", 1000)
    tokenizer = module.train_tokenizer(TEXT, make_recipe("gpt_neox"))
    odd = "Ωmega, 数学 \t and  two spaces\n"
    assert tokenizer.decode(tokenizer(odd).input_ids) == odd
    ids, ends = module.tokenize_text(tokenizer, TEXT)
    for tokens in (1, 500, len(ids) - 1, len(ids)):
        assert tokenizer.decode(ids[:tokens]) == TEXT[: ends[tokens - 1]]


def test_masking_follows_bert():
    """Shares within 5 standard errors of the binomial at 200,000 positions (Devlin et al. 2019)."""
    plan = make_recipe("bert", context=102)
    tokenizer = module.train_tokenizer(TEXT, plan)
    first, count = len(module.ENCODER_TOKENS), len(tokenizer)
    ids = np.random.default_rng(0).integers(first, count, 10_000)
    inputs, labels = module.draw_batch(ids, 2_000, np.random.default_rng(1), plan, tokenizer)
    assert (inputs[:, 0] == tokenizer.cls_token_id).all()
    assert (inputs[:, -1] == tokenizer.sep_token_id).all()
    assert (labels[:, [0, -1]] == module.IGNORED).all()
    is_chosen, mask = labels != module.IGNORED, tokenizer.mask_token_id
    assert is_chosen[:, 1:-1].mean() == pytest.approx(0.15, abs=5 * np.sqrt(0.15 * 0.85 / 200_000))
    error = 5 * np.sqrt(0.8 * 0.2 / (0.15 * 200_000))
    assert (inputs[is_chosen] == mask).mean() == pytest.approx(0.8, abs=error)
    # A tenth stays as it is; of the tenth that is replaced, a few draw their own token.
    same = 0.1 + 0.1 / (count - first)
    assert (inputs[is_chosen] == labels[is_chosen]).mean() == pytest.approx(same, abs=error)
    assert ((inputs == mask) <= is_chosen).all()


def test_a_twin_starts_from_the_weights_of_the_original_and_its_layers_stay_alike(
    pretrained_folder, tmp_path
):
    folder, architecture = tmp_path / "twin", read_architecture(pretrained_folder)
    regulariser = {"gpt_neox": "cosine", "bert": "mse"}[architecture]
    plan = make_recipe(architecture, regulariser=regulariser, strength=0.5, twin_of="tiny")
    module.pretrain(TEXT, plan, model="twin", destination=folder)
    weights = [place / "step0" / "model.safetensors" for place in (pretrained_folder, folder)]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    assert read_record(folder / "step0")["loss"] == read_record(pretrained_folder / "step0")["loss"]
    assert read_record(folder / "step24")["loss"] < read_record(folder / "step0")["loss"]
    assert compute_term(folder / "step24", regulariser) < 0.5 * compute_term(
        pretrained_folder / "step24", regulariser
    )


def compute_term(folder: Path, regulariser: str) -> float:
    """Compute a saved model's term on a sentence, without the last state, which may be normed."""
    model = transformers.AutoModel.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        words = tokenizer("The cat saw it.", return_tensors="pt")
        states = model(**words, output_hidden_states=True).hidden_states[:-1]
    return float(module.TERMS[regulariser](states))


def test_regularisation_terms_follow_their_formulas():
    """Two tokens at three states: angles of 90 and 0, then 180 and 60 degrees; squared distances by hand."""
    states = [
        torch.tensor([[[1.0, 0.0], [2.0, 0.0]]]),
        torch.tensor([[[0.0, 3.0], [4.0, 0.0]]]),
        torch.tensor([[[0.0, -1.0], [0.5, np.sqrt(0.75)]]]),
    ]
    assert module.TERMS["cosine"](states).item() == pytest.approx((1 + 0) / 2 + (2 + 0.5) / 2)
    first, second = (10 + 4) / 2, (16 + 3.5**2 + 0.75) / 2
    assert module.TERMS["mse"](states).item() == pytest.approx(first + second)


def test_states_are_recorded_before_the_final_norm():
    size = {"vocab_size": 300, "num_hidden_layers": 3, "hidden_size": 32, "num_attention_heads": 2}
    network = transformers.GPTNeoXForCausalLM(
        transformers.GPTNeoXConfig(**size, intermediate_size=64)
    )
    ids = torch.arange(8)[None]
    with torch.no_grad(), record_states(network.base_model.layers) as states:
        states_of_library = network(ids, output_hidden_states=True).hidden_states
        normed_state = network.base_model.final_layer_norm(states[-1])
    assert len(states) == len(states_of_library) == 4
    assert all(map(torch.equal, states[:-1], states_of_library))
    assert torch.equal(normed_state, states_of_library[-1])
