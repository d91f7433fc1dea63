"""Fine-tuning learns its task, saves its steps, and shares its optimiser with pretraining."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from safetensors.torch import load_file

from shape_of_learning.checkpoints.shapes import Shape
from shape_of_learning.embeddings.protocol import Weights
from shape_of_learning.tasks.examples import Example, Task, write_task
from shape_of_learning.training import finetune as module
from shape_of_learning.training import recipe as constants
from shape_of_learning.training.job import FinetuningJob
from shape_of_learning.training.pretrain import train_tokenizer
from shape_of_learning.training.recipe import FinetuningRecipe, space_steps
from shape_of_learning.training.train import train
from trainings import TEXT, adam, make_recipe, read_record, run_in_another_process

# Sentences of one class are about animals, of the other about places; they differ in length.
ANIMALS, PLACES = ("cat", "dog", "horse", "bird"), ("river", "forest", "house", "city")
TUNING = {"learning_rate": 0.01, "batch_size": 8, "epochs": 2, "seed": 3, "threads": 1}
SAVED = space_steps(32)


def make_examples(split: str, number: int) -> list[Example]:
    random = np.random.default_rng(number)
    return [
        Example(split, label, str(k), f"the {'very ' * (k % 5)}old {random.choice(words)}")
        for k in range(number)
        for label, words in enumerate((ANIMALS, PLACES))
    ]


TASK = Task("accuracy", make_examples("train", 40) + make_examples("held_out", 15))
PAIRS = Task("accuracy", [replace(e, text="what is it?", text_2=e.text) for e in TASK.examples])
GRADES = Task("spearman", [replace(e, label=7.5 * e.label - 100) for e in TASK.examples])


def save_origin(folder: Path, role: str) -> Path:
    text = "\n".join(example.text for example in TASK.examples)
    architecture = {"encoder": "bert", "decoder": "gpt_neox"}[role]
    tokenizer = train_tokenizer(text, make_recipe(architecture, context=48))
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


def finetune(origin: Path, role: str, output: Path, task: Task = TASK, epochs: int = 2) -> Path:
    kind = {"encoder": "AutoModelForMaskedLM", "decoder": "AutoModelForCausalLM"}[role]
    tokenizer = transformers.AutoTokenizer.from_pretrained(origin)
    network = getattr(transformers, kind).from_pretrained(origin)
    start = module.Start(network, tokenizer, role, tokenizer.save_pretrained)
    plan = FinetuningRecipe(**{**TUNING, "epochs": epochs})
    module.finetune(start, task, plan, model="tuned", destination=output, provenance={})
    return output


@pytest.fixture(scope="module", params=["encoder", "decoder"])
def finetuning(request, tmp_path_factory) -> tuple[Path, Path]:
    """The folders of the origin and of the steps of a fine-tuning."""
    folder = tmp_path_factory.mktemp(request.param)
    origin = save_origin(folder / "origin", request.param)
    return origin, finetune(origin, request.param, folder / "model")


def compute_states(folder: Path) -> torch.Tensor:
    model = transformers.AutoModel.from_pretrained(folder).eval()
    words = transformers.AutoTokenizer.from_pretrained(folder)("the old cat", return_tensors="pt")
    with torch.no_grad():
        return torch.stack(model(**words, output_hidden_states=True).hidden_states)


def test_step_0_is_the_origin_and_the_last_step_has_learnt_the_task(finetuning):
    origin, model = finetuning
    assert torch.equal(compute_states(model / "step0"), compute_states(origin))
    assert not torch.equal(compute_states(model / "step32"), compute_states(origin))
    # The head of the language model is not trained.
    heads = [load_file(folder / "model.safetensors") for folder in (origin, model / "step32")]
    for name in {"embed_out.weight", "cls.predictions.transform.dense.weight"} & heads[0].keys():
        assert torch.equal(heads[0][name], heads[1][name])
    assert read_record(model / "step0")["score"] == pytest.approx(0.5, abs=0.25)
    assert read_record(model / "step32")["score"] > 0.9
    # Steps are sixteenths of an epoch.
    assert {path.name for path in model.iterdir()} == {f"step{step}" for step in SAVED}
    # 80 examples are 10 updates per epoch, and 4/16 of it 2.5.
    updates = [read_record(model / f"step{step}")["updates"] for step in SAVED]
    assert dict(zip(SAVED, updates, strict=True)) == {0: 0, 1: 1, 2: 2, 4: 3, 8: 5, 16: 10, 32: 20}


@pytest.mark.parametrize("role", ["encoder", "decoder"])
def test_a_padding_token_without_an_embedding_is_no_input(role, tmp_path):
    origin = save_origin(tmp_path / "origin", role)
    tokenizer = transformers.AutoTokenizer.from_pretrained(origin)
    words = len(tokenizer)
    tokenizer.add_special_tokens({"pad_token": "<added>"})
    assert tokenizer.pad_token_id == words  # the embeddings have no row for it
    tokenizer.save_pretrained(origin)
    model = finetune(origin, role, tmp_path / "model")
    assert read_record(model / "step32")["score"] > 0.9


@pytest.mark.long
def test_the_script_gives_the_same_bytes_and_records_the_task(tmp_path):
    origin = save_origin(tmp_path / "origin", "encoder")
    task, steps, table = (tmp_path / name for name in ("words.csv", "model", "table.csv"))
    write_task(task, TASK)
    weights = Weights("plain", "main", Shape("encoder", 2, 32, 32), is_download=False)
    job = FinetuningJob("tuned", weights, FinetuningRecipe(**TUNING))
    run_in_another_process(
        "finetune_model",
        job,
        checkpoint=origin,
        tokenizer=origin,
        task=task,
        steps=steps,
        table=table,
    )
    again = finetune(origin, "encoder", tmp_path / "again")
    for step in (f"step{step}" for step in SAVED):
        for name in ("model.safetensors", "config.json"):
            assert (steps / step / name).read_bytes() == (again / step / name).read_bytes()
    record = read_record(steps / "step32")
    assert (record["task"]["name"], record["task"]["train"]) == ("words", 80)
    assert record["origin"] == {"model": "plain", "revision": "main"}
    files = {path.name for path in (steps / "step32").iterdir()}
    assert set(record["files"]) == files - {"checkpoint.json"}
    row = pd.read_csv(table).iloc[-1]
    cells = row[["revision", "origin", "origin_revision", "task", "metric", "seed", "score"]]
    assert cells.tolist() == ["step32", "plain", "main", "words", "accuracy", 3, record["score"]]


@pytest.mark.parametrize("task", [PAIRS, GRADES], ids=["pairs", "grades"])
def test_pairs_and_grades_are_learnt(tmp_path, task):
    origin = save_origin(tmp_path / "origin", "encoder")
    model = finetune(origin, "encoder", tmp_path / "model", task, epochs=6)
    # With two grades in equal halves, predictions that separate them have a correlation of .87.
    assert read_record(model / "step96")["score"] > 0.8


def test_pairs_have_segments_and_masked_padding_and_long_texts_are_cut():
    tokenizer = train_tokenizer(TEXT, make_recipe("bert", context=48))
    both = ("a", "bird"), ("the old cat", "a " * 99)
    pairs = [Example("train", 0, "", *texts) for texts in both]
    texts = module.encode(tokenizer, pairs, longest=20, segments=2)
    assert len(texts[1]["input_ids"]) == 20
    arguments = module.pad_texts(texts, 0)
    kinds, mask = arguments["token_type_ids"].numpy(), arguments["attention_mask"].numpy()
    for row, text in enumerate(texts):
        tokens = tokenizer.convert_ids_to_tokens(text["input_ids"])
        separator = tokens.index("[SEP]")
        expected = [int(separator < place < len(tokens)) for place in range(20)]
        assert kinds[row].tolist() == expected
        assert mask[row].tolist() == [int(place < len(tokens)) for place in range(20)]
        assert tokens[-1] == "[SEP]"
    (plain, _) = module.encode(tokenizer, pairs, longest=20, segments=1)
    assert "token_type_ids" not in plain


def test_each_epoch_shows_each_example_once():
    plan = FinetuningRecipe(learning_rate=0.01, batch_size=4, epochs=2, seed=3, threads=1)
    batches = list(module.shuffle_batches(10, plan, np.random.default_rng(0)))
    assert [len(batch) for batch in batches] == [4, 4, 2] * 2
    first, second = (np.concatenate(epoch).tolist() for epoch in (batches[:3], batches[3:]))
    assert sorted(first) == sorted(second) == list(range(10))
    assert first != second


def test_grades_are_standardised_without_labels_of_the_held_out_split():
    task = Task("spearman", [Example("train", 1, "", "a"), Example("train", 3, "", "b")])
    other = Task("spearman", [*task.examples, Example("held_out", 99, "", "c")])
    assert (
        module.Labels.read_labels(task)
        == module.Labels.read_labels(other)
        == module.Labels((), 2.0, 1.0)
    )


def test_constants_of_trainings_have_the_values_of_the_papers():
    assert constants.PRETRAINING_BETAS == (0.9, 0.95)
    assert constants.FINETUNING_BETAS == (0.9, 0.999)
    assert (constants.WEIGHT_DECAY, constants.GRADIENT_NORM) == (0.01, 1.0)
    assert (constants.STEPS_PER_EPOCH, module.HEAD_DEVIATION) == (16, 0.02)


def test_the_rate_of_a_finetuning_rises_for_a_tenth_and_falls_to_nothing():
    plan = FinetuningRecipe(learning_rate=0.01, batch_size=8, epochs=2, seed=3, threads=1)
    rates = [plan.learning_rate_at(update, 100) for update in range(100)]
    assert max(rates) == rates[9] == rates[10] == 0.01
    assert rates[0] == pytest.approx(0.001)
    assert rates[99] == pytest.approx(0.01 / 90)


def test_updates_are_those_of_adamw_with_clipped_gradients_and_decaying_matrices():
    """The expected values are computed by hand for the loss sum(gradient x parameter)."""
    parameters = [torch.nn.Parameter(torch.ones(1, 2)), torch.nn.Parameter(torch.ones(1))]
    gradients = [
        (np.array([[3.0, 0.0]]), np.array([4.0])),  # of norm 5
        (np.array([[0.1, 0.2]]), np.array([0.0])),
    ]

    def compute_losses(batch):
        terms = [(torch.tensor(g) * p).sum() for g, p in zip(batch, parameters, strict=True)]
        return {"loss": terms[0], "more": terms[1]}

    updates = train(parameters, gradients, compute_losses, [0.5, 0.25], betas=(0.9, 0.95), name="m")
    assert list(updates) == [0, 1, 2]
    for number, decay in enumerate((0.01, 0.0)):
        clipped_gradients = gradients[0][number] / 5, gradients[1][number]
        expected = adam(
            np.ones_like(clipped_gradients[0]), clipped_gradients, (0.5, 0.25), (0.9, 0.95), decay
        )
        np.testing.assert_allclose(parameters[number].detach().numpy(), expected, rtol=1e-5)
