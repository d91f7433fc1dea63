import contextlib
import json
import re

import pytest
import transformers as hf

from shape_of_learning.checkpoints.shapes import (
    Shape,
    complete_shape,
    list_tokenizer_paths,
    parse_shape,
    read_configuration_file,
    read_role,
    refuse_quantised,
)
from shape_of_learning.errors import InputError

# Each architecture has its own keys for sizes, taken from the library that writes config.json.
SIZE = {"num_hidden_layers": 3, "hidden_size": 32, "num_attention_heads": 4}
STATED = {
    "gpt_neox": hf.GPTNeoXConfig(**SIZE),
    "bloom": hf.BloomConfig(n_layer=3, hidden_size=32, n_head=4),
    "opt": hf.OPTConfig(num_hidden_layers=3, hidden_size=32, word_embed_proj_dim=32),
    "llama": hf.LlamaConfig(**SIZE),
    "gpt2": hf.GPT2Config(n_layer=3, n_embd=32),
    "gptj": hf.GPTJConfig(n_layer=3, n_embd=32),
    "falcon": hf.FalconConfig(**SIZE),
    "bert": hf.BertConfig(**SIZE),
    "albert": hf.AlbertConfig(**SIZE),
}


def parse(config: dict) -> Shape:
    return parse_shape(config, "model `tiny`")


@pytest.mark.parametrize("name", STATED)
def test_the_shape_is_read_from_the_configuration_of_each_architecture(name):
    role = "encoder" if name in ("bert", "albert") else "decoder"
    shape = parse(STATED[name].to_dict())
    assert shape == Shape(role, 3, 32, 32)
    assert complete_shape(Shape(), shape, "model `tiny`") == shape


@pytest.mark.parametrize(
    ("entry", "pattern"),
    [
        (Shape(layers=4), "`layers`.* says 3 .* says 4"),
        (Shape(last_hidden_size=16), "`last_hidden_size`.* says 32 .* says 16"),
        (Shape("encoder"), "`role`.* says decoder .* says encoder"),
    ],
)
def test_an_entry_that_contradicts_the_checkpoint_is_refused(entry, pattern):
    with pytest.raises(InputError, match=f"model `tiny`.*{pattern}"):
        complete_shape(entry, Shape("decoder", 3, 32, 32), "model `tiny`")


def test_widths_of_old_bloom_and_of_opt_350m():
    assert parse({"model_type": "bloom", "n_layer": 3, "n_embed": 32}) == Shape(
        "decoder", 3, 32, 32
    )
    size = {"num_hidden_layers": 24, "hidden_size": 1024, "word_embed_proj_dim": 512}
    assert parse({"model_type": "opt", **size}) == Shape("decoder", 24, 1024, 512)


@pytest.mark.parametrize(
    ("config", "role"),
    [
        ({"model_type": "novel", "architectures": ["NovelForCausalLM"]}, "decoder"),
        ({"model_type": "novel", "architectures": ["NovelForMaskedLM"]}, "encoder"),
        ({"model_type": "bert", "is_decoder": True}, "decoder"),
        ({"model_type": "novel"}, None),
        ({"model_type": "llama", "is_causal": False}, "encoder"),
        ({"model_type": "gemma3_text", "use_bidirectional_attention": True}, "encoder"),
        ({"architectures": ["XLMWithLMHeadModel"], "causal": False}, "encoder"),
        ({"architectures": ["XLMWithLMHeadModel"], "causal": True}, "decoder"),
    ],
)
def test_the_role_is_read_from_the_configuration_or_asked_for(config, role):
    assert read_role(config) == role
    shape = parse({"num_hidden_layers": 3, "hidden_size": 32, **config})
    if role is None:
        with pytest.raises(InputError, match="add `role: encoder` or `role: decoder`"):
            complete_shape(Shape(), shape, "model `tiny`")
        assert complete_shape(Shape("encoder"), shape, "model `tiny`").role == "encoder"


WHOLE = {"model_type": "opt", "num_hidden_layers": 3, "hidden_size": 32}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("num_hidden_layers", v) for v in ("3", 0, 3.0, True, 1_001)),
        *(("hidden_size", v) for v in (-32, [32], 1_000_001)),
        ("word_embed_proj_dim", -16),
    ],
)
def test_an_impossible_size_is_refused_in_one_sentence(key, value):
    with pytest.raises(InputError, match=f"config.json .* for `{key}`, which cannot be"):
        parse(WHOLE | {key: value})


def test_the_entry_completes_sizes_that_a_checkpoint_lacks():
    shape = parse({"model_type": "gpt_neox", "hidden_size": 32})
    with pytest.raises(InputError, match=r"num_hidden_layers.* add `layers` to the entry"):
        complete_shape(Shape(), shape, "model `tiny`")
    assert complete_shape(Shape(layers=3), shape, "model `tiny`") == Shape("decoder", 3, 32, 32)
    shape = parse({"model_type": "gpt_neox", "num_hidden_layers": 3})
    with pytest.raises(InputError, match=r"hidden_size.* add `hidden_size` to the entry"):
        complete_shape(Shape(), shape, "model `tiny`")
    entry = Shape(hidden_size=32, last_hidden_size=32)
    assert complete_shape(entry, shape, "model `tiny`") == Shape("decoder", 3, 32, 32)


def test_quantised_weights_are_refused():
    with pytest.raises(InputError, match="quantised"):
        refuse_quantised(WHOLE | {"quantization_config": {}}, "model `tiny`")
    refuse_quantised(WHOLE | {"quantization_config": None}, "model `tiny`")


def test_the_encoder_of_an_encoder_decoder_is_measured_if_the_entry_says_so():
    sizes = {"num_layers": 3, "num_decoder_layers": 5, "d_model": 32}
    shape = parse({"model_type": "t5", "is_encoder_decoder": True, **sizes})
    for entry, sentence in (
        (Shape(), "add `role: encoder`"),
        (Shape("decoder"), "encoder-decoder"),
    ):
        with pytest.raises(InputError, match=sentence):
            complete_shape(entry, shape, "model `tiny`")
    assert complete_shape(Shape("encoder"), shape, "model `tiny`") == Shape("encoder", 3, 32, 32)
    bart = {"encoder_layers": 3, "decoder_layers": 5, "num_hidden_layers": 4, "d_model": 32}
    assert parse({"model_type": "bart", "is_encoder_decoder": True, **bart}).layers == 3
    alone = parse({"architectures": ["T5EncoderModel"], "is_encoder_decoder": True, **sizes})
    assert complete_shape(Shape(), alone, "model `tiny`") == Shape("encoder", 3, 32, 32)


TEXT_TYPES = {
    **{
        "llava": (32, 4096),
        "gemma3": (26, 2304),
        "qwen2_5_omni": (28, 3584),
        "colpali": (18, 2048),
    },
    **{"nemotron_h": (52, 4096), "flaubert": (12, 2048), "xlm": (12, 2048), "mamba": (32, 768)},
    **{"xlnet": (24, 1024), "t5": (6, 512), "bart": (12, 1024), "marian": (12, 1024)},
}


@pytest.mark.parametrize("model_type", TEXT_TYPES)
def test_sizes_of_text_models_under_any_keys_are_those_of_the_library(model_type):
    config = hf.AutoConfig.for_model(model_type)
    part = {"encoder": True} if config.is_encoder_decoder else {}
    text = config.get_text_config(**part)
    shape = parse(json.loads(config.to_json_string()))
    assert (shape.layers, shape.hidden_size) == (text.num_hidden_layers, text.hidden_size)
    assert shape.hidden_size == TEXT_TYPES[model_type][1]


@pytest.mark.parametrize(
    "strange",
    [
        {"model_type": []},
        {"architectures": "BertModel"},
        {"architectures": [3, None, {}]},
        {"text_config": {"text_config": {"text_config": {"text_config": {"text_config": {}}}}}},
        {"layers_block_type": []},
        {"is_encoder_decoder": True, "encoder": []},
    ],
)
def test_a_strange_configuration_is_read_or_refused(strange):
    with contextlib.suppress(InputError):
        assert parse(WHOLE | strange).role in ("", "decoder", "encoder-decoder")


@pytest.mark.parametrize("content", [b"[]", b"\xff\xfe{}", b"{", b"[" * 100_000])
def test_a_configuration_that_is_no_json_object_is_one_sentence(tmp_path, content):
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(InputError, match=r"config\.json is missing or no JSON object"):
        read_configuration_file(tmp_path)


def test_a_tokenizer_beside_the_weights_goes_before_one_at_the_top():
    top, deep = {"vocab.txt", "merges.txt"}, {"a/tokenizer.json", "a/merges.txt"}
    assert list_tokenizer_paths(top | deep, "a") == sorted(deep)
    assert list_tokenizer_paths(top | {"a/merges.txt"}, "a") == sorted(top)
    assert list_tokenizer_paths({"merges.txt"}, "") == []


@pytest.mark.parametrize("name", ["auto", "fp16", "torch.bfloat16"])
def test_a_type_that_pytorch_lacks_is_refused_with_its_key(name, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"torch_dtype": name}))
    with pytest.raises(InputError, match=re.escape(f"`torch_dtype: {name}`")):
        read_configuration_file(tmp_path)


def test_a_folder_of_checkpoints_is_refused_with_the_name_of_one(tmp_path):
    """A training and the Hub's client leave such folders, perhaps beside other configurations."""
    (tmp_path / "zz_pooling").mkdir()
    (tmp_path / "zz_pooling/config.json").write_text("{}")
    for place in ("checkpoint-10", "snapshots/abc"):
        folder = tmp_path / place
        folder.mkdir(parents=True)
        (folder / "config.json").write_text('{"model_type": "llama"}')
        with pytest.raises(InputError, match=re.escape(f"such as {folder}")):
            read_configuration_file(tmp_path)
        (folder / "config.json").unlink()
