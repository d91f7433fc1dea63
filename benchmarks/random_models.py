"""Models of the paper's sizes with random weights, made where they are used, and windows of random tokens."""

from typing import TYPE_CHECKING

import numpy as np

from shape_of_learning.embeddings.forward_pass import ForwardPass
from shape_of_learning.embeddings.language_model_head import LanguageModelHead
from shape_of_learning.embeddings.tokenisation import TokenisedWindow
from shape_of_learning.random_streams import random_stream

if TYPE_CHECKING:
    import torch

# Architecture and sizes as in the published config.json; `tiny` only shows that the program runs.
SHAPES: dict[str, tuple[str, dict[str, int]]] = {
    "tiny": (
        "GPTNeoXConfig",
        {"vocab_size": 300, "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 2,
         "intermediate_size": 128},
    ),
    "pythia-160m": (
        "GPTNeoXConfig",
        {"vocab_size": 50304, "hidden_size": 768, "num_hidden_layers": 12,
         "num_attention_heads": 12, "intermediate_size": 3072},
    ),
    "pythia-2.8b": (
        "GPTNeoXConfig",
        {"vocab_size": 50304, "hidden_size": 2560, "num_hidden_layers": 32,
         "num_attention_heads": 32, "intermediate_size": 10240},
    ),
    "bloom-3b": (
        "BloomConfig",
        {"vocab_size": 250880, "hidden_size": 2560, "n_layer": 30, "n_head": 32},
    ),
    "llama-2-7b": (
        "LlamaConfig",
        {"vocab_size": 32000, "hidden_size": 4096, "num_hidden_layers": 32,
         "num_attention_heads": 32, "intermediate_size": 11008, "max_position_embeddings": 4096},
    ),
}  # fmt: skip
# 512 characters of English text are about 110 tokens; markup and other scripts make more.
MEAN_LENGTH, DEVIATION, SHORTEST, LONGEST = 110, 25, 60, 400


def random_model(name: str, precision: str, device: "torch.device") -> ForwardPass:
    """Make a model of that shape on the device itself."""
    import torch
    import transformers

    kind, sizes = SHAPES[name]
    config = getattr(transformers, kind)(**sizes)
    torch.manual_seed(0)
    with torch.device(device):
        model = transformers.AutoModelForCausalLM.from_config(
            config, dtype=getattr(torch, precision)
        )
    model = model.eval().requires_grad_(False)
    return ForwardPass(
        model.base_model, LanguageModelHead(model), device=device, last_layer="after_final_norm"
    )


def random_windows(count: int, vocabulary: int) -> list[TokenisedWindow]:
    """Draw windows of random tokens, about as long as windows of 512 characters."""
    random = random_stream(0, "benchmark of the dump")
    lengths = random.normal(MEAN_LENGTH, DEVIATION, count).clip(SHORTEST, LONGEST).astype(int)
    return [
        TokenisedWindow(random.integers(vocabulary, size=n), np.zeros(n, bool)) for n in lengths
    ]
