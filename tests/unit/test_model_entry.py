import pytest
import transformers as hf

from shape_of_learning.checkpoints.model_entry import (
    Shape,
    check_against_entry,
    completed,
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


def check(config: dict, **entry: object) -> None:
    expected = {"layers": 3, "hidden_size": 32, "role": "decoder", "where": "model `tiny`"} | entry
    check_against_entry(config, **expected)


def written(name: str) -> dict:
    return STATED[name].to_dict()


@pytest.mark.parametrize("name", STATED)
def test_each_architecture_agrees_with_a_true_entry(name):
    check(written(name), role="encoder" if name in ENCODERS else "decoder")


@pytest.mark.parametrize("name", STATED)
def test_each_architecture_contradicts_a_wrong_number_of_layers(name):
    with pytest.raises(InputError, match=r"model `tiny`.*`layers`.* says 3 .* says 4"):
        check(written(name), layers=4)


@pytest.mark.parametrize("name", STATED)
def test_each_architecture_contradicts_a_wrong_width(name):
    with pytest.raises(InputError, match=r"model `tiny`.*`hidden_size`.* says 32 .* says 64"):
        check(written(name), hidden_size=64)


@pytest.mark.parametrize("name", STATED)
def test_each_architecture_contradicts_the_other_role(name):
    wrong = "decoder" if name in ENCODERS else "encoder"
    with pytest.raises(InputError, match=r"`role`"):
        check(written(name), role=wrong)


def test_the_width_of_old_bloom_revisions_is_n_embed():
    check({"model_type": "bloom", "n_layer": 3, "n_embed": 32})


def test_opt_350m_has_a_narrower_last_hidden_state():
    config = {
        "model_type": "opt",
        "num_hidden_layers": 24,
        "hidden_size": 1024,
        "word_embed_proj_dim": 512,
    }
    check(config, layers=24, hidden_size=1024, last_hidden_size=512)
    with pytest.raises(InputError, match=r"`last_hidden_size`.* says 512 .* says 1024"):
        check(config, layers=24, hidden_size=1024)


def test_a_configuration_without_sizes_is_refused():
    with pytest.raises(InputError, match="num_hidden_layers"):
        check({"model_type": "gpt_neox", "hidden_size": 32})


def test_an_unknown_architecture_is_not_held_against_either_role():
    for role in ("encoder", "decoder"):
        check({"model_type": "novel", "num_hidden_layers": 3, "hidden_size": 32}, role=role)


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


@pytest.mark.parametrize("name", STATED)
def test_a_shape_need_not_be_typed(name):
    role = "encoder" if name in ENCODERS else "decoder"
    own = shape_of(written(name), "model `tiny`")
    assert completed(Shape(), own, "model `tiny`") == Shape(role, 3, 32, 32)


@pytest.mark.parametrize("config", [{"model_type": "novel"}, {"is_encoder_decoder": True}])
def test_a_role_that_cannot_be_told_is_asked_for(config):
    own = shape_of({"num_hidden_layers": 3, "hidden_size": 32, **config}, "model `tiny`")
    with pytest.raises(
        InputError, match=r"model `tiny`: .* add `role: encoder` or `role: decoder`"
    ):
        completed(Shape(), own, "model `tiny`")
