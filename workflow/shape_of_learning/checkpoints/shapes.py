"""The files that make a checkpoint, and the shape that its ``config.json`` states."""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

from shape_of_learning.errors import InputError
from shape_of_learning.files import refuse_odd_file

CONFIGURATION, ADAPTER = "config.json", "adapter_config.json"
ADAPTER_REMEDY = (
    "measure both in Python (`sol.measure(PeftModel.from_pretrained(model, folder), tokenizer)`), or merge them, as "
    "peft can for most kinds of adapters (`.merge_and_unload()`), and save model and tokenizer elsewhere"
)
# Safetensors before pickles and a single file before shards, which is how transformers chooses.
WEIGHT_FILES = (
    ("model.safetensors", "model.safetensors.index.json"),
    ("pytorch_model.bin", "pytorch_model.bin.index.json"),
)
# The first key in a configuration counts: transformers, too, prefers the `n_embed` of old BLOOM revisions.
LAYER_KEYS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers", "layers")
WIDTH_KEYS = ("n_embed", "hidden_size", "n_embd", "d_model", "dim", "emb_dim", "embed_dim")
# The number of encoder layers of a model with an encoder and a decoder.
ENCODER_LAYER_KEYS = ("encoder_layers", "num_encoder_layers", *LAYER_KEYS)
# One kind for each layer, in place of their number.
LAYER_LISTS = ("layers_block_type", "layer_types", "hybrid_override_pattern")
# The configuration of the text model within that of a model of text and something else.
TEXT_PARTS = ("text_config", "text_encoder", "thinker_config", "vlm_config")

# Larger than any existing model; a plan or a job for more layers would never end.
MOST_LAYERS, MOST_WIDTH = 1_000, 1_000_000
# Parts within parts of a configuration: Qwen2.5-Omni has two.
MOST_NESTED = 4

# fmt: off
# Files that hold a vocabulary, in the formats of several tokenizer libraries.
VOCABULARIES = frozenset({
    "byte_maps.json", "prophetnet.tokenizer", "sentencepiece.bpe.model", "sentencepiece.model", "spiece.model",
    "spm.model", "spm_char.model", "tokenizer.json", "tokenizer.model", "vocab-src.json", "vocab.json", "vocab.txt",
})
TYPES_OF_TORCH = re.compile(r"bfloat16|float\w*|half|double|u?int\d+")
TOKENIZER_CONFIGURATION = "tokenizer_config.json"
TOKENIZER = VOCABULARIES | {
    "added_tokens.json", "bpe.codes", "dict.txt", "emoji.json", "entity_vocab.json", "merges.txt", "normalizer.json",
    "special_tokens_map.json", TOKENIZER_CONFIGURATION, "vocab-tgt.json", "word_pronunciation.json", "word_shape.json",
}
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


def is_inside(path: object) -> bool:
    """Return whether a path is relative, such as ``a/b``, without ``..``, ``.``, a drive or a control character."""
    return (
        isinstance(path, str)
        and not re.search(r"[\x00-\x1f\x7f]", path)
        and not re.match("[A-Za-z]:", path)
        and not {"", ".", ".."} & set(re.split(r"[/\\]", path))
    )


def is_file_name(name: object) -> bool:
    """Return whether a name is that of a file without a folder, on any system."""
    return isinstance(name, str) and is_inside(name) and not re.search(r"[/\\:]", name)


def join_path(folder: str, name: str) -> str:
    """Return the path of a file in a folder of a repository; the folder ``""`` is the top."""
    return f"{folder}/{name}" if folder else name


def list_shard_names(index: Any) -> list[str]:
    """List the files that an index of shards names, sorted.

    Parameters
    ----------
    index : object
        The content of ``model.safetensors.index.json``.

    Raises
    ------
    ValueError
        If the content is no index, or names a file outside the folder of the index.
    """
    files_by_tensor = index.get("weight_map") if isinstance(index, dict) else None
    if (
        not isinstance(files_by_tensor, dict)
        or not files_by_tensor
        or not all(map(is_file_name, files_by_tensor.values()))
    ):
        raise ValueError("its `weight_map` names no file, or one that is not beside it")
    return sorted(set(files_by_tensor.values()))


def list_tokenizer_paths(paths: Collection[str], subfolder: str) -> list[str]:
    """Choose the files of the tokenizer among the paths of a repository, sorted; empty if there is no tokenizer.

    A folder with a vocabulary goes before a folder with settings alone (of a tokenizer of bytes), and the checkpoint's
    own folder before the top of its repository.
    """
    for required_names in (VOCABULARIES, {TOKENIZER_CONFIGURATION}):
        for folder in (subfolder, ""):
            present = {name for name in TOKENIZER if join_path(folder, name) in paths}
            if required_names & present:
                return sorted(join_path(folder, name) for name in present)
    return []


@dataclass(frozen=True)
class Shape:
    """The role and the sizes of a model; an unknown role is empty, an unknown size 0.

    Attributes
    ----------
    role : {"encoder", "decoder", "encoder-decoder", ""}
        A model can be measured as one of the first two. The sizes of an encoder-decoder are those of its encoder.
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
        """Return whether role and sizes are all known."""
        return all(astuple(self))


def parse_shape(config: Mapping[str, Any], where: str) -> Shape:
    """Read the shape of a model from its ``config.json``.

    Parameters
    ----------
    config : mapping
        ``config.json`` as transformers writes it, of any architecture.
    where : str
        The name of the checkpoint in errors, such as ``"model `opt-350m`"``.

    Returns
    -------
    Shape
        The shape of the model. If it also reads images, the shape of its text model; if it is an encoder-decoder, that
        of its encoder.

    Raises
    ------
    InputError
        If a size is impossible.
    """
    role = read_role(config) or ""
    encoder = config.get("encoder") if role == "encoder-decoder" else None
    part = find_text_part(encoder if isinstance(encoder, dict) else config)
    keys = ENCODER_LAYER_KEYS if role == "encoder-decoder" else LAYER_KEYS
    width = last = _read_count(part, WIDTH_KEYS, MOST_WIDTH, where)
    layers = _read_count(part, keys, MOST_LAYERS, where) or _count_listed_layers(part, where)
    # opt-350m projects its last hidden state from 1024 to 512; no other architecture has the key.
    if part.get("model_type") == "opt" and part.get("word_embed_proj_dim"):
        last = _read_count(part, ("word_embed_proj_dim",), MOST_WIDTH, where)
    return Shape(role, layers, width, last)


def complete_shape(entry: Shape, checkpoint: Shape, where: str) -> Shape:
    """Complete the shape in an entry of the model list by that of the checkpoint.

    Raises
    ------
    InputError
        If the two contradict each other, or neither has the role or a size.
    """
    refuse_contradiction(entry, checkpoint, where)
    whole = Shape(
        role=entry.role or checkpoint.role,
        layers=entry.layers or checkpoint.layers,
        hidden_size=entry.hidden_size or checkpoint.hidden_size,
        last_hidden_size=entry.last_hidden_size or checkpoint.last_hidden_size,
    )
    if whole.role == "encoder-decoder":
        raise InputError(
            f"{where}: it is an encoder-decoder, which has two stacks of layers; add `role: encoder` to the entry to "
            "measure its encoder, or choose a model that is an encoder or a decoder"
        )
    if whole.role not in ("encoder", "decoder"):
        raise InputError(
            f"{where}: config.json of the checkpoint does not tell an encoder from a decoder; add "
            "`role: encoder` or `role: decoder` to the entry"
        )
    for key, keys in (("layers", LAYER_KEYS), ("hidden_size", WIDTH_KEYS)):
        if not getattr(whole, key):
            raise InputError(
                f"{where}: config.json of the checkpoint has none of the keys {', '.join(keys)} with a number; add "
                f"`{key}` to the entry"
            )
    return replace(whole, last_hidden_size=whole.last_hidden_size or whole.hidden_size)


def refuse_contradiction(entry: Shape, checkpoint: Shape, where: str) -> None:
    """Raise InputError if the shape in an entry of the model list contradicts that of the checkpoint."""
    for key in ("layers", "hidden_size", "last_hidden_size", "role"):
        entry_value, checkpoint_value = getattr(entry, key), getattr(checkpoint, key)
        if (entry_value, checkpoint_value) == ("encoder", "encoder-decoder"):
            continue
        if entry_value and checkpoint_value and entry_value != checkpoint_value:
            raise InputError(
                f"{where}: for `{key}` config.json of the checkpoint says {checkpoint_value} where the entry says "
                f"{entry_value}; correct `{key}` in the entry, or its repository or revision if this is another "
                "model than meant"
            )


def refuse_quantised(config: Mapping[str, Any], where: str) -> None:
    """Raise InputError if weights are quantised, since figures of the workflow would not mention it."""
    if config.get("quantization_config") is not None:
        raise InputError(
            f"{where}: config.json of the checkpoint has a `quantization_config`, but quantised weights are "
            "not those that were trained; name the repository and revision of the full weights, or measure it alone "
            "with `shape-of-learning measure`, which says so"
        )


def read_configuration_file(folder: Path) -> dict[str, Any]:
    """Read ``config.json`` of a checkpoint.

    Raises
    ------
    InputError
        If it is missing or no JSON object, or if an adapter is in the folder.
    """
    path = folder / CONFIGURATION
    if find_model_folder(folder) != folder:
        raise InputError(f"{folder} holds an adapter and no model; {ADAPTER_REMEDY}")
    refuse_odd_file(path)
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        config = None
    if not isinstance(config, dict):
        inside = sorted(
            [*folder.glob(f"*/{CONFIGURATION}"), *folder.glob(f"snapshots/*/{CONFIGURATION}")]
        )
        inside = [file.parent for file in inside if b"model_type" in file.read_bytes()] or sorted(
            folder.glob("*.gguf")
        )
        if inside and not path.exists():
            raise InputError(
                f"{folder} holds no checkpoint itself; name one in it, such as {inside[-1]}"
            )
        raise InputError(
            f"{path} is missing or no JSON object, so {folder} is no checkpoint; fetch it again, or if it is "
            "your own save the whole model there"
        )
    for key in ("dtype", "torch_dtype"):
        name = config.get(key)
        if isinstance(name, str) and not TYPES_OF_TORCH.fullmatch(name):
            raise InputError(
                f"{path} states `{key}: {name:.50}`, which is no type of PyTorch; write the type of the weights, such "
                "as float32"
            )
    return config


def find_model_folder(folder: Path) -> Path:
    """Find the model that an adapter in a folder belongs to; the folder itself if it holds no adapter.

    Raises
    ------
    InputError
        If a whole model is in the folder, too, or the adapter names no folder.
    """
    adapter = folder / ADAPTER
    if not adapter.exists():
        return folder
    if (folder / CONFIGURATION).exists():
        raise InputError(
            f"{folder} holds a whole model and beside it an adapter, {ADAPTER}, and nothing says whether it is to be "
            f"applied; take {ADAPTER} away to measure the model without it, or {ADAPTER_REMEDY}"
        )
    refuse_odd_file(adapter)
    try:
        base = json.loads(adapter.read_text(encoding="utf-8"))["base_model_name_or_path"]
        if (Path(base) / CONFIGURATION).is_file() and not (Path(base) / ADAPTER).exists():
            return Path(base)
        description = f"`{base!s:.200}`, which is no folder with a {CONFIGURATION}"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        description = "no model"
    raise InputError(
        f"{adapter} names {description}; set its `base_model_name_or_path` to the folder of the model, or "
        f"{ADAPTER_REMEDY}"
    )


def refuse_listed_adapter(names: Collection[str], subfolder: str, where: str) -> None:
    """Raise InputError if a whole model of a repository has an adapter beside it, among the names of its files."""
    if join_path(subfolder, ADAPTER) in names:
        raise InputError(
            f"{where}: beside the whole model there is an adapter, {ADAPTER}, and nothing says whether it is to be "
            "applied; name the repository of one of them, or merge them into a folder of your own"
        )


def find_text_part(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the configuration of the text model: a part of a configuration, or all of it."""
    for _ in range(MOST_NESTED):
        parts = (config.get(key) for key in TEXT_PARTS)
        part = next((part for part in parts if isinstance(part, dict)), None)
        if part is None:
            break
        config = part
    return config


def read_role(config: Mapping[str, Any]) -> str | None:
    """Tell encoders and decoders apart; ``"encoder-decoder"`` for both at once, None if unknown."""
    names = list_class_names(config)
    if any(name.endswith("EncoderModel") for name in names):  # of an encoder-decoder the first half
        return "encoder"
    if config.get("is_encoder_decoder"):
        return "encoder-decoder"
    part = find_text_part(config)
    if _sees_later_tokens(part):
        return "encoder"
    if part.get("is_decoder"):  # a BERT whose attention is causal
        return "decoder"
    model_type = part.get("model_type")
    if isinstance(model_type, str) and model_type in ENCODERS:
        return "encoder"
    if isinstance(model_type, str) and model_type in DECODERS:
        return "decoder"
    names += list_class_names(part)
    if any(name.endswith("ForMaskedLM") for name in names):
        return "encoder"
    # A model that generates and is no encoder-decoder is a decoder, perhaps of images or sounds, too.
    if any(name.endswith(("ForCausalLM", "LMHeadModel")) for name in names) or (
        part is not config and any(name.endswith("ForConditionalGeneration") for name in names)
    ):
        return "decoder"
    return None


def list_class_names(config: Mapping[str, Any]) -> list[str]:
    """List the classes of transformers that a checkpoint was saved as."""
    names = config.get("architectures")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _sees_later_tokens(config: Mapping[str, Any]) -> bool:
    """Return whether attention goes both ways, by the keys of Llama, Gemma or XLM."""
    return (
        config.get("is_causal") is False
        or config.get("causal") is False
        or config.get("use_bidirectional_attention") in (True, "all")
    )


def _read_count(config: Mapping[str, Any], keys: tuple[str, ...], most: int, where: str) -> int:
    """Return the number under the first key in a configuration; 0 if it has no key."""
    key = next((key for key in keys if config.get(key) is not None), None)
    if key is None:
        return 0
    if type(config[key]) is not int or not 1 <= config[key] <= most:
        raise InputError(
            f"{where}: config.json of the checkpoint says {config[key]!r:.60} for `{key}`, which cannot be; "
            "give a repository and revision, or a folder, in the transformers format"
        )
    return config[key]


def _count_listed_layers(config: Mapping[str, Any], where: str) -> int:
    """Count the layers that a configuration lists by their kinds; 0 without a list."""
    layer_kinds = [config[key] for key in LAYER_LISTS if isinstance(config.get(key), list | str)]
    return (
        _read_count({"layers": len(layer_kinds[0])}, ("layers",), MOST_LAYERS, where)
        if layer_kinds
        else 0
    )
