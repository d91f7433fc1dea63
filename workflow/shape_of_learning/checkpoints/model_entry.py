"""What a checkpoint says of itself, in its ``config.json``, against its entry in the model list."""

import json
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass
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


@dataclass(frozen=True)
class Shape:
    """What a model is like; empty or 0 is what is not known.

    Attributes
    ----------
    role : {"encoder", "decoder", ""}
    layers : int
        Transformer blocks.
    hidden_size, last_hidden_size : int
        Width of the hidden states, and of the last one, which opt-350m projects.
    """

    role: str = ""
    layers: int = 0
    hidden_size: int = 0
    last_hidden_size: int = 0

    def is_whole(self) -> bool:
        """Whether nothing is unknown."""
        return all(astuple(self))


def shape_of(config: Mapping[str, Any], where: str) -> Shape:
    """Read the shape of a model from its ``config.json``.

    Parameters
    ----------
    config : mapping
        ``config.json`` as transformers writes it, in the words of any architecture.
    where : str
        How an error names the checkpoint, such as ``"model `opt-350m`"``.

    Raises
    ------
    InputError
        If it does not state layers and width, or states what cannot be or that weights are quantised.
    """
    if config.get("quantization_config") is not None:
        raise InputError(
            f"{where}: config.json of the checkpoint has a `quantization_config`, but quantised weights are "
            "not those that were trained; name the repository and revision of the full weights"
        )
    for key, kind in (("model_type", str), ("architectures", list)):
        if not isinstance(config.get(key), kind | None):
            raise _impossible(key, config[key], where)
    width = _stated(config, WIDTH_KEYS, where)
    layers = _stated(config, LAYER_KEYS, where)
    return Shape(role_of(config) or "", layers, width, _last_width(config, width, where))


def completed(entry: Shape, own: Shape, where: str) -> Shape:
    """Fill in what an entry of the model list leaves out, by what the checkpoint says.

    Raises
    ------
    InputError
        If both say something else of the same, or if neither tells the role.
    """
    refuse_contradiction(entry, own, where)
    whole = Shape(**{key: said or getattr(own, key) for key, said in asdict(entry).items()})
    if whole.role not in ("encoder", "decoder"):
        raise InputError(
            f"{where}: config.json of the checkpoint does not tell an encoder from a decoder; add "
            "`role: encoder` or `role: decoder` to the entry"
        )
    return whole


def refuse_contradiction(entry: Shape, own: Shape, where: str) -> None:
    """Raise InputError if an entry of the model list and a checkpoint say something else of the same."""
    for key in ("layers", "hidden_size", "last_hidden_size", "role"):
        said, stated = getattr(entry, key), getattr(own, key)
        if said and stated and said != stated:
            raise InputError(
                f"{where}: for `{key}` config.json of the checkpoint says {stated} where the entry says "
                f"{said}; correct `{key}` in the entry, or its repository or revision if this is another "
                "model than meant"
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
    except (OSError, ValueError, RecursionError):
        config = None
    if not isinstance(config, dict):
        raise InputError(
            f"{path} is missing or no JSON object, so {folder} is no checkpoint; fetch it anew, or if it is "
            "your own save the whole model there"
        )
    return config


def role_of(config: Mapping[str, Any]) -> str | None:
    """Tell encoders and decoders apart; ``"encoder-decoder"`` for both at once, None if unknown."""
    if config.get("is_encoder_decoder"):
        return "encoder-decoder"
    if config.get("is_decoder"):  # a BERT whose attention is causal
        return "decoder"
    model_type = config.get("model_type")
    if not isinstance(model_type, str):
        model_type = ""
    if model_type in ENCODERS:
        return "encoder"
    if model_type in DECODERS:
        return "decoder"
    stated = config.get("architectures")
    names = [str(name) for name in stated] if isinstance(stated, list) else []
    if any(name.endswith("ForMaskedLM") for name in names):
        return "encoder"
    if any(name.endswith(("ForCausalLM", "LMHeadModel")) for name in names):
        return "decoder"
    return None


def _stated(config: Mapping[str, Any], keys: tuple[str, ...], where: str) -> int:
    for key in keys:
        if config.get(key) is not None:
            return _size(config, key, where)
    raise InputError(
        f"{where}: config.json of the checkpoint has none of the keys {', '.join(keys)} with a number, so "
        "its shape is not known; give a repository and revision in the transformers format"
    )


def _size(config: Mapping[str, Any], key: str, where: str) -> int:
    if type(config[key]) is not int or config[key] < 1:
        raise _impossible(key, config[key], where)
    return config[key]


def _impossible(key: str, value: object, where: str) -> InputError:
    return InputError(
        f"{where}: config.json of the checkpoint says {value!r:.60} for `{key}`, which cannot be; give a "
        "repository and revision, or a folder, in the transformers format"
    )


def _last_width(config: Mapping[str, Any], width: int, where: str) -> int:
    # opt-350m projects its last hidden state from 1024 to 512; no other architecture has the key.
    if config.get("model_type") == "opt" and config.get("word_embed_proj_dim"):
        return _size(config, "word_embed_proj_dim", where)
    return width
