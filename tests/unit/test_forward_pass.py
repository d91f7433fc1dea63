"""Hidden states are those of transformers in all batches, and the final norm is found."""

import json
import sys

import numpy as np
import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file

import tiny_models as tiny
from runs import WINDOWS, StoredStates, load_sample, run
from shape_of_learning.embeddings.forward_pass import ROUNDING, ForwardPass, find_rounding_settings
from shape_of_learning.embeddings.model import require_memory
from shape_of_learning.embeddings.tokenised_windows import TokenisedWindow
from shape_of_learning.errors import InputError
from shape_of_learning.one_model.measurement import ProgressStates

# Batches of fewer than 16 tokens are padded, and padding may change the last bits.
LONG_WINDOWS = [f"{window} ; ; ; ; ; ; ; ; a model" for window in WINDOWS]
SIZES = {**tiny.USUAL, "num_attention_heads": 4}
# The path of the norm after the blocks by architecture, also for architectures that no other test runs.
FINAL_NORMS = {
    **dict.fromkeys(("bloom", "gpt2", "gptj", "falcon"), "ln_f"),
    **dict.fromkeys(("llama", "mistral", "olmo", "olmo2", "gemma2", "qwen2"), "norm"),
    **dict.fromkeys(("opt", "opt_norm_and_projection"), "decoder.final_layer_norm"),
    **dict.fromkeys(("opt_projected", "bert", "roberta", "albert", "distilbert")),
    "phi": "final_layernorm",
    "mpt": "norm_f",
    "gpt_neox": "final_layer_norm",
    "modernbert": "final_norm",
    "roberta_prelayernorm": "LayerNorm",
}
MORE = {
    "olmo": lambda: hf.OlmoConfig(**SIZES),  # its norms have no weights
    "olmo2": lambda: hf.Olmo2Config(**tiny.GROUPED, pad_token_id=0),
    "mistral": lambda: hf.MistralConfig(**tiny.GROUPED),
    "gemma2": lambda: hf.Gemma2Config(**tiny.GROUPED, head_dim=8),
    "qwen2": lambda: hf.Qwen2Config(**tiny.GROUPED),
    "distilbert": lambda: hf.DistilBertConfig(
        vocab_size=tiny.VOCABULARY, dim=32, hidden_dim=64, n_layers=3, n_heads=4
    ),
    "phi": lambda: hf.PhiConfig(**SIZES),
    "mpt": lambda: hf.MptConfig(vocab_size=tiny.VOCABULARY, d_model=32, n_layers=3, n_heads=4),
    "opt_norm_and_projection": lambda: hf.OPTConfig(**tiny.OPT, word_embed_proj_dim=16),
    "modernbert": lambda: hf.ModernBertConfig(
        **SIZES, pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2
    ),
    "roberta_prelayernorm": lambda: hf.RobertaPreLayerNormConfig(**SIZES, pad_token_id=0),
}  # fmt: skip


def run_windows_alone(checkpoint):
    """Run each window alone without padding, as the authors do, and join the hidden states by layer."""
    tokenizer = hf.AutoTokenizer.from_pretrained(checkpoint)
    model = hf.AutoModel.from_pretrained(checkpoint, dtype=torch.float32).eval()
    states_by_window = []
    with torch.no_grad():
        for window in LONG_WINDOWS:
            encoding = tokenizer(window, return_tensors="pt")
            ids, mask = encoding["input_ids"], encoding["attention_mask"]
            output = model(input_ids=ids, attention_mask=mask, output_hidden_states=True)
            states_by_window.append([state[0].numpy() for state in output.hidden_states])
    return [np.concatenate(states) for states in zip(*states_by_window, strict=True)]


@pytest.mark.parametrize("head", [True, False], ids=["with_head", "base_model"])
@pytest.mark.parametrize("name", tiny.CONFIGURATIONS)
def test_hidden_states_are_those_of_the_base_model_bit_for_bit_or_in_batches(
    name, head, tmp_path, windows_at_once
):
    checkpoint = tiny.save_tiny_model(tmp_path, name, head=head)
    alone = run_windows_alone(checkpoint)
    windows_at_once(1)
    single = run(checkpoint, name, LONG_WINDOWS)
    windows_at_once(16)
    batches = run(checkpoint, name, LONG_WINDOWS)
    for state, close, expected in zip(single.states, batches.states, alone, strict=True):
        np.testing.assert_array_equal(state, expected)
        # float32 keeps 6e-8; a few hundred roundings in a row stay below 1e-5 of the largest entry.
        np.testing.assert_allclose(close, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("name", ["bert", "gpt_neox"])
def test_a_run_identifies_the_token_of_each_row(name, tmp_path):
    checkpoint = tiny.save_tiny_model(tmp_path, name)
    rows = load_sample(checkpoint, tiny.WIDTHS[name]).rows
    tokenizer = hf.AutoTokenizer.from_pretrained(checkpoint)
    ids = [tokenizer(window)["input_ids"] for window in WINDOWS]
    flat = [token for row in ids for token in row]
    assert rows["token_ids"].tolist() == flat
    assert rows["positions"].tolist() == [place for row in ids for place in range(len(row))]
    assert rows["windows"].tolist() == [number for number, row in enumerate(ids) for _ in row]
    assert rows["special"].tolist() == [token in tokenizer.all_special_ids for token in flat]
    assert rows["special"].any() == (name == "bert")


@pytest.mark.parametrize("name", ["gpt_neox", "bloom", "llama", "gpt2"])
@pytest.mark.parametrize("size", [1, 3, 16])
def test_the_first_token_of_all_windows_is_one_vector_bit_for_bit(
    name, size, tmp_path, windows_at_once
):
    """Duplicates are recognised only if batches that are padded differently agree in every bit."""
    checkpoint = tiny.save_tiny_model(tmp_path, name)
    windows = [f"x{' , a' * n}" for n in range(1, 40)]  # all start with the same token
    windows_at_once(size)
    store = run(checkpoint, name, windows)
    first = store.sample.rows["positions"] == 0
    assert first.sum() == len(windows)
    for rows in store.states:
        assert len(np.unique(rows[first], axis=0)) == 1


@pytest.mark.parametrize("name", FINAL_NORMS)
def test_the_final_norm_maps_the_state_before_it_to_the_last_hidden_state(name):
    torch.manual_seed(0)
    model = (
        hf.AutoModel.from_config((tiny.CONFIGURATIONS | MORE)[name]()).eval().requires_grad_(False)
    )
    for weight in model.parameters():  # otherwise all norms would be equal
        weight.add_(torch.randn_like(weight) / 5)
    texts = np.array([5, 6, 7, 8]), np.array([9, 10])
    windows = [TokenisedWindow(ids, ids < 0) for ids in texts]
    forward = ForwardPass(model, None, last_layer="both")
    path = next((path for path, m in model.named_modules() if m is forward.final_norm), None)
    assert path == FINAL_NORMS[name]
    states, _ = forward.compute_hidden_states(windows, 0)
    library = forward.run([window.ids for window in windows], 0, output_hidden_states=True)
    *_, last, input_states = states
    assert len(states) == len(library.hidden_states) + 1
    torch.testing.assert_close(last, library.last_hidden_state, rtol=0, atol=0)
    if path is None:
        torch.testing.assert_close(input_states, last, rtol=0, atol=0)
    else:
        assert not torch.equal(input_states, last)
        output = forward.final_norm(input_states)
        if name == "opt_norm_and_projection":
            output = model.decoder.project_out(output)
        torch.testing.assert_close(output, last, rtol=0, atol=0)


@pytest.mark.parametrize("name", ["gpt_neox", "llama", "bert", "opt_projected"])
def test_a_run_with_both_last_layers_has_the_states_of_runs_with_one(name, tmp_path):
    checkpoint = tiny.save_stirred_model(tmp_path, name)
    choices = ("after_final_norm", "before_final_norm", "both")
    last_states, states_before_norm, both = (
        run(checkpoint, name, last_layer=choice) for choice in choices
    )
    assert last_states.loss == states_before_norm.loss == both.loss
    for state, expected in zip(
        both.states, [*last_states.states, states_before_norm.states[-1]], strict=True
    ):
        np.testing.assert_array_equal(state, expected)
    np.testing.assert_array_equal(states_before_norm.states[2], last_states.states[2])
    assert len(both.sample.widths) == len(last_states.sample.widths) + 1


def test_a_forward_pass_computes_in_full_precision():
    settings = {path: find_rounding_settings(path).fp32_precision for path in ROUNDING}
    matmul = torch.backends.cuda.matmul
    try:
        for path in ROUNDING:
            find_rounding_settings(path).fp32_precision = "tf32"
        model = hf.AutoModel.from_config(tiny.CONFIGURATIONS["gpt_neox"]())
        ForwardPass(model, None, last_layer="after_final_norm")
        assert {find_rounding_settings(path).fp32_precision for path in ROUNDING} == {"ieee"}
        assert not matmul.allow_bf16_reduced_precision_reduction
    finally:
        for path, value in settings.items():
            find_rounding_settings(path).fp32_precision = value


def catch_refusal(checkpoint, windows=WINDOWS, widths=tiny.WIDTHS["gpt_neox"]):
    with pytest.raises(InputError) as caught:
        load_sample(checkpoint, widths, windows)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_shape_that_differs_from_the_entry_is_refused(tmp_path):
    checkpoint = tiny.save_tiny_model(tmp_path, "gpt_neox")
    for widths in ([32] * 6, [64] * 4):
        wrong = load_sample(checkpoint, widths)
        with pytest.raises(InputError, match=r"4 .*32.* entry says (6 .*32|4 .*64)"):
            wrong.store_states(StoredStates(wrong))


def test_windows_that_a_model_cannot_take_are_refused(tmp_path):
    checkpoint = tiny.save_tiny_model(tmp_path, "gpt2")
    assert "was made for 128" in catch_refusal(checkpoint, ["x, y; " * 100])
    assert "has no token for the tokenizer" in catch_refusal(checkpoint, ["a model", ""])
    tokenizer = hf.AutoTokenizer.from_pretrained(checkpoint)
    tokenizer.add_tokens(["[beyond]"])
    tokenizer.save_pretrained(checkpoint)
    assert "embeddings for 300 tokens" in catch_refusal(checkpoint, ["a [beyond] b"])


def test_infinite_activations_are_stored_and_their_layer_is_named(tmp_path, caplog):
    checkpoint = tiny.save_tiny_model(tmp_path, "gpt_neox", head=True)
    model = hf.AutoModelForCausalLM.from_pretrained(checkpoint)
    model.base_model.layers[1].mlp.dense_4h_to_h.bias.data[3] = float("nan")
    model.save_pretrained(checkpoint)
    store = run(checkpoint, "gpt_neox")
    assert "hidden state 2 of the model" in caplog.text
    assert np.isfinite(store.states[1]).all()
    assert not np.isfinite(store.states[2]).all()
    assert store.loss.loss == np.inf


@pytest.mark.parametrize("head", [True, False])
def test_missing_weights_are_not_filled_with_random_numbers(head, tmp_path):
    checkpoint = tiny.save_tiny_model(tmp_path, "gpt_neox", head=head)
    weights = load_file(checkpoint / "model.safetensors")
    del weights[f"{'gpt_neox.' if head else ''}layers.1.attention.dense.weight"]
    save_file(weights, checkpoint / "model.safetensors", metadata={"format": "pt"})
    assert "`layers.1.attention.dense.weight`" in catch_refusal(checkpoint)


def test_a_broken_checkpoint_is_refused_in_one_sentence(tmp_path):
    assert "config.json is missing" in catch_refusal(tmp_path / "nowhere")
    checkpoint = tiny.save_tiny_model(tmp_path, "gpt_neox")
    weights = checkpoint / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    assert "model.safetensors holds no weights that can be read" in catch_refusal(checkpoint)
    for file in checkpoint.glob("tokenizer*"):
        file.unlink()
    assert "the tokenizer in" in catch_refusal(checkpoint)


def test_code_in_a_checkpoint_is_never_run(tmp_path):
    checkpoint = tiny.save_tiny_model(tmp_path / "model", "gpt_neox")
    marker = tmp_path / "was_run"
    code = f"from pathlib import Path\nPath({str(marker)!r}).touch()\nModel = Config = object\n"
    (checkpoint / "evil.py").write_text(code)
    config = json.loads((checkpoint / "config.json").read_text())
    kinds = ("AutoModel", "AutoModelForCausalLM")
    config["auto_map"] = {"AutoConfig": "evil.Config"} | dict.fromkeys(kinds, "evil.Model")
    (checkpoint / "config.json").write_text(json.dumps(config))
    run(checkpoint, "gpt_neox")
    assert not marker.exists()


def limit_rows(sample, rows):
    """Let window batches with more rows exhaust memory, and return the sample."""

    def fail(module, inputs):
        if inputs[0].shape[0] > rows:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    sample.forward.model.layers[1].register_forward_pre_hook(fail)
    return sample


def test_exhausted_memory_halves_the_batch_until_it_fits(tmp_path, windows_at_once):
    checkpoint = tiny.save_stirred_model(tmp_path, "gpt_neox")
    windows_at_once(2)
    expected = run(checkpoint, "gpt_neox")
    windows_at_once(4)
    sample = load_sample(checkpoint, tiny.WIDTHS["gpt_neox"])
    store, progress = StoredStates(limit_rows(sample, 2)), []
    counted_store = ProgressStates(store, len(WINDOWS), lambda *numbers: progress.append(numbers))
    assert sample.store_states(counted_store) == expected.loss
    np.testing.assert_array_equal(store.states, expected.states)
    sample.store_states(counted_store)  # a window that is written again counts once
    assert progress[-1] == max(progress) == ("windows", len(WINDOWS), len(WINDOWS))


def test_weights_that_do_not_fit_are_refused_with_remedies(tmp_path, monkeypatch):
    checkpoint = tiny.save_tiny_model(tmp_path, "gpt_neox")

    def fail(model, device):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    monkeypatch.setattr(torch.nn.Module, "to", fail)
    message = catch_refusal(checkpoint)
    assert "do not fit on the GPU" in message
    for remedy in ("`precision: bfloat16`", "a larger GPU", "`CUDA_VISIBLE_DEVICES=`"):
        assert remedy in message


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux how much memory there is")
def test_states_that_do_not_fit_into_memory_are_refused():
    require_memory(1, "a byte", "")
    message = r"states take 1,000,000,000,000 MB .* available; take less"
    with pytest.raises(InputError, match=message):
        require_memory(10**18, "states", "take less")


@pytest.mark.parametrize("name", ["gpt_neox", "bert"])
def test_the_number_of_threads_does_not_change_a_bit(name, tmp_path, windows_at_once):
    checkpoint = tiny.save_stirred_model(tmp_path, name)
    windows_at_once(2)
    single, parallel = (run(checkpoint, name, WINDOWS * 4, threads=threads) for threads in (1, 3))
    assert single.loss == parallel.loss
    np.testing.assert_array_equal(single.states, parallel.states)


@pytest.mark.parametrize("name", ["recurrent_gemma", "longrope", "llama"])
def test_a_model_that_changes_itself_is_run_by_one_thread(name, tmp_path, windows_at_once):
    """RecurrentGemma stores its last states, which another thread would read; Phi-3 stores rotations for long texts."""
    rope = {
        "rope_type": "longrope",
        "rope_theta": 10000.0,
        "short_factor": [1.0] * 4,
        "long_factor": [2.0, 3.0, 5.0, 9.0],
        "original_max_position_embeddings": 16,
    }
    config = {
        "recurrent_gemma": lambda: hf.RecurrentGemmaConfig(**SIZES, lru_width=32),
        "longrope": lambda: hf.Phi3Config(**SIZES, pad_token_id=0, rope_parameters=rope),
        "llama": lambda: hf.LlamaConfig(**SIZES),
    }[name]()
    torch.manual_seed(0)
    hf.AutoModel.from_config(config).save_pretrained(tmp_path)
    tiny.save_tokenizer(tmp_path)
    windows_at_once(4)
    single, parallel = (
        run(tmp_path, name, LONG_WINDOWS * 5, role="decoder", threads=number) for number in (1, 8)
    )
    np.testing.assert_array_equal(single.states, parallel.states)
    assert parallel.sample.forward.changes_itself == (name != "llama")


def test_a_model_without_a_mask_runs_each_window_alone(tmp_path, windows_at_once, caplog):
    """FNet mixes all positions of a row, including padding."""
    config = hf.FNetConfig(
        vocab_size=300, hidden_size=32, num_hidden_layers=3, intermediate_size=64
    )
    checkpoint = tmp_path / "fnet"
    torch.manual_seed(0)
    hf.FNetModel(config).save_pretrained(checkpoint)
    tiny.save_tokenizer(checkpoint, special=True)
    alone = run_windows_alone(checkpoint)
    with caplog.at_level("INFO"):
        for size in (1, 4, 16):
            windows_at_once(size)
            store = run(checkpoint, "fnet", LONG_WINDOWS, role="encoder")
            np.testing.assert_array_equal(store.states, alone)
    assert "windows are run one by one" in caplog.text


def test_states_missing_in_the_library_are_recorded_at_the_blocks(tmp_path, windows_at_once):
    config = hf.MambaConfig(vocab_size=300, hidden_size=32, num_hidden_layers=3, state_size=8)
    checkpoint = tmp_path / "mamba"
    torch.manual_seed(0)
    hf.MambaModel(config).save_pretrained(checkpoint)
    tiny.save_tokenizer(checkpoint)
    library = run_windows_alone(checkpoint)  # after block 1, 2 and 3, and after the norm
    windows_at_once(1)
    store = run(checkpoint, "mamba", LONG_WINDOWS, role="decoder", last_layer="both")
    ids = store.sample.rows["token_ids"]
    embeddings = store.sample.forward.model.get_input_embeddings().weight[ids].numpy()
    expected = [embeddings, library[0], library[1], library[3], library[2]]
    np.testing.assert_array_equal(store.states, expected)


def test_a_failed_pass_leaves_no_states_for_the_next():
    config = hf.MambaConfig(vocab_size=300, hidden_size=32, num_hidden_layers=3, state_size=8)
    model = hf.MambaModel(config).eval()
    forward = ForwardPass(model, None, last_layer="after_final_norm")
    ids = np.arange(20)
    window = TokenisedWindow(ids, ids < 0)
    expected, _ = forward.compute_hidden_states([window], 0)

    def exhaust_memory(*_):
        raise MemoryError

    hook = model.layers[1].register_forward_pre_hook(exhaust_memory)
    with pytest.raises(MemoryError):
        forward.compute_hidden_states([window], 0)
    hook.remove()
    states, _ = forward.compute_hidden_states([window], 0)
    assert len(states) == len(expected) == 4
    assert all(map(torch.equal, states, expected))


@pytest.mark.parametrize("key", ["return_dict", "tie_last_hidden_states"])
def test_settings_of_a_configuration_do_not_change_the_last_state(key, tmp_path):
    checkpoint = tiny.save_stirred_model(tmp_path, "llama")
    expected = run(checkpoint, "llama").states
    config = json.loads((checkpoint / "config.json").read_text())
    (checkpoint / "config.json").write_text(json.dumps(config | {key: False}))
    np.testing.assert_array_equal(run(checkpoint, "llama").states, expected)


@pytest.mark.parametrize("offset", [1, 2])
def test_positions_after_the_padding_token_shorten_the_context(offset):
    sizes = {**SIZES, "max_position_embeddings": 64, "pad_token_id": offset - 1}
    longformer = hf.LongformerConfig(**sizes, attention_window=8)
    for config in (
        *(hf.CamembertConfig(**sizes), hf.RobertaConfig(**sizes), hf.LukeConfig(**sizes)),
        longformer,  # it pads every text to this width
    ):
        forward = ForwardPass(hf.AutoModel.from_config(config), None, last_layer="after_final_norm")
        assert forward.find_context() == 64 - offset
    plain = ForwardPass(
        hf.AutoModel.from_config(hf.BertConfig(**sizes)), None, last_layer="after_final_norm"
    )
    assert plain.find_context() == 64


def test_a_text_beyond_an_unstated_limit_is_refused_as_too_long():
    """LED pads each text, so the rows of its table of positions are not those of tokens."""
    config = hf.LEDConfig(
        vocab_size=300, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, attention_window=8,
        max_encoder_position_embeddings=64,
    )  # fmt: skip
    encoder = hf.LEDModel(config).eval().get_encoder()
    forward = ForwardPass(encoder, None, last_layer="after_final_norm")
    assert forward.run([np.full(64, 9)], 1).last_hidden_state.shape == (1, 64, 32)
    with pytest.raises(InputError, match=r"the model runs on 32 tokens, but not on 65 .*; lower"):
        forward.run([np.full(65, 9)], 1)


def test_a_position_limit_of_minus_one_means_no_limit():
    model = hf.XLNetModel(
        hf.XLNetConfig(vocab_size=300, d_model=32, n_layer=2, n_head=4, d_inner=64)
    )
    assert ForwardPass(model, None, last_layer="after_final_norm").find_context() is None


def test_a_model_that_draws_random_numbers_is_refused():
    config = hf.ReformerConfig(
        vocab_size=300, hidden_size=32, attn_layers=["lsh", "lsh"], axial_pos_embds=False, num_hidden_layers=2,
        attention_head_size=8, num_attention_heads=2, num_buckets=2, feed_forward_size=64, lsh_attn_chunk_length=8,
    )  # fmt: skip
    forward = ForwardPass(hf.ReformerModel(config).eval(), None, last_layer="after_final_norm")
    ids = np.random.default_rng(0).integers(5, 300, 48)
    window = TokenisedWindow(ids, ids < 0)
    with pytest.raises(InputError, match="other hidden states when it is run again"):
        forward.needs_windows_alone([window], 0)
