"""Checkpoints loaded without surprises: what they lack is never filled with random numbers."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shape_of_learning.embeddings.language_model_head import LanguageModelHead
from shape_of_learning.embeddings.memory import memory_is_exhausted, require_memory
from shape_of_learning.embeddings.placement import spreading, weight_bytes
from shape_of_learning.errors import InputError

if TYPE_CHECKING:
    import torch
    from transformers import PretrainedConfig, PreTrainedModel

logger = logging.getLogger(__name__)

# Layers that hidden states do not pass through; AutoModel creates them where weights have none.
UNUSED_WEIGHTS = ("pooler.",)


def load_model(
    folder: Path, *, role: str, precision: str, device: "torch.device", beside: int = 0
) -> tuple["PreTrainedModel", LanguageModelHead | None, "torch.device"]:
    """Load the base model of a checkpoint and, if it has one, its language-model head.

    Parameters
    ----------
    folder : Path
        Checkpoint in Hugging Face format. Code in it is never run.
    role : {"decoder", "encoder"}
        Whether the head predicts the next token or masked ones.
    precision : str
        Of the weights: ``"float32"``, ``"bfloat16"`` or ``"float16"``.
    device : torch.device
        Where to. A model too large for that GPU is spread over all visible ones
        (:func:`~shape_of_learning.embeddings.placement.spreading`).

    beside : int
        Bytes that something else will take in memory of the host, of which there must be enough for both
        if it is not 0.

    Returns
    -------
    base : transformers.PreTrainedModel
        In evaluation mode.
    head : LanguageModelHead or None
        None, with a line in the log that says why, if the library knows no such head for the
        architecture or the checkpoint lacks weights of it.
    device : torch.device
        Where the model takes its tokens: `device`, unless no part of a spread model found room there.

    Raises
    ------
    InputError
        If the checkpoint cannot be read, lacks weights of the base model, or is too large.
    """
    import transformers

    config = read_config(folder)
    if beside and device.type == "cpu":
        weights = weight_bytes(transformers.AutoModel, config, precision)
        require_memory(
            weights + beside, f"the weights in {folder} and all hidden states of the sample"
        )
    with_head, known = {
        "decoder": (transformers.AutoModelForCausalLM, transformers.MODEL_FOR_CAUSAL_LM_MAPPING),
        "encoder": (transformers.AutoModelForMaskedLM, transformers.MODEL_FOR_MASKED_LM_MAPPING),
    }[role]
    if type(config) in known:
        model, missing, spread = _load(with_head, folder, config, precision, device)
        # The hidden states are those of AutoModel, so it must have the same model in it.
        if type(model.base_model) is transformers.MODEL_MAPPING.get(type(config), None):
            inside = f"{model.base_model_prefix}."
            _refuse(folder, [k.removeprefix(inside) for k in missing if k.startswith(inside)])
            lacking = [key for key in missing if not key.startswith(inside)]
            model, device = _placed(model, folder, device, spread)
            if not lacking:
                return model.base_model, LanguageModelHead(model), device
            logger.info("%s lacks `%s` of its language-model head", folder, lacking[0])
            return model.base_model, None, device
    logger.info("no head for the role `%s` is known for the type `%s`", role, config.model_type)
    model, missing, spread = _load(transformers.AutoModel, folder, config, precision, device)
    _refuse(folder, missing)
    model, device = _placed(model, folder, device, spread)
    return model, None, device


def read_config(folder: Path) -> "PretrainedConfig":
    """Read ``config.json`` as the library does; InputError if it describes no model that it knows."""
    import transformers

    return _read(transformers.AutoConfig, folder)


def _load(
    kind: type, folder: Path, config: "PretrainedConfig", precision: str, device: "torch.device"
) -> tuple["PreTrainedModel", list[str], bool]:
    """Load a model, to the CPU unless it must be spread; also what its files lack, and whether it was."""
    import torch

    options = {}
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        options = spreading(weight_bytes(kind, config, precision), free)
    model, report = _read(
        kind,
        folder,
        config=config,
        dtype=getattr(torch, precision),
        output_loading_info=True,
        **options,
    )
    return model, sorted(report["missing_keys"]), bool(options)


def _placed(
    model: "PreTrainedModel", folder: Path, device: "torch.device", spread: bool
) -> tuple["PreTrainedModel", "torch.device"]:
    """Move a model to `device` unless it has been spread; return where it takes its tokens, too."""
    if not spread:
        model = _moved(model, folder, device)
    elif hasattr(model, "hf_device_map"):
        logger.info("%s is spread over several devices: %s", folder, model.hf_device_map)
    else:  # the library does not say where a model is that found room in one place
        device = model.device
        logger.info("%s found room on %s alone", folder, device)
    return model.eval().requires_grad_(False), device


def _moved(model: "PreTrainedModel", folder: Path, device: "torch.device") -> "PreTrainedModel":
    try:
        return model.to(device)
    except RuntimeError as error:
        if not memory_is_exhausted(error):
            raise
        raise InputError(
            f"the model in {folder} does not fit {device} any more, as it did before it was read; if "
            "other jobs of this run are on that GPU, `--resources gpu=1` lets one at a time have it"
        ) from error


def _read(kind: Any, folder: Path, **options: Any) -> Any:
    """Call ``kind.from_pretrained`` on files alone, and explain what it cannot read."""
    try:
        return kind.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True, **options
        )
    except MemoryError:
        raise
    except Exception as error:  # what config.json says goes into the code of all architectures
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        raise InputError(
            f"the checkpoint in {folder} cannot be loaded ({reason}); delete a fetched folder to fetch it "
            "anew, mend one of your own"
        ) from error


def _refuse(folder: Path, missing: list[str]) -> None:
    missing = [key for key in missing if not key.startswith(UNUSED_WEIGHTS)]
    if missing:
        raise InputError(
            f"the checkpoint in {folder} lacks {len(missing)} weights, such as `{missing[0]}`, "
            "which would be random numbers; remove it from the model's entry"
        )
