"""GGUF files: unpacked once into the folder of a checkpoint, if their tensors fit their metadata."""

import logging
import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shape_of_learning.checkpoints.gguf_tokenizers import load_gguf_tokenizer
from shape_of_learning.checkpoints.loaded_keys import refuse_other_keys, refuse_too_large
from shape_of_learning.errors import InputError, shorten_error
from shape_of_learning.file_hashes import remember_sha256
from shape_of_learning.files import atomic_write, refuse_odd_file
from shape_of_learning.validation import cut

if TYPE_CHECKING:
    import gguf
    from transformers import PretrainedConfig, PreTrainedModel

logger = logging.getLogger(__name__)

# Folder in the cache. Its number grows when this module refuses other files or reads them differently, since folders
# of older versions may be there.
UNPACKED = "gguf-5"
# File with a warning that is shown each time the unpacked file is used.
WARNING = "warning.txt"
BLOCK = re.compile(r"(?:^|\.)blk\.(\d+)\.")
# Keys that transformers replaces by a default if the metadata lack them, and the tensors that need them.
NEEDED_KEYS = (
    ("block_count", ""),
    ("embedding_length", ""),
    ("attention.head_count", "attn_q"),
    ("attention.head_count_kv", "attn_k"),
    ("attention.layer_norm(_rms)?_epsilon", "norm"),
)
# The factors by which Llama 3.1 and later divide the frequencies of positions; llama.cpp writes the factors alone.
ROPE_FACTORS = "rope_freqs.weight"
LLAMA_3_ROPE = {
    "rope_type": "llama3",
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


def unpack(file: Path) -> Path:
    """Write the weights of a GGUF file, as floating-point numbers, and its tokenizer to a folder.

    Returns
    -------
    Path
        A folder in the cache of the Hub's client, the same for the same bytes.

    Raises
    ------
    InputError
        If the file cannot be read, or its tensors do not fit the model in its metadata.
    """
    if not file.is_file():
        raise InputError(f"{file} is missing; correct the path")
    refuse_odd_file(file)
    from huggingface_hub import cached_assets_path

    folder = cached_assets_path("shape-of-learning", namespace=UNPACKED) / remember_sha256(file)
    if not folder.exists():
        _unpack_once(file, folder)
    if (folder / WARNING).exists():
        logger.warning("%s %s", file, (folder / WARNING).read_text(encoding="utf-8"))
    return folder


def _unpack_once(file: Path, folder: Path) -> None:
    for package in ("gguf", "accelerate"):  # transformers needs both, but reports it late
        if find_spec(package) is None:
            raise InputError(
                f"{file} needs the package {package}; install it: `pip install {package}`"
            )
    logger.info("unpacking %s, once", file)
    try:
        with _read_header_once():
            model, tokenizer, warning = _load(file)
    except (InputError, MemoryError):
        raise
    except Exception as error:  # the code of each architecture raises its own errors
        raise InputError(
            f"{file} cannot be unpacked ({shorten_error(error)}); take a file of an architecture that "
            "transformers reads from GGUF, or the folder of the original weights"
        ) from error
    with atomic_write(folder) as partial_folder:
        model.save_pretrained(partial_folder)
        tokenizer.save_pretrained(partial_folder)
        if warning:
            (partial_folder / WARNING).write_text(warning, encoding="utf-8")


@contextmanager
def _read_header_once() -> Iterator[None]:
    """Let the library read the header of a file once. It reads it five times, which takes half of the time.

    A slice of a plain array takes a third of the time of a slice of a memory map, and a header needs millions of
    slices. The library's bar is shown only on a terminal.
    """
    import gguf
    import numpy as np
    from transformers import modeling_gguf_pytorch_utils as library

    reader, names, tqdm = gguf.GGUFReader, gguf.get_tensor_name_map, library.tqdm

    class PlainReader(reader):  # type: ignore[misc, valid-type]
        @property
        def data(self) -> np.ndarray:
            return self._plain_data

        @data.setter
        def data(self, memory_map: np.ndarray) -> None:
            self._plain_data = np.asarray(memory_map)

    read = cache(PlainReader)
    vars(gguf).update(
        GGUFReader=lambda path: read(os.path.realpath(path)), get_tensor_name_map=cache(names)
    )
    vars(library).update(tqdm=partial(tqdm, disable=None))
    try:
        yield
    finally:
        vars(gguf).update(GGUFReader=reader, get_tensor_name_map=names)
        vars(library).update(tqdm=tqdm)


def _load(file: Path) -> "tuple[PreTrainedModel, Any, str]":
    """Load the model as from a folder of weights, its tokenizer, and a warning on the tokenizer."""
    import gguf
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    reader = gguf.GGUFReader(file)
    _refuse_metadata(file, reader)
    source: dict[str, Any] = {"gguf_file": file.name, "local_files_only": True}
    config = transformers.AutoConfig.from_pretrained(file.parent, **source)
    kind = transformers.AutoModelForCausalLM
    refuse_too_large(kind, config, sum(int(tensor.n_elements) for tensor in reader.tensors), file)
    model, report = kind.from_pretrained(
        file.parent,
        dtype="float32",
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # lists them in the report, so that they are refused below
        **source,
    )
    if lacking := refuse_other_keys(model, report, {}, file):
        raise InputError(f"{file} lacks `{cut(lacking[0])}`; take a whole file")
    _refuse_surplus(file, reader, model)
    _refuse_unread_metadata(file, reader, model.config)
    whole = type(model)(_make_folder_config(file, reader, model.config))
    whole.load_state_dict(model.state_dict())
    return whole, *load_gguf_tokenizer(file, reader)


def _refuse_metadata(file: Path, reader: "gguf.GGUFReader") -> None:
    """Refuse metadata that lack a key on which numbers depend, or state another number of blocks."""
    architecture = reader.fields["general.architecture"].contents()
    names = [tensor.name for tensor in reader.tensors]
    for pattern, tensors in NEEDED_KEYS:
        key_pattern = re.compile(rf"{re.escape(architecture)}\.{pattern}")
        if any(tensors in name for name in names) and not any(
            map(key_pattern.fullmatch, reader.fields)
        ):
            key = pattern.replace("(_rms)?", "")
            raise InputError(
                f"{file} does not state `{cut(architecture)}.{key}`, and any other value would give other "
                "numbers; take a whole file"
            )
    stated_blocks = reader.fields[f"{architecture}.block_count"].contents()
    blocks = {int(match[1]) for match in map(BLOCK.search, names) if match}
    if stated_blocks != len(blocks) or blocks != set(range(len(blocks))):
        missing = sorted(set(range(max(blocks, default=0))) - blocks)
        finding = f"no block {missing[0]}" if missing else f"tensors of {len(blocks)}"
        raise InputError(
            f"{file} states {cut(stated_blocks)} blocks (`{cut(architecture)}.block_count`), but has {finding}; take a "
            "whole file"
        )


def _refuse_unread_metadata(
    file: Path, reader: "gguf.GGUFReader", config: "PretrainedConfig"
) -> None:
    """Refuse metadata that change hidden states if transformers takes another value for them."""
    architecture = reader.fields["general.architecture"].contents()
    used_values = _list_used_values(config)
    keys = {key: f"{architecture}.{key}" for key in used_values}
    stated_values = {
        key: reader.fields[keys[key]].contents() for key in keys if keys[key] in reader.fields
    }
    if stated_values.get("rope.scaling.factor") == 1:
        stated_values["rope.scaling.type"] = "none"
    if stated_values.get("rope.scaling.type") == "none":
        stated_values.pop("rope.scaling.factor", None)
    for key, value in stated_values.items():
        used = used_values[key]
        if isinstance(value, float) and isinstance(used, int | float):
            is_same = math.isclose(value, used, rel_tol=1e-5)  # 32 bits hold 7 digits
        else:
            is_same = value == used
        if used is not None and not is_same and not isinstance(value, list):
            raise InputError(
                f"{file} states {cut(value)} for `{cut(keys[key])}`, but transformers takes {cut(used)}; take the "
                "folder of the original weights"
            )


def _list_used_values(config: "PretrainedConfig") -> dict[str, Any]:
    """List the features of a model, by their keys in the metadata; None for a feature that the model lacks."""
    values = config.to_dict()
    rope = values.get("rope_parameters") or {}
    # Files of Gemma state the positions of these layers only.
    rope = rope.get("full_attention", rope)
    rope_type = rope.get("rope_type", "default")
    heads, width = values.get("num_attention_heads"), values.get("hidden_size")
    head = None
    if isinstance(heads, int) and isinstance(width, int) and "global_head_dim" not in values:
        head = values.get("head_dim") or width // heads
    return {
        # Gemma's attention has a separate scale. Files do not state it, so it must be that of the length of keys.
        "attention.key_length": values.get("query_pre_attn_scalar") or head,
        "attention.causal": True,
        "attention.clamp_kqv": 0.0,
        "attention.max_alibi_bias": 0.0 if rope else None,
        "attention.scale": head and (values.get("query_pre_attn_scalar") or head) ** -0.5,
        "attn_logit_softcapping": values.get("attn_logit_softcapping") or 0.0,
        "embedding_scale": 1.0,
        "expert_weights_scale": 1.0,
        "residual_scale": 1.0,
        "rope.dimension_count": head and round(head * rope.get("partial_rotary_factor", 1)),
        "rope.freq_base": rope.get("rope_theta"),
        "rope.scale_linear": 1.0,
        "rope.scaling.factor": rope.get("factor", 1.0),
        "rope.scaling.type": "none" if rope_type == "default" else rope_type,
        "ssm.dt_b_c_rms": False,
        "use_parallel_residual": values.get("use_parallel_residual"),
    }


def _refuse_surplus(file: Path, reader: "gguf.GGUFReader", model: "PreTrainedModel") -> None:
    """Refuse tensors that transformers leaves out without a message."""
    from transformers.modeling_gguf_pytorch_utils import (
        TENSOR_PROCESSORS,
        TensorProcessor,
        get_gguf_hf_weights_map,
    )

    architecture = reader.fields["general.architecture"].contents()
    processor = TENSOR_PROCESSORS.get(architecture, TensorProcessor)(config=model.config.to_dict())
    known_names = {*get_gguf_hf_weights_map(model, processor), ROPE_FACTORS, "output.weight"}
    for name in (tensor.name for tensor in reader.tensors):
        # Experts are stored together, and their name may lack the end of the name of a weight.
        if name not in known_names and name.rpartition(".")[0] not in known_names:
            raise InputError(
                f"{file} holds `{cut(name)}`, which transformers leaves out of a model of the type "
                f"`{model.config.model_type}`; take the folder of the original weights"
            )


def _make_folder_config(
    file: Path, reader: "gguf.GGUFReader", config: "PretrainedConfig"
) -> "PretrainedConfig":
    """Return the configuration without its quantisation and with the position factors of the file."""
    import numpy as np
    import torch
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    settings = config.to_dict()
    settings.pop("quantization_config", None)
    plain_config = type(config).from_dict(settings)
    factors = next((t.data.astype(float) for t in reader.tensors if t.name == ROPE_FACTORS), None)
    if factors is None or (factors == 1).all():
        return plain_config
    parameters = {**(settings.get("rope_parameters") or {}), **LLAMA_3_ROPE}
    scaled_config = type(config).from_dict(
        {**settings, "rope_parameters": {**parameters, "factor": float(factors.max())}}
    )
    theta, width = parameters.get("rope_theta", 0), 2 * len(factors)
    frequencies, _ = ROPE_INIT_FUNCTIONS["llama3"](scaled_config, torch.device("cpu"))
    expected_frequencies = theta ** (-np.arange(0, width, 2) / width) / factors
    if frequencies.shape != expected_frequencies.shape or not np.allclose(
        frequencies, expected_frequencies, rtol=1e-4
    ):
        raise InputError(
            f"{file}: `{ROPE_FACTORS}` are no factors of Llama 3, and transformers would leave them out; take "
            "the folder of the original weights"
        )
    return scaled_config
