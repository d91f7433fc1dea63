import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from pretended_cuda import pretended_cuda
from shape_of_learning.errors import InputError
from shape_of_learning.pretraining.recipe import Recipe
from shape_of_learning.pretraining.regularisers import TERMS, recorded_states
from shape_of_learning.pretraining.steps import pretraining_steps
from shape_of_learning.pretraining.tokenizer import characters_of, token_ids, train_tokenizer
from shape_of_learning.pretraining.training import pretrain
from shape_of_learning.pretraining.training_batches import IGNORED, MaskedObjective

WORKFLOW = Path(__file__).parents[2] / "workflow"
# Regular enough that two dozen small steps learn something of it.
TEXT = "".join(
    f"The {animal} saw the {place}. It was {mood}.\n"
    for animal in ("cat", "dog", "horse", "bird", "fish", "mouse")
    for place in ("river", "forest", "house", "mountain", "city")
    for mood in ("glad", "tired", "hungry", "afraid")
)
RECIPE = {
    "layers": 2,
    "hidden_size": 32,
    "attention_heads": 2,
    "vocabulary": 300,
    "context": 16,
    "batch_size": 8,
    "learning_rate": 0.01,
    "warmup_steps": 2,
    "last_step": 24,
    "seed": 7,
    "threads": 1,
}
STEPS = [0, 1, 2, 4, 8, 16, 24]


def recipe(architecture: str, **changes: object) -> Recipe:
    return Recipe(architecture=architecture, **(RECIPE | changes))


@pytest.fixture(scope="module", params=["gpt_neox", "bert"])
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param) / "model"
    pretrain(TEXT, recipe(request.param), model="tiny", destination=folder)
    return folder


def architecture_of(folder: Path) -> str:
    return json.loads((folder / "step0" / "config.json").read_text())["model_type"]


def record(folder: Path, step: int) -> dict:
    return json.loads((folder / f"step{step}" / "checkpoint.json").read_text())


@pytest.mark.parametrize(
    ("last", "steps"),
    [(1, [0, 1]), (2, [0, 1, 2]), (3, [0, 1, 2, 3]), (24, STEPS), (8, [0, 1, 2, 4, 8])],
)
def test_steps_are_the_powers_of_two_below_the_last_and_the_last(last, steps):
    assert pretraining_steps(last) == steps


def test_each_step_is_saved_and_says_how_far_it_is(trained):
    assert {path.name for path in trained.iterdir()} == {f"step{step}" for step in STEPS}
    for step in STEPS:
        assert record(trained, step)["step"] == step
        assert record(trained, step)["tokens"] == step * 8 * 16


def test_a_saved_step_loads_as_any_checkpoint(trained):
    model = transformers.AutoModel.from_pretrained(trained / "step24")
    tokenizer = transformers.AutoTokenizer.from_pretrained(trained / "step24")
    inputs = tokenizer("The cat saw the river.", return_tensors="pt")
    hidden = model(**inputs, output_hidden_states=True).hidden_states
    assert [state.shape[-1] for state in hidden] == [32, 32, 32]
    assert model.config.model_type == architecture_of(trained)


def test_a_checkpoint_says_how_much_of_the_text_it_was_trained_on(trained):
    """The characters of the first tokens, so that nobody calls a part of them held out."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(trained / "step0")
    said = record(trained, 24)
    ids = token_ids(tokenizer, TEXT)[: said["training_tokens"]]
    assert tokenizer.decode(ids) == TEXT[: said["training_characters"]]
    assert 0.9 < said["training_characters"] / len(TEXT) < 1


def test_the_held_out_loss_falls(trained):
    assert record(trained, 24)["loss"] < record(trained, 0)["loss"]


def test_an_untrained_model_knows_little_more_than_the_size_of_its_vocabulary(trained):
    vocabulary = len(transformers.AutoTokenizer.from_pretrained(trained / "step0"))
    # Initial logits have a standard deviation below 0.02 sqrt(32) = 0.11 (of normed states), which
    # moves the expected cross-entropy by half its square; 0.1 nats allow for a sample of tokens.
    assert record(trained, 0)["loss"] == pytest.approx(np.log(vocabulary), abs=0.1)


def train_in_another_process(folder: Path, **arguments: object) -> None:
    arguments = {"model": "tiny", **RECIPE, **arguments}
    text = folder.with_suffix(".txt")
    text.write_text(TEXT, encoding="utf-8")
    subprocess.run(
        [
            sys.executable,
            str(WORKFLOW / "scripts" / "pretrain_model.py"),
            *(f"--{name.replace('_', '-')}={value}" for name, value in arguments.items()),
            *(f"--text={text}", f"--output={folder}", f"--receipt={folder.with_suffix('.json')}"),
        ],
        env={
            **os.environ,
            **{"PYTHONPATH": str(WORKFLOW), "OMP_NUM_THREADS": "2", "PYTHONHASHSEED": "1"},
        },
        capture_output=True,
        check=True,
    )


def different_files(*folders: Path) -> list[str]:
    first, again = (
        {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.*")}
        for folder in folders
    )
    assert first.keys() == again.keys()
    return [name for name in first if first[name] != again[name]]


def test_the_same_recipe_gives_the_same_bytes_in_another_process(trained, tmp_path):
    train_in_another_process(tmp_path / "again", architecture=architecture_of(trained))
    assert different_files(trained, tmp_path / "again") == []


@pytest.mark.parametrize("change", [{"seed": 8}, {"model": "other"}])
def test_another_seed_or_model_starts_from_other_weights(trained, tmp_path, change):
    owner = change.get("model", "tiny")
    seed = change.get("seed", RECIPE["seed"])
    plan = recipe(architecture_of(trained), seed=seed, last_step=1, warmup_steps=0)
    pretrain(TEXT, plan, model=owner, destination=tmp_path / "model")
    first, other = (
        (folder / "step0" / "model.safetensors").read_bytes()
        for folder in (trained, tmp_path / "model")
    )
    assert first != other


def test_the_settings_of_torch_are_left_as_they_were(tmp_path):
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    state = torch.get_rng_state()
    plan = recipe("bert", last_step=1, warmup_steps=0, threads=before[0] + 1)
    pretrain(TEXT, plan, model="tiny", destination=tmp_path / "model")
    assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == before
    assert torch.equal(torch.get_rng_state(), state)


def test_on_a_gpu_the_same_weights_learn_the_same(tmp_path):
    """To rounding of float32; a pretended GPU does not tie weights, as those of an encoder are."""
    changes = {"last_step": 2, "warmup_steps": 1, "regulariser": "cosine", "strength": 0.5}
    pretrain(TEXT, recipe("gpt_neox", **changes), model="tiny", destination=tmp_path / "cpu")
    with pretended_cuda() as gpu:
        plan = recipe("gpt_neox", device="cuda", **changes)
        pretrain(TEXT, plan, model="tiny", destination=tmp_path / "gpu")
    first, second = (tmp_path / name / "step0" / "model.safetensors" for name in ("cpu", "gpu"))
    assert first.read_bytes() == second.read_bytes()
    for step in (0, 1, 2):
        cpu, there = record(tmp_path / "cpu", step), record(tmp_path / "gpu", step)
        for key in ("loss", "regularisation"):
            assert there[key] == pytest.approx(cpu[key], rel=1e-5)
        assert there["recipe"] == {**cpu["recipe"], "device": "cuda"}
        assert there["software"] == {**cpu["software"], "gpu": "pretended CUDA device"}
    # Weights go there once, beside batches, and come back at each of three steps.
    assert gpu.to_host > 2 * first.stat().st_size > gpu.to_device > first.stat().st_size


@pytest.mark.gpu
@pytest.mark.skipif(
    not torch.cuda.is_available(), reason="needs a GPU, and torch.cuda.is_available() is false"
)
def test_a_real_gpu_gives_the_same_bytes_each_time(trained, tmp_path):
    for name in ("once", "again"):
        arguments = {"architecture": architecture_of(trained), "device": "cuda"}
        train_in_another_process(tmp_path / name, **arguments)
    assert different_files(tmp_path / "once", tmp_path / "again") == []
    cpu, gpu = (folder / "step0" / "model.safetensors" for folder in (trained, tmp_path / "once"))
    assert cpu.read_bytes() == gpu.read_bytes()
    assert record(tmp_path / "once", 1)["loss"] == pytest.approx(
        record(trained, 1)["loss"], abs=1e-3
    )
    assert record(tmp_path / "once", 24)["software"]["gpu"] == torch.cuda.get_device_name()


def test_a_gpu_without_memory_is_one_sentence(tmp_path):
    plan, folder = recipe("gpt_neox", device="cuda"), tmp_path / "out" / "model"
    with (
        pretended_cuda(memory=100_000),
        pytest.raises(InputError, match="memory of the GPU is exhausted"),
    ):
        pretrain(TEXT, plan, model="tiny", destination=folder)
    assert not list(tmp_path.glob("out/*"))


def test_any_text_survives_the_tokenizer():
    tokenizer = train_tokenizer(TEXT, encoder=False, vocabulary=300, context=16)
    text = "Ωmega, 数学 \t and  two spaces\n"
    assert tokenizer.decode(tokenizer(text).input_ids) == text


def test_characters_of_tokens_are_counted_across_the_parts_of_a_long_text(monkeypatch):
    monkeypatch.setattr("shape_of_learning.pretraining.tokenizer.CHUNK_CHARACTERS", 1000)
    tokenizer = train_tokenizer(TEXT, encoder=False, vocabulary=300, context=16)
    ids = token_ids(tokenizer, TEXT)
    for tokens in (0, 1, 500, len(ids) - 1, len(ids)):
        assert tokenizer.decode(ids[:tokens]) == TEXT[: characters_of(tokenizer, TEXT, tokens)]


def test_an_encoder_frames_a_text_and_a_decoder_does_not(trained):
    tokenizer = transformers.AutoTokenizer.from_pretrained(trained / "step0")
    tokens = tokenizer.convert_ids_to_tokens(tokenizer("The cat").input_ids)
    framed = tokens[0] == "[CLS]" and tokens[-1] == "[SEP]"
    assert framed == (architecture_of(trained) == "bert")


def test_masking_follows_bert():
    """Shares within 5 standard errors of the binomial at 200,000 positions (Devlin et al. 2019)."""
    objective = MaskedObjective(context=102, cls=2, sep=3, mask=4, ordinary=range(5, 1005))
    ids = np.random.default_rng(0).integers(5, 1005, 10_000)
    shown, predicted = objective.batch(ids, 2_000, np.random.default_rng(1))
    assert (shown[:, 0] == 2).all()
    assert (shown[:, -1] == 3).all()
    assert (predicted[:, [0, -1]] == IGNORED).all()
    chosen = predicted != IGNORED
    assert chosen[:, 1:-1].mean() == pytest.approx(0.15, abs=5 * np.sqrt(0.15 * 0.85 / 200_000))
    error = 5 * np.sqrt(0.8 * 0.2 / (0.15 * 200_000))
    assert (shown[chosen] == 4).mean() == pytest.approx(0.8, abs=error)
    # A tenth is shown as it is; of the tenth that is replaced, one in a thousand by itself.
    assert (shown[chosen] == predicted[chosen]).mean() == pytest.approx(0.1001, abs=error)
    assert ((shown == 4) <= chosen).all()


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"attention_heads": 3}, "attention_heads"),
        ({"warmup_steps": 24}, "warmup_steps"),
        ({"vocabulary": 256}, "vocabulary"),
        ({"context": 2000}, "context"),
    ],
)
def test_an_impossible_recipe_is_refused_by_the_name_of_its_key(tmp_path, change, key):
    with pytest.raises(InputError, match=f"`pretraining.{key}`"):
        pretrain(
            TEXT, recipe("bert", **change), model="tiny", destination=tmp_path / "out" / "model"
        )
    assert not list(tmp_path.glob("out/*"))


def test_a_recipe_without_a_regulariser_is_the_plain_one(trained, tmp_path):
    plan = recipe(architecture_of(trained), regulariser="none", last_step=2, warmup_steps=1)
    pretrain(TEXT, plan, model="tiny", destination=tmp_path / "model")
    plain = recipe(architecture_of(trained), last_step=2, warmup_steps=1)
    pretrain(TEXT, plain, model="tiny", destination=tmp_path / "plain")
    for name in ("model.safetensors", "checkpoint.json"):
        first, second = (tmp_path / folder / "step2" / name for folder in ("model", "plain"))
        assert first.read_bytes() == second.read_bytes()
    assert "regularis" not in (tmp_path / "model" / "step2" / "checkpoint.json").read_text()


@pytest.mark.parametrize("regulariser", ["cosine", "mse"])
def test_a_twin_starts_alike_and_its_layers_stay_alike(trained, tmp_path, regulariser):
    folder = tmp_path / "twin"
    plan = recipe(architecture_of(trained), regulariser=regulariser, strength=0.5, twin_of="tiny")
    pretrain(TEXT, plan, model="twin", destination=folder)
    weights = [each / "step0" / "model.safetensors" for each in (trained, folder)]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    assert record(folder, 0)["loss"] == record(trained, 0)["loss"]
    assert record(folder, 24)["loss"] < record(folder, 0)["loss"]
    assert term(folder / "step24", regulariser) < 0.5 * term(trained / "step24", regulariser)


def term(folder: Path, regulariser: str) -> float:
    """The term of a saved model on a sentence, of all blocks but the last, which may be normed."""
    model = transformers.AutoModel.from_pretrained(folder)
    words = transformers.AutoTokenizer.from_pretrained(folder)(
        "The cat saw it.", return_tensors="pt"
    )
    with torch.no_grad():
        states = model(**words, output_hidden_states=True).hidden_states[:-1]
    pairs = list(pairwise(states))
    if regulariser == "mse":
        return sum(float((b - a).square().sum(-1).mean()) for a, b in pairs)
    return sum(float((1 - torch.cosine_similarity(a, b, dim=-1)).mean()) for a, b in pairs)


def test_the_terms_are_those_of_the_formula():
    """Two tokens at three states: angles of 90 and 0, then 180 and 60 degrees; squared distances by hand."""
    states = [
        torch.tensor([[[1.0, 0.0], [2.0, 0.0]]]),
        torch.tensor([[[0.0, 3.0], [4.0, 0.0]]]),
        torch.tensor([[[0.0, -1.0], [0.5, np.sqrt(0.75)]]]),
    ]
    assert TERMS["cosine"](states).item() == pytest.approx((1 + 0) / 2 + (2 + 0.5) / 2)
    first, second = (10 + 4) / 2, (16 + 3.5**2 + 0.75) / 2
    assert TERMS["mse"](states).item() == pytest.approx(first + second)


def test_states_are_recorded_before_the_final_norm():
    size = {"vocab_size": 300, "num_hidden_layers": 3, "hidden_size": 32, "num_attention_heads": 2}
    network = transformers.GPTNeoXForCausalLM(
        transformers.GPTNeoXConfig(**size, intermediate_size=64)
    )
    ids = torch.arange(8)[None]
    with torch.no_grad(), recorded_states(network) as states:
        returned = network(ids, output_hidden_states=True).hidden_states
        normed = network.base_model.final_layer_norm(states[-1])
    assert len(states) == len(returned) == 4
    assert all(map(torch.equal, states[:-1], returned))
    assert torch.equal(normed, returned[-1])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"regulariser": "cosin", "strength": 1.0}, "`cosin`; did you mean `cosine`"),
        ({"regulariser": "cosine"}, "`pretraining.strength` is 0 .*above 0"),
        ({"strength": 0.5}, "`pretraining.strength` is 0.5 .*remove it"),
    ],
)
def test_an_unknown_regulariser_and_one_without_a_strength_are_refused(change, said):
    with pytest.raises(InputError, match=said):
        recipe("gpt_neox", **change)
