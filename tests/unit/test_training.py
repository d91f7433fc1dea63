"""Pretraining and fine-tuning: schedules, the optimiser, determinism, and what is saved."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from safetensors.torch import load_file

from shape_of_learning.errors import InputError
from shape_of_learning.tasks.examples import Example, Task, write_task
from shape_of_learning.training import recipe as constants
from shape_of_learning.training import tokenizer as tokenizers
from shape_of_learning.training.finetune import (
    HEAD_DEVIATION,
    Labels,
    Start,
    encode,
    finetune,
    padded,
    shuffled_batches,
)
from shape_of_learning.training.pretrain import (
    IGNORED,
    TERMS,
    pretrain,
    recorded_states,
    text_batch,
)
from shape_of_learning.training.recipe import (
    FinetuningRecipe,
    PretrainingRecipe,
    pretraining_steps,
)
from shape_of_learning.training.tokenizer import tokens_of, train_tokenizer
from shape_of_learning.training.train import train

WORKFLOW = Path(__file__).parents[2] / "workflow"
# Regular enough that two dozen small steps learn something of it.
TEXT = "".join(
    f"The {animal} saw the {place}. It was {mood}.\n"
    for animal in ("cat", "dog", "horse", "bird", "fish", "mouse")
    for place in ("river", "forest", "house", "mountain", "city")
    for mood in ("glad", "tired", "hungry", "afraid")
)
RECIPE = {
    **{"layers": 2, "hidden_size": 32, "attention_heads": 2, "vocabulary": 300, "context": 16},
    **{"batch_size": 8, "learning_rate": 0.01, "warmup_steps": 2, "last_step": 24, "seed": 7},
    "threads": 1,
}
STEPS = [0, 1, 2, 4, 8, 16, 24]
SHORT = {"last_step": 2, "warmup_steps": 1}


def recipe(architecture: str, **changes: object) -> PretrainingRecipe:
    return PretrainingRecipe(architecture=architecture, **(RECIPE | changes))


def record(folder: Path) -> dict:
    return json.loads((folder / "checkpoint.json").read_text())


def in_another_process(script: str, arguments: str) -> None:
    """Call `main` of a script where hashes and the number of threads are others."""
    folders = f"{WORKFLOW}{os.pathsep}{WORKFLOW / 'scripts'}"
    variables = {"PYTHONPATH": folders, "OMP_NUM_THREADS": "2", "PYTHONHASHSEED": "1"}
    program = f"from pathlib import Path, PosixPath; import {script}; {script}.main({arguments})"
    subprocess.run(
        [sys.executable, "-c", program], env=os.environ | variables, capture_output=True, check=True
    )


def different_files(*folders: Path) -> list[str]:
    first, again = (
        {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.*")}
        for folder in folders
    )
    assert first.keys() == again.keys()
    return [name for name in first if first[name] != again[name]]


def test_steps_are_the_powers_of_two_below_the_last_and_the_last():
    assert list(map(pretraining_steps, (1, 3, 8))) == [[0, 1], [0, 1, 2, 3], [0, 1, 2, 4, 8]]
    assert pretraining_steps(24) == STEPS


def test_what_decides_weights_has_the_values_of_the_papers():
    assert constants.PRETRAINING_BETAS == (0.9, 0.95)
    assert constants.FINETUNING_BETAS == (0.9, 0.999)
    assert (constants.WEIGHT_DECAY, constants.GRADIENT_NORM) == (0.01, 1.0)
    assert (constants.STEPS_PER_EPOCH, HEAD_DEVIATION) == (16, 0.02)


def test_the_rate_of_a_pretraining_rises_linearly_and_falls_by_a_cosine_to_a_tenth():
    plan = recipe("bert", learning_rate=0.001, warmup_steps=10, last_step=110)
    expected = {0: 1e-4, 4: 5e-4, 9: 1e-3, 10: 1e-3, 35: 8.681980515339464e-4, 60: 5.5e-4}
    assert {step: plan.learning_rate_at(step) for step in expected} == pytest.approx(expected)
    assert plan.learning_rate_at(110) == pytest.approx(1e-4)


def test_the_rate_of_a_finetuning_rises_for_a_tenth_and_falls_to_nothing():
    plan = FinetuningRecipe(learning_rate=0.01, batch_size=8, epochs=2, seed=3)
    rates = [plan.learning_rate_at(update, 100) for update in range(100)]
    assert max(rates) == rates[9] == rates[10] == 0.01
    assert rates[0] == pytest.approx(0.001)
    assert rates[99] == pytest.approx(0.01 / 90)


def test_updates_are_those_of_adamw_with_clipped_gradients_and_decaying_matrices():
    """By hand (Loshchilov and Hutter 2019, algorithm 2), of the loss sum(gradient x parameter)."""
    parameters = [torch.nn.Parameter(torch.ones(1, 2)), torch.nn.Parameter(torch.ones(1))]
    gradients = [
        (np.array([[3.0, 0.0]]), np.array([4.0])),
        (np.array([[0.1, 0.2]]), np.array([0.0])),
    ]
    expected = [np.ones((1, 2)), np.ones(1)]
    moments = [[np.zeros_like(each), np.zeros_like(each)] for each in expected]
    for update, (both, rate) in enumerate(zip(gradients, (0.5, 0.25), strict=True), start=1):
        norm = np.sqrt(sum((each**2).sum() for each in both))  # 5, then below 1
        for number, decay in enumerate((0.01, 0.0)):
            gradient = both[number] / max(norm, 1.0)
            mean, square = moments[number]
            mean[:] = 0.9 * mean + 0.1 * gradient
            square[:] = 0.95 * square + 0.05 * gradient**2
            step = mean / (1 - 0.9**update) / (np.sqrt(square / (1 - 0.95**update)) + 1e-8)
            expected[number] = expected[number] * (1 - rate * decay) - rate * step

    def losses(batch):
        terms = [(torch.tensor(g) * p).sum() for g, p in zip(batch, parameters, strict=True)]
        return {"loss": terms[0], "more": terms[1]}

    updates = train(parameters, gradients, losses, [0.5, 0.25], betas=(0.9, 0.95), name="m")
    assert list(updates) == [0, 1, 2]
    for found, wanted in zip(parameters, expected, strict=True):
        np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=1e-5)


@pytest.fixture(scope="module", params=["gpt_neox", "bert"])
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param) / "model"
    pretrain(TEXT, recipe(request.param), model="tiny", destination=folder)
    return folder


def architecture_of(folder: Path) -> str:
    return json.loads((folder / "step0" / "config.json").read_text())["model_type"]


def test_each_step_loads_as_any_checkpoint_and_says_on_how_much_it_was_trained(trained):
    assert {path.name for path in trained.iterdir()} == {f"step{step}" for step in STEPS}
    for step in STEPS:
        found = record(trained / f"step{step}")
        assert (found["step"], found["tokens"]) == (step, step * 8 * 16)
    model = transformers.AutoModel.from_pretrained(trained / "step24")
    tokenizer = transformers.AutoTokenizer.from_pretrained(trained / "step24")
    inputs = tokenizer("The cat saw the river.", return_tensors="pt")
    hidden = model(**inputs, output_hidden_states=True).hidden_states
    assert [state.shape[-1] for state in hidden] == [32, 32, 32]
    # The characters of the first tokens, so that nobody calls a part of them held out.
    end, characters = found["training_tokens"], found["training_characters"]
    assert tokenizer.decode(tokens_of(tokenizer, TEXT)[0][:end]) == TEXT[:characters]
    assert 0.9 < characters / len(TEXT) < 1
    # An encoder frames a text, a decoder does not.
    tokens = tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])
    assert (tokens[0] == "[CLS]" and tokens[-1] == "[SEP]") == (architecture_of(trained) == "bert")


def test_the_held_out_loss_falls_from_that_of_guessing(trained):
    vocabulary = len(transformers.AutoTokenizer.from_pretrained(trained / "step0"))
    # Initial logits have a standard deviation below 0.02 sqrt(32) = 0.11 (of normed states), which
    # moves the expected cross-entropy by half its square; 0.1 nats allow for a sample of tokens.
    first = record(trained / "step0")["loss"]
    assert first == pytest.approx(np.log(vocabulary), abs=0.1)
    assert record(trained / "step24")["loss"] < first


def test_the_same_recipe_gives_the_same_bytes_in_another_process(trained, tmp_path):
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    again, table = tmp_path / "again", tmp_path / "table.csv"
    plan = {"architecture": architecture_of(trained), **RECIPE}
    arguments = f"'tiny', {tmp_path / 'text.txt'!r}, {plan}, {again!r}, {table!r}"
    in_another_process("pretrain_model", arguments)
    assert different_files(trained, again) == []
    rows = pd.read_csv(table)
    assert rows.revision.tolist() == [f"step{step}" for step in STEPS]
    assert rows.held_out_loss.tolist() == [record(again / name)["loss"] for name in rows.revision]


@pytest.mark.gpu
@pytest.mark.skipif(
    not torch.cuda.is_available(), reason="needs a GPU, and torch.cuda.is_available() is false"
)
def test_a_gpu_gives_the_same_bytes_each_time_and_begins_with_the_same_weights(trained, tmp_path):
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    plan = {"architecture": architecture_of(trained), **RECIPE, "device": "cuda"}
    for name in ("once", "again"):
        folders = f"{tmp_path / name!r}, {tmp_path / f'{name}.csv'!r}"
        in_another_process(
            "pretrain_model", f"'tiny', {tmp_path / 'text.txt'!r}, {plan}, {folders}"
        )
    assert different_files(tmp_path / "once", tmp_path / "again") == []
    cpu, gpu = (folder / "step0" / "model.safetensors" for folder in (trained, tmp_path / "once"))
    assert cpu.read_bytes() == gpu.read_bytes()
    there = record(tmp_path / "once/step1")
    assert there["loss"] == pytest.approx(record(trained / "step1")["loss"], abs=1e-3)
    assert there["software"]["gpu"] == torch.cuda.get_device_name()


def test_another_seed_or_model_starts_from_other_weights_and_torch_stays_as_it_was(
    trained, tmp_path
):
    threads = torch.get_num_threads()
    before = threads, torch.are_deterministic_algorithms_enabled()
    state = torch.get_rng_state()
    for model, seed in (("tiny", 8), ("other", RECIPE["seed"])):
        plan = recipe(architecture_of(trained), seed=seed, threads=threads + 1, **SHORT)
        pretrain(TEXT, plan, model=model, destination=tmp_path / model)
        first, other = (each / "step0/model.safetensors" for each in (trained, tmp_path / model))
        assert first.read_bytes() != other.read_bytes()
    assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == before
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"attention_heads": 3}, "attention_heads"),
        ({"warmup_steps": 24}, "warmup_steps"),
        ({"vocabulary": 256}, "vocabulary"),
        ({"context": 2000}, "context"),
        ({"regulariser": "cosine"}, "strength"),
        ({"strength": 0.5}, "strength"),
        ({"device": "cuda"}, "device"),
    ],
)
def test_an_impossible_recipe_is_refused_by_the_name_of_its_key(tmp_path, monkeypatch, change, key):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match=f"`pretraining.{key}`"):
        pretrain(TEXT, recipe("bert", **change), model="tiny", destination=tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_any_text_survives_and_characters_are_counted_across_the_parts_of_a_long_one(monkeypatch):
    monkeypatch.setattr(tokenizers, "CHUNK_CHARACTERS", 1000)
    tokenizer = train_tokenizer(TEXT, encoder=False, vocabulary=300, context=16)
    odd = "Ωmega, 数学 \t and  two spaces\n"
    assert tokenizer.decode(tokenizer(odd).input_ids) == odd
    ids, ends = tokens_of(tokenizer, TEXT)
    for tokens in (1, 500, len(ids) - 1, len(ids)):
        assert tokenizer.decode(ids[:tokens]) == TEXT[: ends[tokens - 1]]


def test_masking_follows_bert():
    """Shares within 5 standard errors of the binomial at 200,000 positions (Devlin et al. 2019)."""
    tokenizer = train_tokenizer(TEXT, encoder=True, vocabulary=300, context=102)
    first, count = len(tokenizers.ENCODER_TOKENS), len(tokenizer)
    ids = np.random.default_rng(0).integers(first, count, 10_000)
    plan = recipe("bert", context=102)
    shown, predicted = text_batch(ids, 2_000, np.random.default_rng(1), plan, tokenizer)
    assert (shown[:, 0] == tokenizer.cls_token_id).all()
    assert (shown[:, -1] == tokenizer.sep_token_id).all()
    assert (predicted[:, [0, -1]] == IGNORED).all()
    chosen, mask = predicted != IGNORED, tokenizer.mask_token_id
    assert chosen[:, 1:-1].mean() == pytest.approx(0.15, abs=5 * np.sqrt(0.15 * 0.85 / 200_000))
    error = 5 * np.sqrt(0.8 * 0.2 / (0.15 * 200_000))
    assert (shown[chosen] == mask).mean() == pytest.approx(0.8, abs=error)
    # A tenth is shown as it is; of the tenth that is replaced, a few by themselves.
    same = 0.1 + 0.1 / (count - first)
    assert (shown[chosen] == predicted[chosen]).mean() == pytest.approx(same, abs=error)
    assert ((shown == mask) <= chosen).all()


def test_a_twin_starts_alike_and_its_layers_stay_alike(trained, tmp_path):
    folder, architecture = tmp_path / "twin", architecture_of(trained)
    regulariser = {"gpt_neox": "cosine", "bert": "mse"}[architecture]
    plan = recipe(architecture, regulariser=regulariser, strength=0.5, twin_of="tiny")
    pretrain(TEXT, plan, model="twin", destination=folder)
    weights = [each / "step0" / "model.safetensors" for each in (trained, folder)]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    assert record(folder / "step0")["loss"] == record(trained / "step0")["loss"]
    assert record(folder / "step24")["loss"] < record(folder / "step0")["loss"]
    assert term(folder / "step24", regulariser) < 0.5 * term(trained / "step24", regulariser)


def term(folder: Path, regulariser: str) -> float:
    """The term of a saved model on a sentence, of all blocks but the last, which may be normed."""
    model = transformers.AutoModel.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        words = tokenizer("The cat saw it.", return_tensors="pt")
        states = model(**words, output_hidden_states=True).hidden_states[:-1]
    return float(TERMS[regulariser](states))


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


# Fine-tuning: sentences of one class are on animals, of the other on places; they differ in length.
ANIMALS, PLACES = ("cat", "dog", "horse", "bird"), ("river", "forest", "house", "city")
TUNING = {"learning_rate": 0.01, "batch_size": 8, "epochs": 2, "seed": 3, "threads": 1}
SAVED = [0, 4, 32]


def examples(split: str, number: int) -> list[Example]:
    random = np.random.default_rng(number)
    return [
        Example(split, label, str(k), f"the {'very ' * (k % 5)}old {random.choice(words)}")
        for k in range(number)
        for label, words in enumerate((ANIMALS, PLACES))
    ]


TASK = Task("accuracy", examples("train", 40) + examples("held_out", 15))
PAIRS = Task("accuracy", [replace(e, text="what is it?", text_2=e.text) for e in TASK.examples])
GRADES = Task("spearman", [replace(e, label=7.5 * e.label - 100) for e in TASK.examples])


def save_origin(folder: Path, role: str) -> Path:
    text = "\n".join(each.text for each in TASK.examples)
    tokenizer = train_tokenizer(text, encoder=role == "encoder", vocabulary=300, context=48)
    size = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 2}
    size |= {"vocab_size": len(tokenizer), "intermediate_size": 64}
    torch.manual_seed(1)
    if role == "encoder":
        network = transformers.BertForMaskedLM(transformers.BertConfig(**size))
    else:
        network = transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(**size))
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def tuned(origin: Path, role: str, output: Path, task: Task = TASK, epochs: int = 2) -> Path:
    kind = {"encoder": "AutoModelForMaskedLM", "decoder": "AutoModelForCausalLM"}[role]
    tokenizer = transformers.AutoTokenizer.from_pretrained(origin)
    network = getattr(transformers, kind).from_pretrained(origin)
    start = Start(network, tokenizer, role, tokenizer.save_pretrained)
    plan = FinetuningRecipe(**{**TUNING, "epochs": epochs})
    saved = {*SAVED, 16 * epochs}
    finetune(start, task, plan, saved, model="tuned", destination=output, provenance={})
    return output


@pytest.fixture(scope="module", params=["encoder", "decoder"])
def finished(request, tmp_path_factory) -> tuple[Path, Path]:
    """Where a fine-tuning begins, and what it makes of it."""
    folder = tmp_path_factory.mktemp(request.param)
    origin = save_origin(folder / "origin", request.param)
    return origin, tuned(origin, request.param, folder / "model")


def states_of(folder: Path) -> torch.Tensor:
    model = transformers.AutoModel.from_pretrained(folder).eval()
    words = transformers.AutoTokenizer.from_pretrained(folder)("the old cat", return_tensors="pt")
    with torch.no_grad():
        return torch.stack(model(**words, output_hidden_states=True).hidden_states)


def test_step_0_is_its_origin_and_the_last_step_has_learnt_the_task(finished):
    origin, model = finished
    assert torch.equal(states_of(model / "step0"), states_of(origin))
    assert not torch.equal(states_of(model / "step32"), states_of(origin))
    # The head of the language model is not trained.
    heads = [load_file(each / "model.safetensors") for each in (origin, model / "step32")]
    for name in {"embed_out.weight", "cls.predictions.transform.dense.weight"} & heads[0].keys():
        assert torch.equal(heads[0][name], heads[1][name])
    assert record(model / "step0")["score"] == pytest.approx(0.5, abs=0.25)
    assert record(model / "step32")["score"] > 0.9
    # Steps are sixteenths of an epoch.
    assert {path.name for path in model.iterdir()} == {f"step{step}" for step in SAVED}
    # 80 examples are 10 updates per epoch, and 4/16 of it 2.5.
    assert [record(model / f"step{step}")["updates"] for step in SAVED] == [0, 3, 20]


def test_the_script_gives_the_same_bytes_and_its_records_say_what_the_task_was(tmp_path):
    origin = save_origin(tmp_path / "origin", "encoder")
    task, output = tmp_path / "words.csv", (tmp_path / "model", tmp_path / "table.csv")
    write_task(task, TASK)
    names = {"model": "plain", "revision": "main"}
    arguments = f"'tuned', {names}, {origin!r}, '', 'encoder', {task!r}, {TUNING}, {output!r}"
    in_another_process("finetune_model", arguments)
    again = tuned(origin, "encoder", tmp_path / "again")
    for step in (f"step{step}" for step in SAVED):
        for name in ("model.safetensors", "config.json"):
            assert (output[0] / step / name).read_bytes() == (again / step / name).read_bytes()
    said = record(output[0] / "step32")
    assert (said["task"]["name"], said["task"]["train"], said["origin"]) == ("words", 80, names)
    files = {path.name for path in (output[0] / "step32").iterdir()}
    assert set(said["files"]) == files - {"checkpoint.json"}
    row = pd.read_csv(output[1]).iloc[-1]
    told = row[["revision", "origin", "origin_revision", "task", "metric", "seed", "score"]]
    assert told.tolist() == ["step32", "plain", "main", "words", "accuracy", 3, said["score"]]


@pytest.mark.parametrize("task", [PAIRS, GRADES], ids=["pairs", "grades"])
def test_pairs_and_grades_are_learnt_too(tmp_path, task):
    origin = save_origin(tmp_path / "origin", "encoder")
    model = tuned(origin, "encoder", tmp_path / "model", task, epochs=6)
    # Of two grades, equal ones in halves, a right order alone gives a correlation of .87.
    assert record(model / "step96")["score"] > 0.8


def test_a_pair_has_its_segments_padding_is_masked_and_a_long_text_is_cut():
    tokenizer = train_tokenizer(TEXT, encoder=True, vocabulary=300, context=48)
    pairs = [
        Example("train", 0, "", "a", "bird"),
        Example("train", 0, "", "the old cat", "a " * 99),
    ]
    texts = encode(tokenizer, pairs, role="encoder", longest=20, segments=2)
    assert len(texts[1]["input_ids"]) == 20
    arguments = padded(texts, 0)
    kinds, mask = arguments["token_type_ids"].numpy(), arguments["attention_mask"].numpy()
    for row, text in enumerate(texts):
        tokens = tokenizer.convert_ids_to_tokens(text["input_ids"])
        separator = tokens.index("[SEP]")
        expected = [int(separator < place < len(tokens)) for place in range(20)]
        assert kinds[row].tolist() == expected
        assert mask[row].tolist() == [int(place < len(tokens)) for place in range(20)]
        assert tokens[-1] == "[SEP]"
    (plain, _) = encode(tokenizer, pairs, role="encoder", longest=20, segments=1)
    assert "token_type_ids" not in plain


def test_each_epoch_shows_each_example_once():
    plan = FinetuningRecipe(learning_rate=0.01, batch_size=4, epochs=2, seed=3)
    batches = list(shuffled_batches(10, plan, np.random.default_rng(0)))
    assert [len(batch) for batch in batches] == [4, 4, 2] * 2
    first, second = (np.concatenate(epoch).tolist() for epoch in (batches[:3], batches[3:]))
    assert sorted(first) == sorted(second) == list(range(10))
    assert first != second


def test_labels_of_the_held_out_split_do_not_decide_how_grades_are_standardised():
    task = Task("spearman", [Example("train", 1, "", "a"), Example("train", 3, "", "b")])
    other = Task("spearman", [*task.examples, Example("held_out", 99, "", "c")])
    assert Labels.of(task) == Labels.of(other) == Labels((), 2.0, 1.0)
