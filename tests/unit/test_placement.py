import logging

import accelerate
import numpy as np
import pytest
import torch
import transformers

from dumps import WINDOWS
from shape_of_learning.embeddings.cross_entropy import next_tokens
from shape_of_learning.embeddings.forward_pass import ForwardPass
from shape_of_learning.embeddings.language_model_head import LanguageModelHead
from shape_of_learning.embeddings.placement import spreading, weight_bytes
from shape_of_learning.embeddings.tokenisation import load_tokenizer, tokenise
from tiny_models import CONFIGURATIONS, save_stirred_model, with_head


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_weights_are_counted_without_being_made(name):
    configuration = CONFIGURATIONS[name]()
    model = with_head(name).from_config(configuration)
    numbers = sum(weight.numel() for weight in model.parameters())
    assert weight_bytes(with_head(name), configuration, "float32") == 4 * numbers
    assert weight_bytes(with_head(name), configuration, "bfloat16") == 2 * numbers


def test_a_model_that_fits_is_not_spread():
    assert spreading(11 * 10**9, 16 * 10**9) == {}


def test_a_model_that_does_not_fit_is_spread():
    assert spreading(52 * 10**9, 24 * 10**9) == {"device_map": "auto"}


@pytest.mark.parametrize("last_layer", ["after_final_norm", "before_final_norm"])
@pytest.mark.parametrize("name", ["gpt_neox", "bloom", "llama", "opt"])
def test_a_model_in_several_places_computes_what_it_does_in_one(name, last_layer, tmp_path):
    checkpoint = save_stirred_model(tmp_path / "model", name)
    windows = tokenise(load_tokenizer(checkpoint), WINDOWS)
    results = []
    for spread in (False, True):
        model = transformers.AutoModelForCausalLM.from_pretrained(checkpoint).eval()
        if spread:
            # Without a GPU the disk is the other place; the hooks are the same.
            accelerate.disk_offload(model, tmp_path / "offloaded", torch.device("cpu"))
        forward = ForwardPass(
            model.base_model,
            LanguageModelHead(model),
            device=torch.device("cpu"),
            last_layer=last_layer,
        )
        computed = forward.hidden_states(windows, 0, [next_tokens(w) for w in windows])
        rows = [list(computed.rows(layer)) for layer in range(len(computed.states))]
        results.append((rows, computed.sums.values()))
    (rows, sums), (rows_spread, sums_spread) = results
    for layer, spread in zip(rows, rows_spread, strict=True):
        for expected, found in zip(layer, spread, strict=True):
            np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(sums_spread, sums)


def test_a_forward_pass_computes_in_full_precision(tmp_path, caplog):
    checkpoint = save_stirred_model(tmp_path / "model", "gpt_neox")
    matmul = torch.backends.cuda.matmul
    torch.set_float32_matmul_precision("medium")
    torch.backends.cudnn.allow_tf32 = matmul.allow_tf32 = True
    try:
        with caplog.at_level(logging.INFO):
            ForwardPass.load(
                checkpoint,
                role="decoder",
                precision="float32",
                last_layer="after_final_norm",
                device=torch.device("cpu"),
            )
        assert torch.get_float32_matmul_precision() == "highest"
        assert not matmul.allow_tf32
        assert not torch.backends.cudnn.allow_tf32
        assert not matmul.allow_bf16_reduced_precision_reduction
    finally:
        torch.set_float32_matmul_precision("highest")
        torch.backends.cudnn.allow_tf32 = matmul.allow_tf32 = False
