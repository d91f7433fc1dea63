"""Weights are loaded only if the files hold exactly those of the model; otherwise a sentence names the difference."""

import json
import zipfile

import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file

import tiny_models as tiny
from shape_of_learning.embeddings.model import load_model
from shape_of_learning.errors import InputError

WEIGHTS, PICKLE, INDEX = "model.safetensors", "pytorch_model.bin", "model.safetensors.index.json"
NAMES = ["gpt_neox", "llama", "gpt2", "bert", "opt"]


def load(folder, name="llama"):
    role = "encoder" if name in tiny.ENCODERS else "decoder"
    return load_model(folder, role=role, precision="float32", device=torch.device("cpu"))


def refusal(folder, name="llama") -> str:
    with pytest.raises(InputError) as error:
        load(folder, name)
    assert "\n" not in str(error.value)
    return str(error.value)


def save(folder, weights) -> None:
    """Replace the weights of a folder."""
    contiguous = {name: tensor.clone().contiguous() for name, tensor in weights.items()}
    save_file(contiguous, folder / WEIGHTS, {"format": "pt"})


def configure(folder, **changes) -> None:
    """Change the configuration of a folder."""
    config = json.loads((folder / "config.json").read_text()) | changes
    (folder / "config.json").write_text(json.dumps(config))


def block_weight(weights, number: int) -> str:
    """Return the name of a matrix of a block."""
    return next(n for n, t in weights.items() if f".{number}." in f".{n}" and t.ndim > 1)


@pytest.mark.parametrize("head", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_number_of_blocks_in_the_configuration_is_refused(name, head, tmp_path):
    folder = tiny.save_tiny_model(tmp_path, name, head=head)
    load(folder, name)
    key = "n_layer" if name == "gpt2" else "num_hidden_layers"
    configure(folder, **{key: 2})
    last = block_weight(load_file(folder / WEIGHTS), 2).split(".2.")[0]
    assert "does not have" in (sentence := refusal(folder, name))
    assert f"{last}.2." in sentence
    configure(folder, **{key: 4})
    assert ".3." in (sentence := refusal(folder, name))
    assert "which would be random numbers" in sentence


@pytest.mark.parametrize("head", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_a_weight_that_is_missing_renamed_added_or_of_another_shape_is_named(name, head, tmp_path):
    folder = tiny.save_tiny_model(tmp_path, name, head=head)
    whole = load_file(folder / WEIGHTS)
    key = block_weight(whole, 1)
    save(folder, {n: t for n, t in whole.items() if n != key})
    assert key.partition(".1.")[2] in refusal(folder, name)
    save(folder, {n.replace(key, f"{key}_g"): t for n, t in whole.items()})
    assert key.partition(".1.")[2] in refusal(folder, name)
    save(folder, {f"module.{n}": t for n, t in whole.items()})  # as wrapped models are called
    assert "and holds others, such as `module." in (sentence := refusal(folder, name))
    assert "take `module.`" in sentence
    new_key = key.replace(".1.", ".1.adapter.")
    save(folder, {**whole, new_key: whole[key]})
    assert f"holds 1 weight, such as `{new_key}`" in refusal(folder, name)
    save(folder, {**whole, key: whole[key][:-1]})
    assert "has the shape" in (sentence := refusal(folder, name))
    assert key.partition(".1.")[2] in sentence


def test_heads_and_poolers_may_be_missing_or_left_over(tmp_path):
    base = tiny.save_tiny_model(tmp_path / "base", "bert")
    assert any(name.startswith("pooler.") for name in load_file(base / WEIGHTS))
    assert load(base, "bert")[1] is None  # no head, and a pooler that a masked model does not have
    # With the head for the next sentence, as published BERTs have it.
    folder = tmp_path / "pretraining"
    hf.BertForPreTraining(tiny.CONFIGURATIONS["bert"]()).save_pretrained(folder)
    assert any("seq_relationship" in name for name in load_file(folder / WEIGHTS))
    assert load(folder, "bert")[1] is not None
    tied = tmp_path / "tied"
    config = tiny.CONFIGURATIONS["llama"]()
    config.tie_word_embeddings = True
    hf.LlamaForCausalLM(config).save_pretrained(tied)
    assert "lm_head.weight" not in load_file(tied / WEIGHTS)
    assert load(tied)[1] is not None
    hf.LlamaForSequenceClassification(config).save_pretrained(tmp_path / "classifier")
    assert load(tmp_path / "classifier")[0].config.model_type == "llama"


@pytest.mark.parametrize("name", NAMES)
def test_a_weight_beside_a_base_model_is_said_unless_it_may_be_of_a_head(name, tmp_path, caplog):
    for head in (True, False):
        folder = tiny.save_tiny_model(tmp_path / str(head), name, head=head)
        load(folder, name)
        save(folder, {**load_file(folder / WEIGHTS), "added.weight": torch.ones(3, 3)})
        assert caplog.text == ""
        load(folder, name)
    assert "holds 1 weight, such as `added.weight`" in caplog.text


MASK = torch.ones(64, 64).tril()[None, None]


@pytest.mark.parametrize(
    ("name", "buffer", "value"),
    [
        ("llama", "model.layers.1.self_attn.rotary_emb.inv_freq", torch.ones(4)),
        ("gpt_neox", "gpt_neox.layers.1.attention.bias", MASK.bool()),
        ("gpt_neox", "gpt_neox.layers.1.attention.masked_bias", torch.tensor(-1e9)),
        ("gpt_neox", "gpt_neox.layers.1.attention.rotary_emb.inv_freq", torch.ones(4)),
        ("gpt2", "transformer.h.1.attn.bias", MASK),
        ("gpt2", "transformer.h.1.attn.masked_bias", torch.tensor(-1e4)),
        ("gptj", "transformer.h.1.attn.bias", MASK.byte()),
        ("gptj", "transformer.h.1.attn.masked_bias", torch.tensor(-1e9)),
        ("falcon", "transformer.h.1.self_attention.maybe_rotary.inv_freq", torch.ones(4)),
        ("bert", "bert.embeddings.position_ids", torch.arange(128)[None]),
        ("roberta", "roberta.embeddings.position_ids", torch.arange(130)[None]),
    ],
)
def test_constants_saved_by_old_versions_do_not_count_as_weights(name, buffer, value, tmp_path):
    folder = tiny.save_tiny_model(tmp_path, name, head=True)
    save(folder, {**load_file(folder / WEIGHTS), buffer: value})
    assert load(folder, name)[1] is not None


def test_integer_weights_are_refused(tmp_path):
    folder = tiny.save_tiny_model(tmp_path, "llama", head=True)
    weights = load_file(folder / WEIGHTS)
    key = "model.layers.0.mlp.up_proj.weight"
    save(folder, {**weights, key: (weights[key] * 1000).to(torch.int8)})
    assert f"`{key}` holds int8" in refusal(folder)


# Files -------------------------------------------------------------------------------------------


def pickled(folder, change=lambda weights: weights):
    """Save the weights as a pickle instead, and return its path."""
    torch.save(change(load_file(folder / WEIGHTS)), folder / PICKLE)
    (folder / WEIGHTS).unlink()
    return folder / PICKLE


def test_a_pickle_that_is_compressed_or_expands_is_never_unpacked(tmp_path):
    folder = tiny.save_tiny_model(tmp_path, "llama", head=True)
    pickle = pickled(folder)
    load(folder)
    with zipfile.ZipFile(pickle) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    for number in range(len(entries)):  # compress each entry in turn
        with zipfile.ZipFile(pickle, "w") as archive:
            for place, (name, content) in enumerate(entries.items()):
                kind = zipfile.ZIP_DEFLATED if place == number else zipfile.ZIP_STORED
                archive.writestr(name, content, kind)
        assert "it is compressed" in refusal(folder)
    grown = {"model.norm.weight": torch.zeros(1).expand(1 << 40)}
    torch.save(grown, pickle)
    assert "`model.norm.weight` is larger" in refusal(folder)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (torch.Tensor.to_sparse, "is sparse"),
        (lambda tensor: torch.quantize_per_tensor(tensor, 0.1, 0, torch.qint8), "is quantised"),
        (lambda tensor: tensor.to("meta"), "has no values"),
    ],
)
def test_sparse_quantised_and_empty_tensors_are_refused(change, reason, tmp_path):
    folder = tiny.save_tiny_model(tmp_path, "llama", head=True)
    key = "model.layers.0.mlp.up_proj.weight"
    pickled(folder, lambda weights: {**weights, key: change(weights[key])})
    assert f"`{key}` {reason}" in refusal(folder)


@pytest.mark.parametrize("place", ["../elsewhere.safetensors", "/etc/passwd", "C:x", ""])
def test_an_index_never_leads_out_of_its_folder(place, tmp_path):
    folder = tiny.save_tiny_model(tmp_path / "model", "llama", head=True)
    (folder / WEIGHTS).rename(tmp_path / "elsewhere.safetensors")
    (folder / INDEX).write_text(json.dumps({"weight_map": {"model.norm.weight": place}}))
    assert f"{INDEX} is no index of shards" in refusal(folder)


def test_a_configuration_that_names_another_weight_file_is_refused(tmp_path):
    folder = tiny.save_tiny_model(tmp_path, "llama", head=True)
    other = load_file(folder / WEIGHTS)
    save_file({n: t + 1 for n, t in other.items()}, folder / "other.safetensors", {"format": "pt"})
    configure(folder, transformers_weights="other.safetensors")
    assert "`transformers_weights` (other.safetensors)" in refusal(folder)


POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 1234\n"


@pytest.mark.parametrize("name", [WEIGHTS, PICKLE, INDEX, "shard", "config.json"])
def test_a_pointer_of_git_lfs_is_not_read_as_a_file(name, tmp_path):
    folder = tiny.save_tiny_model(tmp_path, "llama", head=True)
    if name != "config.json":
        (folder / WEIGHTS).unlink()
    if name == "shard":
        name = "model-00001-of-00001.safetensors"
        (folder / INDEX).write_text(json.dumps({"weight_map": {"model.norm.weight": name}}))
    (folder / name).write_text(POINTER)
    assert f"{folder / name} is a pointer of git-lfs" in (sentence := refusal(folder))
    assert f"run `git lfs pull` in {folder}" in sentence
