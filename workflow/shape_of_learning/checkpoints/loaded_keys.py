"""Checks that a model was loaded with all its weights and no others: a missing weight would be random."""

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from shape_of_learning.errors import InputError
from shape_of_learning.validation import cut

if TYPE_CHECKING:
    import torch
    from transformers import PretrainedConfig, PreTrainedModel

logger = logging.getLogger(__name__)

# What torch.compile and DistributedDataParallel put before the names of weights.
WRAPPERS = ("_orig_mod.", "module.")
# Modules that hidden states do not pass through; AutoModel makes them even if the files lack them.
UNUSED_MODULES = ("pooler.",)
# Ends of the names of constants that older versions of transformers saved beside the weights.
CONSTANTS = (
    "position_ids",
    "token_type_ids",
    "inv_freq",
    "cos_cached",
    "sin_cached",
    "masked_bias",
    "causal_mask",
    "version",
)
MOST_TIMES = 2  # numbers that a model may have for each number in its files
MASK_DIMENSIONS = 4  # of a triangular mask: 1 x 1 x positions x positions


def refuse_other_keys(
    model: "PreTrainedModel",
    report: Mapping[str, Any],
    tensors: Mapping[str, "torch.Tensor"],
    where: object,
) -> list[str]:
    """Refuse a model if the weights of its base model are not those in its files.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        As ``from_pretrained`` returns it, or a base model.
    report : mapping
        The loading info of ``from_pretrained`` with ``output_loading_info=True`` and
        ``ignore_mismatched_sizes=True``.
    tensors : mapping of str to tensor
        The tensors in the files.
    where : object
        The name of the files in errors.

    Returns
    -------
    list of str
        Weights outside of the base model that the files lack, such as those of a head.

    Raises
    ------
    InputError
        If the files lack a weight of the base model, the base model lacks a weight in the files, a shape differs, or a
        weight was stored as integers.

    Notes
    -----
    Weights of a head for another task may be left over. Files of a base model alone have no head, so a warning names
    the weights that are left over.
    """
    missing_keys = sorted(set(report["missing_keys"]))
    needed_keys = [
        key for key in missing_keys if _is_of_base(model, key) and not _is_unused(model, key)
    ]
    if lacking_names := [_strip_prefix(model, key) for key in needed_keys]:
        other_keys = sorted(report["unexpected_keys"])
        addition = f", and holds others, such as `{cut(other_keys[0])}`" if other_keys else ""
        remedy = (
            "give the whole checkpoint, or, if config.json states more layers than the weights have, the config.json "
            "that belongs to them"
        )
        for prefix in WRAPPERS:
            if other_keys and all(key.startswith(prefix) for key in other_keys):
                remedy = f"take `{prefix}`, which a wrapper of the training put there, off the names of its weights"
        raise InputError(
            f"{where} lacks {_describe_keys(lacking_names)}, which would be random numbers{addition}; {remedy}"
        )
    unexpected_keys = [
        key for key in sorted(report["unexpected_keys"]) if not _is_unused(model, key)
    ]
    unexpected_keys = [key for key in unexpected_keys if not _is_constant(model, key, tensors)]
    if surplus_keys := [key for key in unexpected_keys if _is_of_base(model, key)]:
        raise InputError(
            f"{where} holds {_describe_keys(surplus_keys)}, which the model in config.json does not have and "
            "would leave out; give the config.json that belongs to the weights"
        )
    # If names begin with the name of the base model, the other weights belong to a head.
    if unexpected_keys and all(key == _strip_prefix(model, key) for key in tensors):
        logger.warning(
            "%s holds %s, which the model in config.json does not have and leaves out",
            where,
            _describe_keys(unexpected_keys),
        )
    mismatches = sorted(report["mismatched_keys"], key=lambda entry: str(entry[0]))
    for key, stored_shape, expected_shape in mismatches:
        raise InputError(
            f"{where}: `{cut(key)}` has the shape {tuple(stored_shape)}, but by config.json it is "
            f"{tuple(expected_shape)}; give the config.json that belongs to the weights"
        )
    if getattr(model.config, "quantization_config", None) is None:
        _refuse_integers(model, tensors, where)
    return [key for key in missing_keys if not _is_of_base(model, key)]


def refuse_too_large(kind: Any, config: "PretrainedConfig", numbers: int, where: object) -> None:
    """Refuse a configuration of far more numbers than the files hold, before the model takes memory.

    Parameters
    ----------
    kind : type
        An ``AutoModel`` or a class of models, to be loaded.
    config : transformers.PretrainedConfig
    numbers : int
        The numbers in the files.
    where : object
        The name of the files in errors.
    """
    import torch

    if getattr(config, "quantization_config", None) is not None:
        return  # several numbers are stored as one
    try:
        with torch.device("meta"):
            if hasattr(kind, "from_config"):
                base = kind.from_config(config, trust_remote_code=False).base_model
            else:
                base = kind._from_config(config).base_model
    except Exception:  # loading raises the error
        return
    model_numbers = sum(
        weight.numel()
        for name, weight in base.named_parameters()
        if not name.startswith(UNUSED_MODULES)
    )
    if model_numbers > MOST_TIMES * numbers:
        raise InputError(
            f"{where} holds {numbers:,} numbers, but its configuration describes a model of {model_numbers:,}; give "
            "the configuration that belongs to the weights"
        )


def _describe_keys(keys: list[str]) -> str:
    return f"{len(keys)} weight{'s' * (len(keys) > 1)}, such as `{cut(keys[0])}`"


def _strip_prefix(model: "PreTrainedModel", key: str) -> str:
    """Return the name of a weight within the base model, also if the files are of a model with a head."""
    return key.removeprefix(f"{model.base_model_prefix}.")


def _is_of_base(model: "PreTrainedModel", key: str) -> bool:
    """Return whether a key belongs to the base model and not to a head, even if the model lacks it."""
    base, first = model.base_model, key.partition(".")[0]
    if key != _strip_prefix(model, key) or (base is model and key in model.state_dict()):
        return True
    children: Iterable[str] = dict(base.named_children())
    return first in children or (first == key and first in base.state_dict())


def _is_unused(model: "PreTrainedModel", key: str) -> bool:
    return _strip_prefix(model, key).startswith(UNUSED_MODULES)


def _is_constant(model: "PreTrainedModel", key: str, tensors: Mapping[str, "torch.Tensor"]) -> bool:
    """Return whether a key names a buffer, which is computed and never learned."""
    if key.rpartition(".")[2] in CONSTANTS:
        return True
    if _strip_prefix(model, key) in {name for name, _ in model.base_model.named_buffers()}:
        return True
    names = (key, _strip_prefix(model, key), f"{model.base_model_prefix}.{key}")
    shape = next((tuple(tensors[name].shape) for name in names if name in tensors), ())
    return len(shape) == MASK_DIMENSIONS and shape[:2] == (1, 1) and shape[2] == shape[3]


def _refuse_integers(
    model: "PreTrainedModel", tensors: Mapping[str, "torch.Tensor"], where: object
) -> None:
    """Refuse integers in place of floating-point numbers: the weights were quantised."""
    floating = {name for name, weight in model.named_parameters() if weight.is_floating_point()}
    for name, tensor in tensors.items():
        is_number = tensor.is_floating_point() or tensor.is_complex()
        names = {name, _strip_prefix(model, name), f"{model.base_model_prefix}.{name}"}
        if not is_number and names & floating:
            kind = str(tensor.dtype).removeprefix("torch.")
            raise InputError(
                f"{where}: `{cut(name)}` holds {kind} and no floating-point numbers, but config.json has no "
                "`quantization_config`; give the full weights"
            )
