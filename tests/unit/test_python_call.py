"""The arguments and results of `sol.measure`, `sol.compare` and `sol.plot`."""

import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from functools import partial
from itertools import count

import numpy as np
import pandas as pd
import peft
import pytest
import torch
import transformers as hf
from matplotlib.figure import Figure

import shape_of_learning as sol
from shape_of_learning.errors import InputError
from shape_of_learning.one_model.measurement import measure_checkpoint
from shape_of_learning.one_model.options import MeasurementOptions
from tiny_models import TEXT, USUAL, save_tiny_model, save_tokenizer

TEXTS = [f"{TEXT[number % 3]} {number} {TEXT[0]}" for number in range(24)]
NAMES = ["anisotropy", "two_nn"]
NUMBERS = ["layer", "estimator", "value", "low", "high", "n"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("models") / "tiny"
    hf.set_seed(0)
    config = hf.GPTNeoXConfig(**{**USUAL, "max_position_embeddings": 512})
    hf.AutoModelForCausalLM.from_config(config).save_pretrained(place)
    save_tokenizer(place)
    return place


@pytest.fixture(scope="module")
def model(folder):
    return hf.AutoModelForCausalLM.from_pretrained(folder)


def test_a_folder_is_measured_on_the_built_in_text_as_the_command_does(folder, tmp_path):
    from shape_of_learning.corpus.fetch import read_demo_text

    options = {"measures": NAMES, "windows": 20, "batch_vectors": 1500}
    table = sol.measure(folder, **options)
    text = tmp_path / "text.txt"
    text.write_text(read_demo_text())
    result = measure_checkpoint(folder, text, MeasurementOptions(**options), name="tiny")
    pd.testing.assert_frame_equal(table[NUMBERS], result.make_table()[NUMBERS], rtol=1e-4)
    assert table.attrs["windows"] == 20
    assert table.attrs["model"] == "tiny"


def test_a_model_finds_the_tokenizer_beside_it(folder, model):
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    texts = iter(TEXTS)
    tables = [sol.measure(model, texts=texts, measures=NAMES)]
    tables += [sol.measure(model, tokenizer, TEXTS, measures=NAMES)]
    pd.testing.assert_frame_equal(*tables)
    lost = hf.AutoModelForCausalLM.from_config(deepcopy(model.config))
    lost.config._name_or_path = ""
    with pytest.raises(InputError, match="`tokenizer` is missing"):
        sol.measure(lost, texts=TEXTS)


def test_code_beside_a_model_never_runs_as_its_tokenizer(tmp_path, monkeypatch):
    place = tmp_path / "foreign"
    save_tiny_model(place, "llama", head=True)
    (place / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Own: pass\n")
    settings = json.loads((place / "tokenizer_config.json").read_text())
    settings |= {"auto_map": {"AutoTokenizer": ["own.Own", None]}, "tokenizer_class": "Own"}
    (place / "tokenizer_config.json").write_text(json.dumps(settings))
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    with pytest.raises(InputError, match="custom code"):
        sol.measure(hf.AutoModelForCausalLM.from_pretrained(place), texts=TEXTS, measures=NAMES)
    assert not (tmp_path / "ran").exists()


def test_only_the_first_windows_of_endless_texts_are_read(model, caplog):
    endless = (f"{TEXTS[number % 24]} {number}" for number in count())
    table = sol.measure(model, texts=endless, windows=18, measures=NAMES)
    assert table["windows"].max() == 18
    assert not any("copies" in message for message in caplog.messages)


def test_copies_among_the_texts_are_logged(model, caplog):
    sol.measure(model, texts=[*TEXTS, *TEXTS[:6]], measures=NAMES)
    assert "6 of 30 texts are copies" in caplog.text


def test_half_a_character_is_refused_with_its_text(model):
    with pytest.raises(InputError, match=r"`texts` has 'half \\ud83d'.* lone surrogate"):
        sol.measure(model, texts=[*TEXTS, "half \ud83d"])


def test_the_last_layer_of_a_model_without_a_last_state_is_before_any_norm(model, caplog):
    class CustomModel(hf.PreTrainedModel):
        config_class = hf.GPTNeoXConfig

        def __init__(self, config):
            super().__init__(config)
            self.trunk = hf.GPTNeoXModel(config)
            self.post_init()

        def forward(self, input_ids=None, attention_mask=None, **options):
            return {"logits": self.trunk(input_ids, attention_mask, **options).last_hidden_state}

    config = deepcopy(model.config)
    config._attn_implementation = "eager"
    custom_model = CustomModel(config)
    for measured_model in (custom_model, custom_model.trunk):
        caplog.clear()
        sol.measure(measured_model, texts=TEXTS, measures=["anisotropy"])
        assert ("before any final norm" in caplog.text) == (measured_model is custom_model)


def test_a_padding_token_outside_the_vocabulary_changes_nothing(folder, model):
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    tables = [sol.measure(model, tokenizer, TEXTS, measures=NAMES)]
    tokenizer.add_special_tokens({"pad_token": "[PADDING]"})
    assert tokenizer.pad_token_id >= model.config.vocab_size
    tables += [sol.measure(model, tokenizer, TEXTS, measures=NAMES)]
    pd.testing.assert_frame_equal(*tables)


@pytest.mark.parametrize("options", [{"name": 5}, {"step": "a"}, {"step": 0.5}])
def test_a_wrong_name_or_step_is_refused(options):
    X = np.random.default_rng(0).normal(size=(60, 4))
    with pytest.raises(InputError, match=f"`{next(iter(options))}` is"):
        sol.measure(X, measures=NAMES, batch_vectors=50, **options)


def test_an_object_that_is_no_model_is_refused_by_its_type(folder, model):
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    features = hf.pipeline("feature-extraction", model=model, tokenizer=tokenizer)
    for other_object in (tokenizer, features):
        with pytest.raises(
            InputError, match=f"`model` is a {type(other_object).__name__}; give a model"
        ):
            sol.measure(other_object, texts=TEXTS)


def test_outputs_lists_and_vectors_are_measured_as_hidden_states(model):
    ids = torch.randint(0, 300, (20, 30))
    with torch.no_grad():
        output = model(ids, output_hidden_states=True)
    output_table = sol.measure(output, measures=NAMES)
    list_table = sol.measure(list(output.hidden_states), measures=NAMES)
    pd.testing.assert_frame_equal(output_table, list_table)
    vectors = output.hidden_states[2].reshape(-1, 32)
    groups = np.repeat(np.arange(20), 30)
    vector_table = sol.measure(vectors, groups=groups, measures=NAMES)
    list_rows = list_table[list_table["layer"] == 2].reset_index(drop=True)
    vector_rows = vector_table[vector_table["layer"] == 0].reset_index(drop=True)
    columns = ["value", "low", "high"]
    pd.testing.assert_frame_equal(vector_rows[columns], list_rows[columns])
    assert sol.measure(vectors, measures=NAMES)["low"].isna().all()
    with pytest.raises(InputError, match="`groups` has the shape"):
        sol.measure(vectors, groups=groups[:-1])


def test_a_layer_has_the_same_value_for_any_choice_of_layers():
    """The massive tokens of all given layers are left out of each layer."""
    states = np.random.default_rng(0).standard_normal((4, 20, 30, 16))
    states[1, :, 0] *= 40
    options = {"measures": ["anisotropy_without_massive_tokens"]}
    table = sol.measure(states, **options)
    assert set(table["n"]) == {580}
    for layer in range(4):
        name_layer_table = sol.measure(states, layers=layer, **options).dropna(subset="layer")
        assert [*name_layer_table["value"]] == [*table.loc[table["layer"] == layer, "value"]]
    separate_table = sol.measure(states[2], **options)
    assert set(separate_table["n"]) == {600}


@pytest.mark.parametrize("size", [512, 16])
def test_a_long_text_is_split_into_windows_of_a_given_length(folder, model, size):
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    text = " ".join(TEXTS * 8)
    table = sol.measure(model, tokenizer, [text], measures=["anisotropy"], window_tokens=size)
    assert table.attrs["windows"] == -(-table.attrs["vectors"] // size) > 1
    with pytest.raises(InputError, match="`window_tokens` is 600"):
        sol.measure(model, tokenizer, TEXTS, window_tokens=600)


def test_one_vector_of_each_window_of_the_built_in_text_can_be_measured(folder):
    table = sol.measure(folder, tokens="mean", layers=[1], measures=["anisotropy"])
    assert table["n"].unique() == [384]
    assert table["windows"].unique() == [384]
    with pytest.raises(InputError, match="lower `windows`, or give `texts`"):
        sol.measure(folder, windows=10_000)


def test_one_vector_of_each_window_can_be_measured(folder, model):
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    texts = [f"{text} {number}" for number, text in enumerate(TEXTS * 6)]
    with torch.no_grad():
        states = [
            model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states
            for text in texts
        ]
    for tokens, vectors in (
        ("last", [text[2][0, -1] for text in states]),
        ("mean", [text[2][0].mean(0) for text in states]),
    ):
        table = sol.measure(
            model, tokenizer, texts, tokens=tokens, layers=2, measures=["anisotropy"]
        )
        assert table["n"].iloc[0] == len(texts)
        assert table["value"].iloc[0] == pytest.approx(
            sol.anisotropy(torch.stack(vectors)), abs=1e-5
        )
    with pytest.raises(InputError, match="all, last, mean"):
        sol.measure(model, tokenizer, texts, tokens="first")


def test_devices_batch_sizes_and_layers_follow_the_arguments(folder, model, capsys):
    options = {"texts": TEXTS, "measures": NAMES}
    whole = sol.measure(model, **options)
    name_layer_table = sol.measure(
        model, batch_size=1, device="cpu", layers=[-1], progress=True, **options
    )
    expected, layer_rows = (
        table[table["layer"] == 3][NUMBERS].reset_index(drop=True)
        for table in (whole, name_layer_table)
    )
    pd.testing.assert_frame_equal(layer_rows, expected, rtol=1e-4)
    assert "24/24" in capsys.readouterr().err
    with pytest.raises(InputError, match="device `nowhere` cannot be used"):
        sol.measure(model, device="nowhere", **options)


def test_a_comparison_is_the_difference_of_two_tables(folder, model):
    options = {"texts": TEXTS, "measures": NAMES}
    other = hf.AutoModelForCausalLM.from_config(deepcopy(model.config))
    other.config._name_or_path = str(folder)
    table = sol.compare(model, other, **options)
    first_table, second_table = (
        sol.measure(measured_model, **options) for measured_model in (model, other)
    )
    rows = table[table["layer"].notna()].merge(first_table, on=["estimator", "layer"])
    rows = rows.merge(second_table, on=["estimator", "layer"])
    assert len(rows) == 8
    np.testing.assert_allclose(rows["difference"], rows["value_y"] - rows["value_x"], atol=1e-12)
    same = sol.compare(model, model, **options)
    assert (same["difference"] == 0).all()


def test_a_plot_draws_a_line_through_the_values_of_each_model(model):
    first_table = sol.measure(model, texts=TEXTS, measures=NAMES, name="one")
    second_table = first_table.assign(
        model="two",
        value=2 * first_table["value"],
        low=first_table["low"],
        high=3 * first_table["high"],
    )
    tables = pd.concat([first_table, second_table])
    figure = sol.plot(tables)
    assert isinstance(figure, Figure)
    for panel, measure in zip(figure.axes, NAMES, strict=True):
        drawn_values = {tuple(line.get_ydata()) for line in panel.get_lines()}
        for table in (first_table, second_table):
            rows = table[(table["estimator"] == measure) & table["layer"].notna()]
            assert tuple(rows["value"]) in drawn_values
    axes = Figure().subplots()
    assert sol.plot(tables, "anisotropy", ax=axes) is axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["one", "two"]
    with pytest.raises(InputError, match="room for one measure"):
        sol.plot(tables, ax=axes)
    with pytest.raises(InputError, match="no `mada`"):
        sol.plot(first_table, "mada")


HUB_PROGRAM = """
import sys, transformers, shape_of_learning as sol
model = transformers.AutoModelForCausalLM.from_pretrained("own/tiny")
table = sol.measure(model, texts=sys.argv[1:], measures=["anisotropy"])
assert table["value"].notna().all()
"""


@pytest.mark.long
def test_a_model_of_the_hub_finds_its_tokenizer_in_the_cache(folder, tmp_path):
    commit = "0" * 40
    cache = tmp_path / "hub/models--own--tiny"
    shutil.copytree(folder, cache / "snapshots" / commit)
    (cache / "refs").mkdir()
    (cache / "refs/main").write_text(commit)
    variables = {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", HUB_PROGRAM, *TEXTS]
    path = os.pathsep.join(sys.path)
    process = subprocess.run(
        command,
        env={**os.environ, **variables, "PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr[-2000:]


BIG_BIRD = hf.BigBirdConfig(
    vocab_size=384, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
    max_position_embeddings=512, block_size=4, num_random_blocks=1,
)  # fmt: skip


def test_a_model_that_adapts_to_short_texts_is_measured_unchanged(folder):
    """BigBird replaces its sparse attention for good when it meets a short text, such as one of our probes."""
    hf.set_seed(0)
    model = hf.BigBirdModel(BIG_BIRD).eval()
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    texts = [3 * text for text in TEXTS]
    with torch.no_grad():
        states = [
            model(torch.tensor([tokenizer(text)["input_ids"]])).last_hidden_state[0]
            for text in texts
        ]
    assert model.attention_type == "block_sparse"
    table = sol.measure(model, tokenizer, texts, measures=["anisotropy"], layers=-1)
    assert table["value"].iloc[0] == pytest.approx(sol.anisotropy(torch.cat(states)), rel=1e-6)
    lora = peft.LoraConfig(target_modules=["query"])  # zero at first
    adapter_table = sol.measure(
        peft.get_peft_model(model, lora), tokenizer, texts, measures=["anisotropy"]
    )
    plain_table = sol.measure(model, tokenizer, texts, measures=["anisotropy"])
    np.testing.assert_allclose(adapter_table["value"], plain_table["value"], rtol=1e-6)
    assert model.attention_type == "block_sparse"
    assert "BlockSparse" in type(model.encoder.layer[0].attention.self).__name__


class CountingModel(hf.GPT2Model):
    """A model that stores the number and the input of its calls."""

    def __init__(self, config):
        super().__init__(config)
        self.calls, self.latest = None, None

    def forward(self, input_ids=None, **options):
        self.calls, self.latest = (self.calls or 0) + 1, input_ids
        return super().forward(input_ids=input_ids, **options)


def test_measuring_restores_what_a_model_keeps_of_its_calls(folder):
    model = CountingModel(
        hf.GPT2Config(vocab_size=384, n_embd=32, n_layer=2, n_head=2, n_positions=512)
    )
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    sol.measure(model, tokenizer, TEXTS, measures=["anisotropy"])
    assert (model.calls, model.latest) == (None, None)


def test_two_threads_measure_one_model_one_after_the_other(model):
    def list_hooks():
        return [hook for module in model.modules() for hook in module._forward_hooks]

    model.train()
    hooks = list_hooks()
    with ThreadPoolExecutor(2) as pool:
        call = partial(sol.measure, model, texts=TEXTS, measures=["anisotropy"])
        tables = [future.result() for future in [pool.submit(call) for _ in range(4)]]
    assert model.training
    assert list_hooks() == hooks
    for table in tables[1:]:
        pd.testing.assert_frame_equal(table, tables[0])
    model.eval()


def test_settings_of_libraries_and_tokenizers_stay(folder, model):
    """Settings of a tokenizer are saved with the checkpoints of a training."""
    settings = hf.logging.get_verbosity(), hf.utils.logging.is_progress_bar_enabled()
    hf.logging.set_verbosity_info()
    hf.logging.enable_progress_bar()
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    tokenizer.pad_token = "<|endoftext|>"
    tokenizer(TEXTS, padding="max_length", max_length=16, truncation=True)
    saved_tokenizer = tokenizer.backend_tokenizer.to_str()
    try:
        sol.measure(folder, texts=TEXTS, measures=["anisotropy"])
        sol.measure(model, tokenizer, TEXTS, measures=["anisotropy"])
        assert hf.logging.get_verbosity() == hf.logging.INFO
        assert hf.utils.logging.is_progress_bar_enabled()
    finally:
        hf.logging.set_verbosity(settings[0])
        if not settings[1]:
            hf.logging.disable_progress_bar()
    assert tokenizer.backend_tokenizer.to_str() == saved_tokenizer


def test_many_unknown_tokens_are_logged(model, tmp_path, caplog):
    words = ["[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]", "a"]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    tokenizer = hf.BertTokenizer(vocab=str(tmp_path / "vocab.txt"))
    sol.measure(model, tokenizer, TEXTS, measures=["anisotropy"])
    assert re.search(r"\d\d % of the tokens are `\[UNK\]`", caplog.text)


def test_only_tables_of_measures_are_plotted(model):
    X = np.random.default_rng(0).standard_normal((600, 8))
    table = sol.measure(X, measures=["anisotropy"])
    for wrong in (
        sol.compare(X, X + 1, measures=["anisotropy"]),
        [table],
        "table.csv",
        table[["layer"]],
        table.drop(columns="reason"),
        table.drop(columns="n"),
    ):
        with pytest.raises(InputError, match="that `measure` returns"):
            sol.plot(wrong)


def test_the_package_lists_its_public_names_only():
    assert {"measure", "compare", "plot", "two_nn", "anisotropy"} <= {*dir(sol)}
    assert not {name for name in dir(sol) if name.startswith("_")} - {"__version__"}
    assert all(callable(getattr(sol, name)) for name in dir(sol) if name != "__version__")
