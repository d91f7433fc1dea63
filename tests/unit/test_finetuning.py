import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from shape_of_learning.errors import InputError
from shape_of_learning.finetuning.finetune import Start, finetune
from shape_of_learning.finetuning.finetuning_recipe import FinetuningRecipe
from shape_of_learning.finetuning.task_inputs import Labels, encode, epoch_batches, padded
from shape_of_learning.pretraining.tokenizer import train_tokenizer
from shape_of_learning.tasks.examples import Example, Task, write_task

SCRIPT = Path(__file__).parents[2] / "workflow/scripts/finetune_model.py"
ANIMALS, PLACES = ("cat", "dog", "horse", "bird"), ("river", "forest", "house", "city")
RECIPE = {"learning_rate": 0.01, "batch_size": 8, "epochs": 2, "seed": 3, "threads": 1}
SAVED = {0: "step0", 4: "step4", 32: "step32"}
SIZE = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 2}


def examples(split: str, number: int) -> list[Example]:
    """Sentences of one class are on animals, of the other on places; they differ in length."""
    random = np.random.default_rng(number)
    return [
        Example(split, label, str(k), f"the {'very ' * (k % 5)}old {random.choice(words)}")
        for k in range(number)
        for label, words in enumerate((ANIMALS, PLACES))
    ]


TASK = Task("accuracy", examples("train", 40) + examples("held_out", 15))
PAIRS = Task(
    "accuracy",
    [Example(e.split, e.label, e.group, "what is it?", e.text) for e in TASK.examples],
)
GRADES = Task(
    "spearman",
    [Example(e.split, 7.5 * e.label - 100, e.group, e.text) for e in TASK.examples],
)


def save_origin(folder: Path, role: str) -> Path:
    text = "\n".join(each.text for each in TASK.examples)
    tokenizer = train_tokenizer(text, encoder=role == "encoder", vocabulary=300, context=48)
    size = {**SIZE, "vocab_size": len(tokenizer), "intermediate_size": 64}
    torch.manual_seed(1)
    if role == "encoder":
        network = transformers.BertForMaskedLM(transformers.BertConfig(**size))
    else:
        network = transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(**size))
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def run_script(origin: Path, role: str, task: Path, output: Path) -> None:
    recipe = [f"--{name.replace('_', '-')}={value}" for name, value in RECIPE.items()]
    subprocess.run(
        [
            *(sys.executable, str(SCRIPT), f"--checkpoint={origin}", f"--role={role}"),
            *(f"--task={task}", '--names={"model": "tuned"}', *recipe),
            *("--steps", *map(str, SAVED), "--outputs", str(output), f"{output}.json"),
        ],
        env={"PYTHONPATH": str(SCRIPT.parents[1]), "OMP_NUM_THREADS": "2", "PYTHONHASHSEED": "1"},
        capture_output=True,
        check=True,
    )


def start(folder: Path, role: str) -> Start:
    kind = {"encoder": "AutoModelForMaskedLM", "decoder": "AutoModelForCausalLM"}[role]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    network = getattr(transformers, kind).from_pretrained(folder)
    return Start(network, tokenizer, role, tokenizer.save_pretrained)


def tuned(origin: Path, role: str, output: Path, task: Task = TASK, epochs: int = 2) -> Path:
    recipe = FinetuningRecipe(**{**RECIPE, "epochs": epochs})
    saved = {**SAVED, 16 * epochs: "last"} if epochs > 2 else SAVED
    finetune(start(origin, role), task, recipe, saved, destination=output, provenance={})
    return output


def record(folder: Path) -> dict:
    return json.loads((folder / "checkpoint.json").read_text())


def states(folder: Path) -> torch.Tensor:
    model = transformers.AutoModel.from_pretrained(folder).eval()
    words = transformers.AutoTokenizer.from_pretrained(folder)("the old cat", return_tensors="pt")
    with torch.no_grad():
        return torch.stack(model(**words, output_hidden_states=True).hidden_states)


@pytest.fixture(scope="module")
def by_script(tmp_path_factory) -> tuple[Path, Path]:
    """An encoder, and what the script makes of it."""
    folder = tmp_path_factory.mktemp("script")
    origin = save_origin(folder / "origin", "encoder")
    write_task(folder / "words.csv", TASK)
    run_script(origin, "encoder", folder / "words.csv", folder / "model")
    return origin, folder / "model"


@pytest.fixture(scope="module", params=["encoder", "decoder"])
def finished(request, tmp_path_factory) -> tuple[Path, Path]:
    """Where a fine-tuning begins, and what it makes of it."""
    folder = tmp_path_factory.mktemp(request.param)
    origin = save_origin(folder / "origin", request.param)
    return origin, tuned(origin, request.param, folder / "model")


def test_step_0_has_the_hidden_states_of_its_origin_bit_by_bit(finished):
    origin, model = finished
    assert torch.equal(states(model / "step0"), states(origin))
    assert not torch.equal(states(model / "step32"), states(origin))


def test_it_learns_what_the_task_is(finished):
    _, model = finished
    assert record(model / "step0")["score"] == pytest.approx(0.5, abs=0.25)
    assert record(model / "step32")["score"] > 0.9


def test_steps_are_sixteenths_of_an_epoch(finished):
    _, model = finished
    assert {path.name for path in model.iterdir()} == set(SAVED.values())
    # 80 examples are 10 updates per epoch, and 4/16 of it 2.5.
    assert [record(model / name)["updates"] for name in SAVED.values()] == [0, 3, 20]


def test_the_record_says_what_the_task_was(by_script):
    _, model = by_script
    content = record(model / "step32")
    assert content["task"]["name"] == "words"
    assert content["task"]["train"] == 80
    files = {path.name for path in (model / "step32").iterdir()}
    assert set(content["files"]) == files - {"checkpoint.json"}
    assert set(json.loads(Path(f"{model}.json").read_text())) == set(SAVED.values())


def test_another_process_gives_the_same_bytes(by_script, tmp_path):
    origin, model = by_script
    again = tuned(origin, "encoder", tmp_path / "model")
    for step in SAVED.values():
        for name in ("model.safetensors", "config.json"):
            assert (model / step / name).read_bytes() == (again / step / name).read_bytes()
        assert record(model / step)["score"] == record(again / step)["score"]


def test_the_language_model_head_stays_as_it_is(tmp_path):
    origin = save_origin(tmp_path / "origin", "decoder")
    last = tuned(origin, "decoder", tmp_path / "model") / "step32"
    before, after = (
        transformers.AutoModelForCausalLM.from_pretrained(folder) for folder in (origin, last)
    )
    assert torch.equal(before.get_output_embeddings().weight, after.get_output_embeddings().weight)
    assert not torch.equal(
        before.get_input_embeddings().weight, after.get_input_embeddings().weight
    )


@pytest.mark.parametrize("task", [PAIRS, GRADES], ids=["pairs", "grades"])
def test_pairs_and_grades_are_learnt_too(tmp_path, task):
    origin = save_origin(tmp_path / "origin", "encoder")
    model = tuned(origin, "encoder", tmp_path / "model", task, epochs=6)
    # Of two grades, equal ones in halves, a right order alone gives a correlation of .87.
    assert record(model / "last")["score"] > 0.8


def test_a_decoder_without_a_separator_takes_no_pairs(tmp_path):
    origin = save_origin(tmp_path / "origin", "decoder")
    with pytest.raises(InputError, match="no separator between two texts"):
        tuned(origin, "decoder", tmp_path / "model", PAIRS)
    assert not (tmp_path / "model").exists()


def test_a_pair_has_its_segments_and_padding_is_masked(tmp_path):
    tokenizer = start(save_origin(tmp_path / "origin", "encoder"), "encoder").tokenizer
    pairs = [Example("train", 0, "", "a", "bird"), Example("train", 0, "", "the old cat", "a")]
    texts = encode(tokenizer, pairs, role="encoder", longest=48)
    arguments = padded(texts, padding=0, segments=2)
    kinds, mask = arguments["token_type_ids"].numpy(), arguments["attention_mask"].numpy()
    for row, text in enumerate(texts):
        tokens = tokenizer.convert_ids_to_tokens(text.ids)
        separator = tokens.index("[SEP]")
        assert kinds[row].tolist() == [
            int(separator < place < len(tokens)) for place in range(kinds.shape[1])
        ]
        assert mask[row].sum() == len(tokens)
    assert "token_type_ids" not in padded(texts, padding=0, segments=1)


def test_a_long_text_is_cut():
    tokenizer = train_tokenizer("a b c", encoder=True, vocabulary=300, context=48)
    (text,) = encode(tokenizer, [Example("train", 0, "", "a b " * 99)], role="encoder", longest=48)
    assert len(text.ids) == 48
    assert tokenizer.convert_ids_to_tokens(text.ids)[-1] == "[SEP]"


def test_each_epoch_shows_each_example_once():
    random = np.random.default_rng(0)
    first, second = (list(epoch_batches(10, 4, random)) for _ in range(2))
    assert [len(batch) for batch in first] == [4, 4, 2]
    assert sorted(np.concatenate(first)) == sorted(np.concatenate(second)) == list(range(10))
    assert np.concatenate(first).tolist() != np.concatenate(second).tolist()


def test_the_rate_rises_to_its_peak_and_falls_to_nothing():
    recipe = FinetuningRecipe(**RECIPE)
    rates = [recipe.learning_rate_at(update, 100) for update in range(100)]
    assert max(rates) == rates[9] == rates[10] == 0.01
    assert rates[0] == pytest.approx(0.001)
    assert rates[99] == pytest.approx(0.01 / 90)


def test_labels_of_the_held_out_split_do_not_decide_how_grades_are_standardised():
    task = Task("spearman", [Example("train", 1, "", "a"), Example("train", 3, "", "b")])
    other = Task("spearman", [*task.examples, Example("held_out", 99, "", "c")])
    assert Labels.of(task) == Labels.of(other) == Labels((), 2.0, 1.0)
