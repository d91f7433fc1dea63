"""What makes a checkpoint: the files that belong to it, and the shape that its ``config.json`` states."""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path
from typing import Any

from shape_of_learning.errors import InputError
from shape_of_learning.files import refuse_odd_file

CONFIGURATION, ADAPTER = "config.json", "adapter_config.json"
# Safetensors before pickles and a single file before shards, which is how transformers chooses.
WEIGHTS = (
    ("model.safetensors", "model.safetensors.index.json"),
    ("pytorch_model.bin", "pytorch_model.bin.index.json"),
)
# The first key that is there counts: transformers lets the `n_embed` of old BLOOM revisions win.
LAYER_KEYS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers", "layers")
WIDTH_KEYS = ("n_embed", "hidden_size", "n_embd", "d_model", "dim", "emb_dim", "embed_dim")
# Of a model with an encoder and a decoder: what counts the layers of its encoder.
ENCODER_LAYER_KEYS = ("encoder_layers", "num_encoder_layers", *LAYER_KEYS)
# One kind for each layer, in place of their number.
LAYER_LISTS = ("layers_block_type", "layer_types", "hybrid_override_pattern")
# Where a model of text and something else has what it says of its text model.
TEXT_PARTS = ("text_config", "text_encoder", "thinker_config", "vlm_config")

# Larger than any model there is: what is beyond would keep a plan or a job busy without end.
MOST_LAYERS, MOST_WIDTH = 1_000, 1_000_000
# Parts within parts of a configuration: Qwen2.5-Omni has two.
MOST_NESTED = 4

# fmt: off
# Any of these holds a vocabulary, in the format of one tokenizer library or another.
VOCABULARIES = frozenset({
    "byte_maps.json", "prophetnet.tokenizer", "sentencepiece.bpe.model", "sentencepiece.model", "spiece.model",
    "spm.model", "spm_char.model", "tokenizer.json", "tokenizer.model", "vocab-src.json", "vocab.json", "vocab.txt",
})
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
    """Whether it is a relative path: ``a/b``, without ``..``, ``.``, a drive or a control character."""
    return (
        isinstance(path, str)
        and not re.search(r"[\x00-\x1f\x7f]", path)
        and not re.match("[A-Za-z]:", path)
        and not {"", ".", ".."} & set(re.split(r"[/\\]", path))
    )


def is_file_name(name: object) -> bool:
    """Whether it names a file of one folder, on any system."""
    return isinstance(name, str) and is_inside(name) and not re.search(r"[/\\:]", name)


def join_path(folder: str, name: str) -> str:
    """Path of a file in a folder of a repository, ``""`` for the top."""
    return f"{folder}/{name}" if folder else name


def list_shard_names(index: Any) -> list[str]:
    """List the files that an index of shards names, sorted.

    Parameters
    ----------
    index : object
        What ``model.safetensors.index.json`` holds.

    Raises
    ------
    ValueError
        If it is no such index, or a name in it is none of a file in the index's own folder.
    """
    placed = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(placed, dict) or not placed or not all(map(is_file_name, placed.values())):
        raise ValueError("its `weight_map` names what is no file beside it")
    return sorted(set(placed.values()))


def list_tokenizer_paths(paths: Collection[str], subfolder: str) -> list[str]:
    """Choose the files of the tokenizer among all of a repository, sorted; empty if there is none.

    The checkpoint's own folder goes before the top of its repository, and one that holds a vocabulary before one
    with settings alone, which is all that a tokenizer of bytes has.
    """
    for needed in (VOCABULARIES, {TOKENIZER_CONFIGURATION}):
        for folder in (subfolder, ""):
            present = {name for name in TOKENIZER if join_path(folder, name) in paths}
            if needed & present:
                return sorted(join_path(folder, name) for name in present)
    return []


@dataclass(frozen=True)
class Shape:
    """What a model is like; empty or 0 is what is not known.

    Attributes
    ----------
    role : {"encoder", "decoder", "encoder-decoder", ""}
        Of a model that is to be measured one of the first two; of an encoder-decoder the sizes are the encoder's.
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


def parse_shape(config: Mapping[str, Any], where: str) -> Shape:
    """Read the shape of a model from its ``config.json``.

    Parameters
    ----------
    config : mapping
        ``config.json`` as transformers writes it, in the words of any architecture.
    where : str
        How an error names the checkpoint, such as ``"model `opt-350m`"``.

    Returns
    -------
    Shape
        What it does not state is empty or 0. Of a model of text and images, say, it is that of the text model, of an
        encoder-decoder that of the encoder.

    Raises
    ------
    InputError
        If it states what cannot be.
    """
    role = read_role(config) or ""
    part = _find_encoder_part(config) if role == "encoder-decoder" else find_text_part(config)
    keys = ENCODER_LAYER_KEYS if role == "encoder-decoder" else LAYER_KEYS
    width = last = _read_count(part, WIDTH_KEYS, MOST_WIDTH, where)
    layers = _read_count(part, keys, MOST_LAYERS, where) or _count_listed_layers(part, where)
    # opt-350m projects its last hidden state from 1024 to 512; no other architecture has the key.
    if part.get("model_type") == "opt" and part.get("word_embed_proj_dim"):
        last = _read_count(part, ("word_embed_proj_dim",), MOST_WIDTH, where)
    return Shape(role, layers, width, last)


def complete_shape(entry: Shape, own: Shape, where: str) -> Shape:
    """Fill in what an entry of the model list leaves out, by what the checkpoint says.

    Raises
    ------
    InputError
        If both say something else of the same, or if neither tells the role or a size.
    """
    refuse_contradiction(entry, own, where)
    whole = Shape(**{key: said or getattr(own, key) for key, said in asdict(entry).items()})
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


def refuse_contradiction(entry: Shape, own: Shape, where: str) -> None:
    """Raise InputError if an entry of the model list and a checkpoint say something else of the same."""
    for key in ("layers", "hidden_size", "last_hidden_size", "role"):
        said, stated = getattr(entry, key), getattr(own, key)
        if (said, stated) == ("encoder", "encoder-decoder"):
            continue
        if said and stated and said != stated:
            raise InputError(
                f"{where}: for `{key}` config.json of the checkpoint says {stated} where the entry says "
                f"{said}; correct `{key}` in the entry, or its repository or revision if this is another "
                "model than meant"
            )


def refuse_quantised(config: Mapping[str, Any], where: str) -> None:
    """Raise InputError if weights went through few bits, which no figure of the workflow would say."""
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
        raise InputError(
            f"{folder} holds an adapter and no model; merge them (peft: "
            "`PeftModel.from_pretrained(model, folder).merge_and_unload()`) and save model and tokenizer together "
            "(`save_pretrained`)"
        )
    refuse_odd_file(path)
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


def find_model_folder(folder: Path) -> Path:
    """Find the model that an adapter in a folder belongs to; the folder itself if it holds no adapter.

    Raises
    ------
    InputError
        If a whole model is in the folder, too, or what the adapter names is no folder.
    """
    adapter = folder / ADAPTER
    if not adapter.exists():
        return folder
    if (folder / CONFIGURATION).exists():
        raise InputError(
            f"{folder} holds a whole model and beside it an adapter, {ADAPTER}, and nothing says whether it is to be "
            f"applied; take {ADAPTER} away to measure the model without it, or merge them (peft: "
            "`PeftModel.from_pretrained(model, folder).merge_and_unload()`) and save the whole elsewhere"
        )
    refuse_odd_file(adapter)
    try:
        base = json.loads(adapter.read_text(encoding="utf-8"))["base_model_name_or_path"]
        if (Path(base) / CONFIGURATION).is_file() and not (Path(base) / ADAPTER).exists():
            return Path(base)
        named = f"`{base!s:.200}`, which is no folder with a {CONFIGURATION}"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        named = "no model"
    raise InputError(
        f"{adapter} names {named}; set its `base_model_name_or_path` to the folder of the model, or merge "
        "both (peft: `PeftModel.from_pretrained(model, folder).merge_and_unload()`) and save the whole "
        "(`save_pretrained`)"
    )


def refuse_listed_adapter(names: Collection[str], subfolder: str, where: str) -> None:
    """Raise InputError if a whole model of a repository has an adapter beside it, among the names of its files."""
    if join_path(subfolder, ADAPTER) in names:
        raise InputError(
            f"{where}: beside the whole model there is an adapter, {ADAPTER}, and nothing says whether it is to be "
            "applied; name the repository of one of them, or merge them into a folder of your own"
        )


def find_text_part(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a configuration says of its text model: a part of it, or all of it."""
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
    # What generates and is no encoder-decoder is a decoder that is shown images or sounds, too.
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
    """Whether it states that attention goes both ways, in the words of Llama, Gemma or XLM."""
    return (
        config.get("is_causal") is False
        or config.get("causal") is False
        or config.get("use_bidirectional_attention") in (True, "all")
    )


def _find_encoder_part(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the configuration of an encoder-decoder says of its encoder."""
    encoder = config.get("encoder")
    return find_text_part(encoder if isinstance(encoder, dict) else config)


def _read_count(config: Mapping[str, Any], keys: tuple[str, ...], most: int, where: str) -> int:
    """Return the number under the first of the keys that is there; 0 if none is."""
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
    """Count the layers that a configuration lists by their kinds; 0 if it does not."""
    listed = [config[key] for key in LAYER_LISTS if isinstance(config.get(key), list | str)]
    return _read_count({"layers": len(listed[0])}, ("layers",), MOST_LAYERS, where) if listed else 0
