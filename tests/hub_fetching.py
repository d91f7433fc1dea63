"""Models for a Hub on loopback, and the settings of who asks it."""

import os
from pathlib import Path

import torch
import transformers

LAYERS, WIDTH = 2, 16
WORKFLOW = Path(__file__).parents[1] / "workflow"


def save_model(
    folder: Path, *, seed: int, form: str, hidden_size: int = WIDTH, shard_size: str = "15KB"
) -> Path:
    """Save a random model as `safetensors`, in `shards` of these, as `bin`, or `both` whole."""
    torch.manual_seed(seed)
    model = transformers.GPTNeoXForCausalLM(
        transformers.GPTNeoXConfig(
            vocab_size=300,
            hidden_size=hidden_size,
            num_hidden_layers=LAYERS,
            num_attention_heads=2,
            intermediate_size=2 * hidden_size,
        )
    )
    if form in ("safetensors", "both"):
        model.save_pretrained(folder)
    if form == "shards":
        model.save_pretrained(folder, max_shard_size=shard_size)
    if form in ("bin", "both"):
        model.config.save_pretrained(folder)
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
    return folder


def environment(endpoint: str, folder: Path, **more: str) -> dict[str, str]:
    """No settings of the user's own; the Hugging Face cache is in `folder`."""
    own = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
    settings = {
        "HF_ENDPOINT": endpoint,
        "HF_HOME": str(folder / "hf"),
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "NO_PROXY": "127.0.0.1",
        "PYTHONPATH": f"{WORKFLOW}{os.pathsep}{WORKFLOW / 'scripts'}",
    }
    return own | settings | more
