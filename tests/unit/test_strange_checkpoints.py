"""Any content of a checkpoint's files soon gives a number or one sentence."""

import json
import math
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tiny_models as tiny
from shape_of_learning.errors import InputError
from shape_of_learning.one_model.measurement import measure_checkpoint
from shape_of_learning.one_model.options import MeasurementOptions

MOST_SECONDS = 30
TEXT = " ".join(f"{n} layers of windows, {n * n} tokens; what a model learns" for n in range(400))

# Changes of a file's keys; None removes a key.
CONFIGURATIONS = {
    "type is a list": {"model_type": []},
    "type is a number": {"model_type": 7},
    "type is unknown": {"model_type": "no_such_model"},
    "type is none": {"model_type": None},
    "another type": {"model_type": "gpt2"},
    "an encoder's type": {"model_type": "bert"},
    "two stacks": {"is_encoder_decoder": True},
    "classes are text": {"architectures": "GPTNeoXForCausalLM"},
    "classes are numbers": {"architectures": [1, None]},
    "class is no model": {"architectures": ["AutoConfig"]},
    "class of another model": {"architectures": ["BertModel"]},
    "class is a function": {"architectures": ["pipeline"]},
    "very many labels": {"num_labels": 50_000},
    "endless labels": {"num_labels": 100_000_000},
    "labels are text": {"num_labels": "many"},
    "endless layers": {"num_hidden_layers": 1_000_000},
    "no layers": {"num_hidden_layers": 0},
    "more layers than weights": {"num_hidden_layers": 200},
    "fewer layers than weights": {"num_hidden_layers": 2},
    "layers are text": {"num_hidden_layers": "3"},
    "layers are true": {"num_hidden_layers": True},
    "layers are not stated": {"num_hidden_layers": None},
    "endless vocabulary": {"vocab_size": 10**15},
    "vocabulary below zero": {"vocab_size": -5},
    "vocabulary is a fraction": {"vocab_size": 0.5},
    "wide": {"hidden_size": 999_984},
    "width is a list": {"hidden_size": [32]},
    "width is not stated": {"hidden_size": None},
    "no heads": {"num_attention_heads": 0},
    "heads do not divide": {"num_attention_heads": 7},
    "endless heads": {"num_attention_heads": 10**9},
    "positions of minus one": {"max_position_embeddings": -1},
    "positions are text": {"max_position_embeddings": "long"},
    "no such function": {"hidden_act": "nothing"},
    "function is a mapping": {"hidden_act": {}},
    "parts within parts": {"text_config": {"text_config": {"text_config": {"text_config": {}}}}},
    "a part is a list": {"text_config": []},
    "deep layers": {"vision_config": {"num_hidden_layers": 10**7}},
    "no such precision": {"dtype": "float7"},
    "precision is a number": {"torch_dtype": 3},
    "quantised by nothing": {"quantization_config": {}},
    "quantised by an unknown method": {"quantization_config": {"quant_method": "no_such"}},
    "quantised by a list": {"quantization_config": []},
    "quantised to four bits": {"quantization_config": {"quant_method": "gptq", "bits": 4}},
    "code beside it": {"auto_map": {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}},
    "answers are tuples": {"return_dict": False},
    "not a number": {"layer_norm_eps": math.nan},
    "epsilon is text": {"layer_norm_eps": "small"},
    "rope is a list": {"rope_parameters": [1, 2]},
    "rope of no kind": {"rope_parameters": {"rope_type": "no_such"}},
    "pads with a word": {"pad_token_id": "x"},
    "keys are long": {"a" * 100_000: 1},
}  # fmt: skip
BYTE_LEVEL = {
    **{"type": "ByteLevel", "add_prefix_space": False},
    **{"trim_offsets": True, "use_regex": False},
}
TOKENIZERS = {
    "dropout": {"model": {"dropout": 0.5}},
    "dropout of two": {"model": {"dropout": 2.0}},
    "no vocabulary": {"model": {"vocab": {}, "merges": []}},
    "another model": {"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "[UNK]"}},
    "unknown kind of model": {"model": {"type": "NoSuch"}},
    "model is a list": {"model": []},
    "no charsmap": {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}},
    "unknown normalizer": {"normalizer": {"type": "NoSuch"}},
    "erases all": {"normalizer": {"type": "Replace", "pattern": {"Regex": "(?s)."}, "content": ""}},
    "expands": {
        "normalizer": {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 10**6}
    },
    "expands again and again": {
        "normalizer": {
            "type": "Sequence",
            "normalizers": [{"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}] * 60,
        }
    },
    "writes bytes as characters, again and again": {
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [BYTE_LEVEL] * 30}
    },
    "no expression": {
        "pre_tokenizer": {
            **{"type": "Split", "pattern": {"Regex": "(a"}},
            **{"behavior": "Isolated", "invert": False},
        }
    },
    "goes back and forth": {
        "pre_tokenizer": {
            **{"type": "Split", "pattern": {"Regex": "([a-z ]+)+$"}},
            **{"behavior": "Isolated", "invert": False},
        }
    },
    "token beyond the embeddings": {
        "added_tokens": [{"id": 10**6, "content": "layers", "special": False}]
    },
    "adds a list": {"added_tokens": [[]]},
    "cuts": {
        "truncation": {
            **{"direction": "Right", "max_length": 4},
            **{"strategy": "LongestFirst", "stride": 0},
        }
    },
}
SETTINGS = {
    "length is text": {"model_max_length": "x"},
    "length is below zero": {"model_max_length": -1},
    "another class": {"tokenizer_class": "BertTokenizer"},
    "class is unknown": {"tokenizer_class": "NoSuchTokenizer"},
    "class is a list": {"tokenizer_class": []},
    "class of another library": {"tokenizer_class": "T5Tokenizer"},
    "class of characters": {"tokenizer_class": "CanineTokenizer"},
    "pads with a number": {"pad_token": 5},
    "extra tokens are a number": {"extra_special_tokens": 7},
    "added tokens are text": {"added_tokens_decoder": {"x": "y"}},
    "code beside it": {"auto_map": {"AutoTokenizer": ["evil.Tokenizer", None]}},
}
CONTENTS = ["", "[]", "7", "null", "{", "[" * 100_000, '{"a":' * 100_000, '{"model_type": "bert"}']


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("strange") / "model"
    tiny.save_tiny_model(folder, "gpt_neox", head=True)
    (folder.parent / "text.txt").write_text(TEXT, encoding="utf-8")
    return folder


def change_keys(content: dict, changes: dict) -> dict:
    """Change keys of nested mappings; None removes a key."""
    result = dict(content)
    for key, value in changes.items():
        is_nested = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = change_keys(result[key], value) if is_nested and key == "model" else value
    return {key: value for key, value in result.items() if value is not None}


def assert_number_or_sentence(checkpoint: Path) -> None:
    start = time.monotonic()
    text = checkpoint.parent / "text.txt"
    options = MeasurementOptions(
        ["anisotropy"], windows=16, window_characters=80, batch_vectors=200, threads=1
    )
    try:
        result = measure_checkpoint(checkpoint, text, options, name="m")
    except InputError as error:
        sentence = str(error)
        assert "\n" not in sentence
        assert len(sentence) < 1500
    else:
        assert result.make_table()["value"].notna().any()
    assert time.monotonic() - start < MOST_SECONDS


FILES = {
    "config.json": CONFIGURATIONS,
    "tokenizer.json": TOKENIZERS,
    "tokenizer_config.json": SETTINGS,
}
CHANGES = [(file, name) for file, changes in FILES.items() for name in changes]


@pytest.mark.parametrize(("file", "name"), CHANGES)
def test_a_strange_value_in_a_file_gives_a_number_or_one_sentence(file, name, checkpoint):
    path = checkpoint / file
    content = path.read_text(encoding="utf-8")
    try:
        path.write_text(
            json.dumps(change_keys(json.loads(content), FILES[file][name])), encoding="utf-8"
        )
        assert_number_or_sentence(checkpoint)
    finally:
        path.write_text(content, encoding="utf-8")


@pytest.mark.parametrize("number", range(len(CONTENTS)))
@pytest.mark.parametrize("file", FILES)
def test_a_file_with_other_content_gives_a_number_or_one_sentence(file, number, checkpoint):
    path = checkpoint / file
    content = path.read_text(encoding="utf-8")
    try:
        path.write_text(CONTENTS[number], encoding="utf-8")
        assert_number_or_sentence(checkpoint)
    finally:
        path.write_text(content, encoding="utf-8")


@pytest.mark.parametrize("file", ["model.safetensors", "adapter_config.json", *FILES])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_pipe_or_a_folder_in_the_place_of_a_file_is_refused_at_once(
    file, make, checkpoint, tmp_path
):
    folder = tmp_path / "model"
    shutil.copytree(checkpoint, folder)
    (folder / file).unlink(missing_ok=True)
    if file.startswith("adapter"):  # an adapter's model is in another folder
        (folder / "config.json").unlink()
    make(folder / file)
    options = MeasurementOptions(windows=16, window_characters=80)
    with pytest.raises(InputError, match=f"{file} is a .* and not a file"):
        measure_checkpoint(folder, checkpoint.parent / "text.txt", options, name="m")


def test_the_command_stops_a_pattern_without_end(checkpoint):
    path = checkpoint / "tokenizer.json"
    content = path.read_text(encoding="utf-8")
    slow = {"type": "Replace", "pattern": {"Regex": "[a-z ,;]"}, "content": "a b c d e f g h" * 600}
    try:
        path.write_text(json.dumps(json.loads(content) | {"normalizer": slow}), encoding="utf-8")
        command = [sys.executable, "-m", "shape_of_learning", "measure", str(checkpoint)]
        process = subprocess.run(
            [*command, "--text", str(checkpoint.parent / "text.txt"), "--windows", "40"],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "workflow")},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    finally:
        path.write_text(content, encoding="utf-8")
    assert process.returncode == 1
    assert "Traceback" not in process.stderr
    assert "tokenizer.json" in process.stderr.splitlines()[-1]
