"""What a checkpoint says of itself, in its ``config.json``, against its entry in the model list."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shape_of_learning.checkpoints.checkpoint_files import CONFIGURATION
from shape_of_learning.errors import InputError

# The first key that is there counts: transformers lets the `n_embed` of old BLOOM revisions win.
LAYER_KEYS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
WIDTH_KEYS = ("n_embed", "hidden_size", "n_embd", "d_model", "dim")

# fmt: off
ENCODERS = frozenset({
    "albert", "bert", "camembert", "deberta", "deberta-v2", "distilbert", "electra", "ernie",
    "modernbert", "mpnet", "roberta", "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl",
})
DECODERS = frozenset({
    "bloom", "codegen", "cohere", "falcon", "gemma", "gemma2", "gpt2", "gpt_bigcode", "gpt_neo",
    "gpt_neox", "gpt_neox_japanese", "gptj", "llama", "mistral", "mixtral", "mpt", "olmo", "olmo2",
    "olmo3", "opt", "persimmon", "phi", "phi3", "qwen2", "qwen3", "stablelm", "starcoder2", "xglm",
    "RefinedWeb", "RefinedWebModel",
})
# fmt: on


def check_against_entry(
    config: Mapping[str, Any],
    *,
    where: str,
    layers: int | None = None,
    hidden_size: int | None = None,
    role: str | None = None,
    last_hidden_size: int | None = None,
) -> None:
    """Refuse a checkpoint whose ``config.json`` contradicts its entry in the model list.

    Parameters
    ----------
    config : mapping
        ``config.json`` as transformers writes it, in the words of any architecture.
    where : str
        How an error names the checkpoint, such as ``"model `opt-350m`"``.
    layers, hidden_size : int, optional
        Number of transformer blocks and width of the hidden states. What is None is not compared.
    role : {"encoder", "decoder"}, optional
        Compared only where the architecture is a known one.
    last_hidden_size : int, optional
        Width of the last hidden state where it is projected, as in opt-350m; else `hidden_size`.

    Raises
    ------
    InputError
        On the first contradiction, or if the configuration does not state layers and width.
    """
    own_width = _stated(config, WIDTH_KEYS, where)
    compared = [
        ("layers", _stated(config, LAYER_KEYS, where), layers),
        ("hidden_size", own_width, hidden_size),
        ("last_hidden_size", _last_width(config, own_width), last_hidden_size or hidden_size),
    ]
    own_role = role_of(config)
    if own_role is not None:
        compared.append(("role", own_role, role))
    for key, own, expected in compared:
        if expected is not None and own != expected:
            raise InputError(
                f"{where}: for `{key}` config.json of the checkpoint says {own} where the entry says "
                f"{expected}; correct `{key}` in the entry, or its repository or revision if this is "
                "another model than meant"
            )


def read_configuration_file(folder: Path) -> dict[str, Any]:
    """Read ``config.json`` of a checkpoint.

    Raises
    ------
    InputError
        If it is missing or no JSON object.
    """
    path = folder / CONFIGURATION
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        config = None
    if not isinstance(config, dict):
        raise InputError(f"{path} is missing or no JSON object, so {folder} is no checkpoint")
    return config


def role_of(config: Mapping[str, Any]) -> str | None:
    """Tell encoders and decoders apart; ``"encoder-decoder"`` for both at once, None if unknown."""
    if config.get("is_encoder_decoder"):
        return "encoder-decoder"
    if config.get("is_decoder"):  # a BERT whose attention is causal
        return "decoder"
    model_type = config.get("model_type")
    if model_type in ENCODERS:
        return "encoder"
    if model_type in DECODERS:
        return "decoder"
    names = [str(name) for name in config.get("architectures") or []]
    if any(name.endswith("ForMaskedLM") for name in names):
        return "encoder"
    if any(name.endswith(("ForCausalLM", "LMHeadModel")) for name in names):
        return "decoder"
    return None


def _stated(config: Mapping[str, Any], keys: tuple[str, ...], where: str) -> int:
    for key in keys:
        if isinstance(config.get(key), int):
            return config[key]
    raise InputError(
        f"{where}: config.json of the checkpoint has none of the keys {', '.join(keys)}, so it cannot "
        "be checked against the entry; give a repository and revision in the transformers format"
    )


def _last_width(config: Mapping[str, Any], width: int) -> int:
    # opt-350m projects its last hidden state from 1024 to 512; no other architecture has the key.
    if config.get("model_type") == "opt":
        return config.get("word_embed_proj_dim") or width
    return width
