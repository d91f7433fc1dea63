"""The matrices of a model are found for every architecture, as they are."""

import numpy as np
import pytest
import torch
import transformers as hf

from runs import sample_of
from shape_of_learning.embeddings.matrices import model_matrices
from tiny_models import CONFIGURATIONS, USUAL, VOCABULARY, WIDTHS, save_stirred_model, with_head

TIED = ["tied"]
APART = ["input", "output"]
ARE_APART = ("gpt_neox", "llama", "gptj")


def matrices_of(checkpoint, name):
    sample = sample_of(checkpoint, WIDTHS.get(name, [32] * 4))
    return model_matrices(sample.forward)


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_every_architecture_has_its_matrices_bit_for_bit(name, tmp_path):
    checkpoint = save_stirred_model(tmp_path, name)
    found = matrices_of(checkpoint, name)
    model = with_head(name).from_pretrained(checkpoint, dtype=torch.float32)
    ends = {
        "input": model.get_input_embeddings().weight,
        "output": model.get_output_embeddings().weight,
        "tied": model.get_input_embeddings().weight,
    }
    names = APART if name in ARE_APART else TIED
    norm = sample_of(checkpoint, WIDTHS[name]).forward.final_norm
    assert list(found) == names + ([] if norm is None else ["final_norm"])
    for matrix in names:
        assert found[matrix].dtype == np.float32
        assert found[matrix].shape[0] == VOCABULARY
        np.testing.assert_array_equal(found[matrix], ends[matrix].detach().numpy())
    if norm is not None:
        rows = [row.numpy() for row in norm.parameters()]
        np.testing.assert_array_equal(found["final_norm"], rows)


def test_the_gain_of_a_norm_that_adds_one_to_its_weight_is_what_it_multiplies_by(tmp_path):
    config = hf.GemmaConfig(**USUAL, num_key_value_heads=1, head_dim=16)
    checkpoint = save_stirred_model(tmp_path, "gemma", config)
    gain = matrices_of(checkpoint, "gemma")["final_norm"]
    weight = hf.AutoModel.from_pretrained(checkpoint, dtype=torch.float32).norm.weight
    np.testing.assert_array_equal(gain, [1 + weight.detach().numpy()])
