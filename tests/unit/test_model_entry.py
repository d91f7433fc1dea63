import pytest
import transformers as hf

from shape_of_learning.checkpoints.model_entry import (
    Shape,
    completed,
    read_configuration_file,
    role_of,
    shape_of,
)
from shape_of_learning.errors import InputError

# The words in which each architecture states its size, from the library that writes config.json.
STATED = {
    "gpt_neox": hf.GPTNeoXConfig(num_hidden_layers=3, hidden_size=32, num_attention_heads=4),
    "bloom": hf.BloomConfig(n_layer=3, hidden_size=32, n_head=4),
    "opt": hf.OPTConfig(num_hidden_layers=3, hidden_size=32, word_embed_proj_dim=32),
    "llama": hf.LlamaConfig(num_hidden_layers=3, hidden_size=32, num_attention_heads=4),
    "gpt2": hf.GPT2Config(n_layer=3, n_embd=32),
    "gptj": hf.GPTJConfig(n_layer=3, n_embd=32),
    "falcon": hf.FalconConfig(num_hidden_layers=3, hidden_size=32, num_attention_heads=4),
    "bert": hf.BertConfig(num_hidden_layers=3, hidden_size=32, num_attention_heads=4),
    "roberta": hf.RobertaConfig(num_hidden_layers=3, hidden_size=32, num_attention_heads=4),
    "albert": hf.AlbertConfig(num_hidden_layers=3, hidden_size=32, num_attention_heads=4),
}
ENCODERS = {"bert", "roberta", "albert"}


def told(config: dict) -> Shape:
    return shape_of(config, "model `tiny`")


@pytest.mark.parametrize("name", STATED)
def test_the_shape_is_read_from_the_configuration_of_each_architecture(name):
    role = "encoder" if name in ENCODERS else "decoder"
    own = told(STATED[name].to_dict())
    assert own == Shape(role, 3, 32, 32)
    assert completed(Shape(), own, "model `tiny`") == own


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (Shape(layers=4), "`layers`.* says 3 .* says 4"),
        (Shape(hidden_size=64), "`hidden_size`.* says 32 .* says 64"),
        (Shape(last_hidden_size=16), "`last_hidden_size`.* says 32 .* says 16"),
        (Shape("encoder"), "`role`.* says decoder .* says encoder"),
    ],
)
def test_an_entry_that_contradicts_the_checkpoint_is_refused(entry, said):
    with pytest.raises(InputError, match=f"model `tiny`.*{said}"):
        completed(entry, Shape("decoder", 3, 32, 32), "model `tiny`")


def test_the_width_of_old_bloom_revisions_is_n_embed():
    assert told({"model_type": "bloom", "n_layer": 3, "n_embed": 32}) == Shape("decoder", 3, 32, 32)


def test_opt_350m_has_a_narrower_last_hidden_state():
    size = {"num_hidden_layers": 24, "hidden_size": 1024, "word_embed_proj_dim": 512}
    assert told({"model_type": "opt", **size}) == Shape("decoder", 24, 1024, 512)


def test_a_configuration_without_sizes_is_refused():
    with pytest.raises(InputError, match="num_hidden_layers"):
        told({"model_type": "gpt_neox", "hidden_size": 32})


def test_an_unknown_architecture_is_not_held_against_either_role():
    own = told({"model_type": "novel", "num_hidden_layers": 3, "hidden_size": 32})
    for role in ("encoder", "decoder"):
        assert completed(Shape(role), own, "model `tiny`").role == role


@pytest.mark.parametrize(
    ("config", "role"),
    [
        ({"model_type": "novel", "architectures": ["NovelForCausalLM"]}, "decoder"),
        ({"model_type": "novel", "architectures": ["NovelForMaskedLM"]}, "encoder"),
        ({"model_type": "bert", "is_decoder": True}, "decoder"),
        ({"model_type": "t5", "is_encoder_decoder": True}, "encoder-decoder"),
        ({"model_type": "novel"}, None),
    ],
)
def test_the_role_is_read_from_what_is_known(config, role):
    assert role_of(config) == role


@pytest.mark.parametrize("config", [{"model_type": "novel"}, {"is_encoder_decoder": True}])
def test_a_role_that_cannot_be_told_is_asked_for(config):
    own = told({"num_hidden_layers": 3, "hidden_size": 32, **config})
    with pytest.raises(
        InputError, match=r"model `tiny`: .* add `role: encoder` or `role: decoder`"
    ):
        completed(Shape(), own, "model `tiny`")


WHOLE = {"model_type": "opt", "num_hidden_layers": 3, "hidden_size": 32}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("num_hidden_layers", v) for v in ("3", 0, -3, 3.0, True, [3], {"a": 3})),
        *(("hidden_size", v) for v in ("32", 0, -32, 32.5, False, [32])),
        *(("word_embed_proj_dim", v) for v in ("16", -16, 16.0, True, [16])),
        *(("model_type", v) for v in (3, ["opt"], {"a": 1}, True)),
        *(("architectures", v) for v in (3, "OPTForCausalLM", {"a": 1}, True)),
    ],
)
def test_what_cannot_be_in_a_configuration_is_one_sentence(key, value):
    with pytest.raises(
        InputError, match=f"model `tiny`: config.json .* for `{key}`, which cannot be"
    ):
        told(WHOLE | {key: value})


def test_null_in_a_configuration_is_nothing():
    nothing = dict.fromkeys(["n_embed", "n_layer", "word_embed_proj_dim", "architectures"])
    assert told(nothing | WHOLE) == Shape("decoder", 3, 32, 32)


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff\xfe{}", b"[" * 100_000, b"{"])
def test_a_configuration_that_is_no_json_object_is_one_sentence(tmp_path, content):
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(InputError, match=r"config\.json is missing or no JSON object"):
        read_configuration_file(tmp_path)
