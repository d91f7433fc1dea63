"""Weights that are not those of one training alone: with an adapter, or of few bits."""

import logging
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shape_of_learning.errors import InputError, shorten_error

if TYPE_CHECKING:
    from transformers import PreTrainedModel

logger = logging.getLogger(__name__)

ADAPTER_WEIGHTS = "adapter_model.safetensors"


def apply_adapter(model: "PreTrainedModel", folder: Path) -> None:
    """Put the adapter of a folder into the model that it was trained with, and say so.

    Raises
    ------
    InputError
        If peft is missing, or the adapter does not fit.
    """
    if find_spec("peft") is None:
        raise InputError(
            f"{folder} holds an adapter, which needs the package peft; install it: `pip install peft`"
        )
    if not (folder / ADAPTER_WEIGHTS).is_file():
        raise InputError(f"{folder} holds an adapter without {ADAPTER_WEIGHTS}; save it anew")
    try:
        report = model.load_adapter(str(folder))
        wrong = sorted({*report.missing_keys, *report.unexpected_keys})
        if wrong or report.mismatched_keys:
            raise ValueError(f"other weights than the model has places for: {wrong[:1]}")
    except MemoryError:
        raise
    except Exception as error:  # what its files say goes into the code of all adapters
        raise InputError(
            f"the adapter in {folder} cannot be applied to its model ({shorten_error(error)}); merge them (peft: "
            "`PeftModel.from_pretrained(model, folder).merge_and_unload()`) and save the whole"
        ) from error
    logger.warning("the model is measured with the adapter in %s", folder)


def describe_quantisation(config: Any) -> str:
    """Say how weights were quantised: the method, and the bits where they are stated."""
    stated = config if isinstance(config, dict) else config.to_dict()
    method = str(stated.get("quant_method", "method not stated")).rpartition(".")[2]
    bits = stated.get("bits") or ("4" if stated.get("load_in_4bit") else "")
    return f"{method}, {bits} bits" if bits else method
