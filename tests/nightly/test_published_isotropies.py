"""The isotropies of pythia-70m in the authors' README, from the weights in the cache or on the Hub."""

import numpy as np
import pytest
import torch
import transformers

from shape_of_learning.metrics.registry import find_measure

# Isotropy I of the input and output embeddings, and of both without their mean.
PUBLISHED = {
    ("input", False): 0.9584758,
    ("output", False): 0.0830891,
    ("input", True): 0.9968441,
    ("output", True): 0.9724734,
}


def test_the_published_isotropies_of_pythia_70m():
    """The signs of the authors' eigenvectors are unknown, so that both are tried."""
    try:
        model = transformers.AutoModelForCausalLM.from_pretrained(
            "EleutherAI/pythia-70m", dtype=torch.float32
        )
    except OSError as error:
        pytest.skip(f"pythia-70m is neither in the cache nor on the Hub: {error}")
    ends = {"input": model.get_input_embeddings(), "output": model.get_output_embeddings()}
    for (end, center), published_value in PUBLISHED.items():
        weight = ends[end].weight.detach()
        W = weight - weight.mean(dim=0) if center else weight
        _, directions = torch.linalg.eigh(W.T @ W)
        sums = [torch.exp(W @ value).sum(dim=0) for value in (directions, -directions)]
        name = f"matrix_partition_isotropy{'_centered' if center else ''}"
        own_value = find_measure(name).configure(name, {}).load()(weight.numpy())
        values = [*(float(F.min() / F.max()) for F in sums), float(np.exp(own_value))]
        assert published_value in [pytest.approx(value, abs=1e-3) for value in values], (
            end,
            center,
            values,
        )
