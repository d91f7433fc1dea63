"""Checkpoints loaded without surprises: what they lack is never filled with random numbers."""

import logging
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shape_of_learning.embeddings.language_model_head import LanguageModelHead
from shape_of_learning.embeddings.placement import spreading, weight_bytes
from shape_of_learning.errors import InputError

if TYPE_CHECKING:
    import torch
    from transformers import PretrainedConfig, PreTrainedModel

logger = logging.getLogger(__name__)

# Layers that hidden states do not pass through; AutoModel creates them where weights have none.
UNUSED_WEIGHTS = ("pooler.",)


def load_model(
    folder: Path, *, role: str, precision: str, device: "torch.device"
) -> tuple["PreTrainedModel", LanguageModelHead | None]:
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

    Returns
    -------
    base : transformers.PreTrainedModel
        In evaluation mode.
    head : LanguageModelHead or None
        None, with a line in the log that says why, if the library knows no such head for the
        architecture or the checkpoint lacks weights of it.

    Raises
    ------
    InputError
        If the checkpoint cannot be read, lacks weights of the base model, or is too large.
    """
    import transformers

    config = _read(transformers.AutoConfig, folder)
    with_head, known = {
        "decoder": (transformers.AutoModelForCausalLM, transformers.MODEL_FOR_CAUSAL_LM_MAPPING),
        "encoder": (transformers.AutoModelForMaskedLM, transformers.MODEL_FOR_MASKED_LM_MAPPING),
    }[role]
    if type(config) in known:
        model, missing = _load(with_head, folder, config, precision, device)
        # The hidden states are those of AutoModel, so it must have the same model in it.
        if type(model.base_model) is transformers.MODEL_MAPPING.get(type(config), None):
            inside = f"{model.base_model_prefix}."
            _refuse(folder, [k.removeprefix(inside) for k in missing if k.startswith(inside)])
            lacking = [key for key in missing if not key.startswith(inside)]
            model = _placed(model, folder, device)
            if not lacking:
                return model.base_model, LanguageModelHead(model)
            logger.info("%s lacks `%s` of its language-model head", folder, lacking[0])
            return model.base_model, None
    logger.info("no head for the role `%s` is known for the type `%s`", role, config.model_type)
    model, missing = _load(transformers.AutoModel, folder, config, precision, device)
    _refuse(folder, missing)
    return _placed(model, folder, device), None


def _load(
    kind: type, folder: Path, config: "PretrainedConfig", precision: str, device: "torch.device"
) -> tuple["PreTrainedModel", list[str]]:
    """Load a model, to the CPU unless it must be spread; also what weights its files lack."""
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
    return model, sorted(report["missing_keys"])


def _placed(model: "PreTrainedModel", folder: Path, device: "torch.device") -> "PreTrainedModel":
    places = getattr(model, "hf_device_map", None)
    if places is None:
        model = model.to(device)
    else:
        logger.info("%s is spread over several devices: %s", folder, places)
    return model.eval().requires_grad_(False)


def _read(kind: type, folder: Path, **options: Any) -> Any:
    """Call ``kind.from_pretrained`` on files alone, and explain what it cannot read."""
    import safetensors

    unreadable = (OSError, ValueError, RuntimeError, KeyError, EOFError, pickle.UnpicklingError)
    try:
        return kind.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True, **options
        )
    except (*unreadable, safetensors.SafetensorError) as error:
        raise InputError(
            f"the checkpoint in {folder} cannot be loaded ({' '.join(str(error).split())[:300]}); "
            "delete a fetched folder to fetch it anew, mend one of your own"
        ) from error


def _refuse(folder: Path, missing: list[str]) -> None:
    missing = [key for key in missing if not key.startswith(UNUSED_WEIGHTS)]
    if missing:
        raise InputError(
            f"the checkpoint in {folder} lacks {len(missing)} weights, such as `{missing[0]}`, "
            "which would be random numbers; remove it from the model's entry"
        )
