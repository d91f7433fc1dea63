"""Where the weights of a model go: to one device, or to several if one is too small."""

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from transformers import PretrainedConfig

# Of a GPU's free memory; the rest is for activations and for what the libraries set aside.
SHARE_FOR_WEIGHTS = 0.85


def default_device() -> "torch.device":
    """Return the first visible GPU, or the CPU where there is none."""
    import torch

    return torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")


def weight_bytes(kind: Any, config: "PretrainedConfig", precision: str) -> int:
    """Count the bytes of a model's weights from its architecture alone; nothing is allocated.

    Parameters
    ----------
    kind : type
        Auto class of the library that has ``from_config``.
    config : transformers.PretrainedConfig
        Architecture and sizes.
    precision : str
        Name of their type.
    """
    import torch

    with torch.device("meta"):
        model = kind.from_config(copy.deepcopy(config), trust_remote_code=False)
    return sum(weight.numel() for weight in model.parameters()) * getattr(torch, precision).itemsize


def spreading(needed: int, free: int) -> dict[str, str]:
    """Return the options of ``from_pretrained`` that spread a model which one GPU cannot hold.

    Parameters
    ----------
    needed, free : int
        Bytes of its weights and of free memory on the GPU.

    Returns
    -------
    dict
        Empty if it can. Else the model is spread over all visible GPUs and, if they are too small
        together, over host memory and, where its weights are safetensors, disk; from there they come
        for each window batch: slow, but it ends.
    """
    if needed <= SHARE_FOR_WEIGHTS * free:
        return {}
    # The library spreads models with it, and says so with a page of its own where it is missing.
    import accelerate  # noqa: F401

    return {"device_map": "auto"}
