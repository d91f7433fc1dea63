"""Models of all kinds are loaded as the class in which they were saved, or refused with a remedy."""

import copy
import json
import logging
import re
import shutil

import numpy as np
import pandas as pd
import peft
import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file

import shape_of_learning as sol
import tiny_models as tiny
from shape_of_learning.checkpoints.shapes import Shape, read_role
from shape_of_learning.embeddings.model import load_model, read_shape
from shape_of_learning.embeddings.tokenised_windows import tokenise
from shape_of_learning.embeddings.tokenizers import load_tokenizer
from shape_of_learning.errors import InputError
from shape_of_learning.one_model.loaded_model import LoadedModel
from shape_of_learning.one_model.measurement import measure_checkpoint
from shape_of_learning.one_model.options import MeasurementOptions

CPU = torch.device("cpu")
TEXT = " ".join(f"{n} layers of windows, {n * n} tokens; what a model learns" for n in range(400))
SIZES = {"vocab_size": 384, "num_hidden_layers": 3, "hidden_size": 32}
HEADS = {"num_attention_heads": 4, "intermediate_size": 64, "num_key_value_heads": 2}
LLAMA = hf.LlamaConfig(**SIZES, **HEADS, pad_token_id=0)
T5 = hf.T5Config(
    vocab_size=384, d_model=32, d_ff=64, num_layers=3, num_decoder_layers=2, num_heads=4, d_kv=8
)
BART = hf.BartConfig(
    vocab_size=384, d_model=32, encoder_layers=3, decoder_layers=2, encoder_ffn_dim=64,
    decoder_ffn_dim=64, encoder_attention_heads=4, decoder_attention_heads=4,
)  # fmt: skip
MAMBA = hf.MambaConfig(**SIZES, state_size=8)
VISION = hf.CLIPVisionConfig(
    hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, image_size=28
)

IMAGES = hf.ViTConfig(
    hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, image_size=28,
    patch_size=14,
)  # fmt: skip


def save(folder, model, *, special=False):
    """Save a model and a tokenizer."""
    model.save_pretrained(folder)
    tiny.save_tokenizer(folder, special=special)
    return folder


def make_model(kind, config, seed=0):
    torch.manual_seed(seed)
    return kind(copy.deepcopy(config)).eval()  # an encoder alone changes its configuration


def measure(folder, measures=("anisotropy",)):
    text = folder.parent / "text.txt"
    text.write_text(f"{TEXT}\n", encoding="utf-8")
    options = MeasurementOptions(
        measures, windows=16, window_characters=80, batch_vectors=200, threads=1
    )
    return measure_checkpoint(folder, text, options, name="m")


def compute_states(model, ids):
    with torch.no_grad():
        return model(input_ids=ids, output_hidden_states=True).hidden_states


ENCODERS = {
    "encoder of T5 alone": lambda: make_model(hf.T5EncoderModel, T5),
    "T5 with its head": lambda: make_model(hf.T5ForConditionalGeneration, T5),
    "T5 without": lambda: make_model(hf.T5Model, T5),
    "BART with its head": lambda: make_model(hf.BartForConditionalGeneration, BART),
}


@pytest.mark.parametrize("name", ENCODERS)
def test_the_encoder_of_an_encoder_decoder_is_loaded_with_its_own_weights(name, tmp_path):
    model = ENCODERS[name]()
    folder = save(tmp_path / "model", model)
    base, head = load_model(folder, role="encoder", precision="float32", device=CPU)
    ids = torch.arange(12)[None]
    expected = compute_states(model.get_encoder(), ids)
    assert head is None
    assert len(expected) == 4
    for base_state, state in zip(compute_states(base, ids), expected, strict=True):
        assert torch.equal(base_state, state)


def test_the_command_measures_an_encoder_alone_and_says_what_to_do_with_two_stacks(tmp_path):
    for config in (T5, BART):
        whole = save(tmp_path / "whole", make_model(hf.AutoModel.from_config, config))
        with pytest.raises(InputError, match=r"get_encoder.*role: encoder"):
            measure(whole)
    folder = save(tmp_path / "encoder", make_model(hf.T5EncoderModel, T5))
    config = json.loads((folder / "config.json").read_text())
    # Models that older versions of the library saved are published like this.
    (folder / "config.json").write_text(json.dumps(config | {"is_encoder_decoder": True}))
    assert read_shape(folder, "m") == Shape("encoder", 3, 32, 32)
    table = measure(folder).make_table()
    assert set(table["role"]) == {"encoder"}
    assert table["layer"].nunique() == 4


def test_the_role_of_an_unknown_base_model_is_found_by_running_it(tmp_path):
    embedding = hf.Gemma3TextConfig(**SIZES, **HEADS, head_dim=8, use_bidirectional_attention=True)
    models = {
        "decoder": make_model(hf.MambaModel, MAMBA),
        "encoder": make_model(hf.Gemma3TextModel, embedding),
    }
    for role, model in models.items():
        folder = save(tmp_path / role, model)
        config = json.loads((folder / "config.json").read_text())
        assert not any(name.endswith("LM") for name in config["architectures"])
        table = measure(folder).make_table()
        assert set(table["role"]) == {role}
        assert table["value"].between(0, 1).all()


def test_the_role_of_a_model_in_python_is_found_if_nothing_states_it(tmp_path):
    tiny.save_tokenizer(tmp_path)
    tokenizer = load_tokenizer(tmp_path)
    texts = [TEXT[start : start + 80] for start in range(0, 1600, 80)]
    xlnet = hf.XLNetConfig(vocab_size=384, d_model=32, n_layer=2, n_head=4, d_inner=64)
    models = [
        ("decoder", make_model(hf.MambaModel, MAMBA)),
        ("encoder", make_model(hf.XLNetModel, xlnet)),
        ("encoder", make_model(hf.T5ForConditionalGeneration, T5).get_encoder()),
    ]
    for role, model in models:
        assert read_role(model.config.to_dict()) not in ("encoder", "decoder")
        table = sol.measure(model.train(), tokenizer, texts, measures=["anisotropy"])
        assert set(table["role"]) == {role}
        assert model.training


def test_the_text_model_of_a_model_of_images_is_measured_as_in_python(tmp_path):
    config = hf.LlavaConfig(text_config=LLAMA, vision_config=VISION, image_token_index=383)
    model = make_model(hf.LlavaForConditionalGeneration, config)
    folder = save(tmp_path / "model", model)
    assert read_shape(folder, "m") == Shape("decoder", 3, 32, 32)
    table = measure(folder).make_table()
    tokenizer = load_tokenizer(folder)
    windows = [TEXT[start : start + 80] for start in range(0, 1600, 80)]
    inside = sol.measure(model, tokenizer, windows, measures=["anisotropy"])
    alone = sol.measure(model.model.language_model, tokenizer, windows, measures=["anisotropy"])
    pd.testing.assert_series_equal(inside["value"], alone["value"], rtol=1e-6)
    assert list(table["layer"].dropna()) == list(inside["layer"].dropna())


def test_sizes_missing_from_a_configuration_are_the_defaults_of_the_library(tmp_path):
    folder = save(tmp_path / "model", make_model(hf.LlamaModel, LLAMA))
    config = {"model_type": "llava", "text_config": {"model_type": "llama"}}
    (folder / "config.json").write_text(json.dumps(config))
    assert read_shape(folder, "m") == Shape("decoder", 32, 4096, 4096)


@pytest.mark.parametrize("key", ["is_causal", "use_bidirectional_attention"])
def test_a_decoder_that_sees_later_tokens_has_no_loss(key, tmp_path, caplog):
    flags = {"is_causal": False} if key == "is_causal" else {key: True}
    kind = hf.LlamaForCausalLM if key == "is_causal" else hf.Gemma3ForCausalLM
    sizes = {**SIZES, **HEADS, "pad_token_id": 0}
    config = hf.LlamaConfig(**sizes) if key == "is_causal" else hf.Gemma3TextConfig(**sizes)
    folder = save(tmp_path / "model", make_model(kind, config))
    _, head = load_model(folder, role="decoder", precision="float32", device=CPU)
    assert head is not None
    content = json.loads((folder / "config.json").read_text()) | flags
    (folder / "config.json").write_text(json.dumps(content))
    _, head = load_model(folder, role="decoder", precision="float32", device=CPU)
    assert head is None
    assert "goes both ways" in caplog.text
    assert read_shape(folder, "m").role == "encoder"


def test_a_model_of_images_is_refused_as_no_model_of_text(tmp_path):
    folder = save(tmp_path / "model", make_model(hf.ViTModel, IMAGES))
    with pytest.raises(InputError, match="`pixel_values`; choose a model of text"):
        measure(folder)


@pytest.mark.parametrize("value", ["flash_attention_2", "flex_attention", "owner/kernel", 7])
def test_a_stated_implementation_of_attention_changes_no_value(value, tmp_path):
    folder = save(tmp_path / "model", make_model(hf.LlamaForCausalLM, LLAMA))
    expected = measure(folder).make_table()
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"attn_implementation": value}))
    pd.testing.assert_frame_equal(measure(folder).make_table(), expected)


@pytest.mark.parametrize("kind", [hf.ByT5Tokenizer, hf.CanineTokenizer, hf.PerceiverTokenizer])
def test_a_tokenizer_of_bytes_needs_no_vocabulary_file(kind, tmp_path):
    kind().save_pretrained(tmp_path)
    tokenizer = load_tokenizer(tmp_path)
    window = tokenise(tokenizer, ["the shape"])[0]
    assert tokenizer.decode(window.ids, skip_special_tokens=True) == "the shape"
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    with pytest.raises(InputError, match="no file of a vocabulary"):
        load_tokenizer(tmp_path)


def test_dropout_of_a_tokenizer_is_switched_off_with_a_note(tmp_path, caplog):
    tiny.save_tokenizer(tmp_path)
    expected = tokenise(load_tokenizer(tmp_path), [TEXT[:500]])[0].ids
    path = tmp_path / "tokenizer.json"
    content = json.loads(path.read_text())
    content["model"]["dropout"] = 0.5
    path.write_text(json.dumps(content))
    ids = tokenise(load_tokenizer(tmp_path), [TEXT[:500]])[0].ids
    np.testing.assert_array_equal(ids, expected)
    assert "(dropout 0.5)" in caplog.text
    with pytest.raises(InputError, match="other tokens each time"):
        tokenise(hf.AutoTokenizer.from_pretrained(tmp_path), [TEXT[:500]])


@pytest.fixture(scope="module")
def lora_models(tmp_path_factory):
    """A folder with a whole model, an adapter of it, and the merged model."""
    folder = tmp_path_factory.mktemp("lora_models")
    model = make_model(hf.LlamaForCausalLM, LLAMA)
    save(folder / "whole", model)
    lora = peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    peft_model = peft.get_peft_model(model, lora)
    peft_model.save_pretrained(folder / "adapter")
    write_base(folder / "adapter", str(folder / "whole"))
    merged_model = peft.PeftModel.from_pretrained(
        hf.LlamaForCausalLM.from_pretrained(folder / "whole"), folder / "adapter"
    ).merge_and_unload()
    save(folder / "merged", merged_model)
    return folder


def write_base(adapter, base):
    """Write the name of its model into an adapter."""
    path = adapter / "adapter_config.json"
    content = json.loads(path.read_text()) | {"base_model_name_or_path": base}
    path.write_text(json.dumps(content))


def test_an_adapter_is_measured_with_its_model_and_a_note(lora_models, caplog):
    values = {
        kind: measure(lora_models / kind).make_table()["value"].to_numpy()
        for kind in ("whole", "adapter", "merged")
    }
    np.testing.assert_allclose(values["adapter"], values["merged"], rtol=1e-4)
    assert np.abs(values["adapter"] - values["whole"]).max() > 1e-3
    assert f"with the adapter in {lora_models / 'adapter'}" in caplog.text


def test_an_adapter_beside_or_without_a_whole_model_is_refused(lora_models, tmp_path):
    both = shutil.copytree(lora_models / "whole", tmp_path / "both")
    for file in (lora_models / "adapter").iterdir():
        shutil.copy(file, both / file.name)
    with pytest.raises(InputError, match=r"beside it an adapter, adapter_config\.json"):
        measure(both)
    alone = shutil.copytree(lora_models / "adapter", tmp_path / "alone")
    write_base(alone, "somebody/else")
    with pytest.raises(InputError, match="`somebody/else`, which is no folder"):
        measure(alone)
    write_base(alone, str(save(tmp_path / "bart", make_model(hf.MambaForCausalLM, MAMBA))))
    with pytest.raises(InputError, match="cannot be applied"):
        measure(alone)


def test_an_adapter_of_a_classifier_is_measured_without_its_head(lora_models, tmp_path, caplog):
    """The head comes after the hidden states, and the base model has another head."""
    config = peft.LoraConfig(
        target_modules=["q_proj"], init_lora_weights=False, task_type="SEQ_CLS"
    )
    kind = hf.LlamaForSequenceClassification
    classifier = peft.get_peft_model(kind.from_pretrained(lora_models / "whole").eval(), config)
    classifier.save_pretrained(tmp_path / "classifier")
    write_base(tmp_path / "classifier", str(lora_models / "whole"))
    values = measure(tmp_path / "classifier").make_table()["value"].to_numpy()
    assert "head of the adapter (`score`) is left out" in caplog.text
    save(tmp_path / "merged", classifier.merge_and_unload())
    expected = measure(tmp_path / "merged").make_table()["value"].to_numpy()
    np.testing.assert_allclose(values, expected, rtol=1e-4)


def test_the_remedy_for_an_adapter_of_virtual_tokens_works(lora_models, tmp_path):
    """Virtual tokens cannot be merged into weights, so the remedy is to measure both in Python."""
    config = peft.PromptTuningConfig(num_virtual_tokens=4, task_type="CAUSAL_LM")
    model = hf.AutoModelForCausalLM.from_pretrained(lora_models / "whole")
    peft.get_peft_model(model, config).save_pretrained(tmp_path / "prompt")
    write_base(tmp_path / "prompt", str(lora_models / "whole"))
    with pytest.raises(InputError) as caught:
        measure(tmp_path / "prompt")
    call = re.search(r"`sol\.measure\((.*), tokenizer\)`", str(caught.value))[1]
    PeftModel, folder = peft.PeftModel, tmp_path / "prompt"
    peft_model = eval(call, {"PeftModel": PeftModel, "model": model, "folder": folder})
    tokenizer = load_tokenizer(lora_models / "whole")
    texts = [TEXT[start : start + 80] for start in range(0, 1600, 80)]
    table = sol.measure(peft_model, tokenizer, texts, measures=["anisotropy"])
    assert table.attrs["adapters"] == {"default": "PROMPT_TUNING"}
    assert table["value"].notna().all()


def test_weights_on_disk_are_measured_and_missing_weights_are_refused(lora_models, tmp_path):
    tokenizer = load_tokenizer(lora_models / "whole")
    texts = [TEXT[start : start + 80] for start in range(0, 1600, 80)]

    def find_values(model):
        return sol.measure(model, tokenizer, texts, measures=["anisotropy"])["value"]

    kind, folder = hf.AutoModelForCausalLM, lora_models / "whole"
    places = {"model.rotary_emb": "cpu", "model.embed_tokens": "disk", "model.norm": "disk"}
    places |= {f"model.layers.{layer}": "disk" for layer in range(3)} | {"lm_head": "disk"}
    model_on_disk = kind.from_pretrained(
        folder, device_map=places, offload_folder=tmp_path / "weights"
    )
    assert next(model_on_disk.parameters()).is_meta
    assert find_values(model_on_disk).equals(find_values(kind.from_pretrained(folder)))
    with torch.device("meta"):
        empty = kind.from_config(LLAMA)
    with pytest.raises(InputError, match="has no weights"):
        find_values(empty)


def test_a_classifier_with_an_adapter_needs_no_token_for_padding(tmp_path):
    """Its head refuses texts of several lengths without this token, but hidden states do not need the head."""
    config = hf.LlamaConfig(**SIZES, **HEADS)
    model = make_model(hf.LlamaForSequenceClassification, config)
    tiny.save_tokenizer(tmp_path)
    tokenizer = load_tokenizer(tmp_path)
    texts = [TEXT[start : start + 60 + start % 37] for start in range(0, 3200, 160)]
    plain = sol.measure(model, tokenizer, texts, measures=["anisotropy"])["value"]
    lora = peft.LoraConfig(target_modules=["q_proj"], task_type="SEQ_CLS")  # zero at first
    table = sol.measure(peft.get_peft_model(model, lora), tokenizer, texts, measures=["anisotropy"])
    np.testing.assert_allclose(table["value"], plain, rtol=1e-5)


def test_a_base_model_inside_another_is_found():
    """DPR's class for questions holds an encoder that holds BERT."""
    config = hf.DPRConfig(**SIZES, num_attention_heads=4, intermediate_size=64)
    model = make_model(hf.DPRQuestionEncoder, config)
    bert = LoadedModel.inspect_model(model).base
    assert bert is model.question_encoder.bert_model


def test_weights_of_eight_bits_are_multiplied_out_with_a_note(tmp_path, caplog):
    config = hf.LlamaConfig(**{**SIZES, **HEADS, "hidden_size": 128, "intermediate_size": 128})
    config.num_key_value_heads = 4
    folder = save(tmp_path / "model", make_model(hf.LlamaForCausalLM, config))
    exact = measure(folder).make_table()["value"]
    weights = {}
    for key, weight in load_file(folder / "model.safetensors").items():
        if weight.shape == (128, 128):
            scale = weight.abs().max() / torch.finfo(torch.float8_e4m3fn).max
            weights[f"{key}_scale_inv"] = scale.reshape(1, 1)
            weight = (weight / scale).to(torch.float8_e4m3fn)
        weights[key] = weight
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    content = json.loads((folder / "config.json").read_text())
    content["quantization_config"] = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    (folder / "config.json").write_text(json.dumps(content))
    values = measure(folder).make_table()["value"]
    assert "are quantised (fp8)" in caplog.text
    # Three bits of mantissa round each weight by up to a sixteenth.
    np.testing.assert_allclose(values, exact, rtol=1 / 16)
    assert (values != exact).any()


def test_quantised_weights_need_their_package(tmp_path, caplog):
    folder = save(tmp_path / "model", make_model(hf.LlamaForCausalLM, LLAMA))
    config = json.loads((folder / "config.json").read_text())
    for bits in (4, 8):
        quantisation = {"quant_method": "bitsandbytes", f"load_in_{bits}bit": True}
        config["quantization_config"] = quantisation
        (folder / "config.json").write_text(json.dumps(config))
        with caplog.at_level(logging.WARNING), pytest.raises(InputError) as caught:
            measure(folder)
        assert f"quantised (bitsandbytes, {bits} bits)" in caplog.text
    assert "pip install" in str(caught.value)
    assert "bitsandbytes" in str(caught.value)
