"""The matrices between tokens and vectors at both ends of a model, and its final normalisation."""

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from shape_of_learning.metrics.table_columns import FINAL_NORM

if TYPE_CHECKING:
    import torch

    from shape_of_learning.embeddings.forward_pass import ForwardPass


def model_matrices(forward: "ForwardPass") -> dict[str, np.ndarray]:
    """Find what is measured of a model itself.

    Returns
    -------
    dict of str to ndarray of float32
        ``input`` and ``output``, the embeddings of all entries of the vocabulary, (V, d), as the library
        finds them for any architecture; or ``tied``, where both are one. Then ``final_norm``: in its rows the
        gain of the normalisation after the last block and, if it has one, its bias, (1, d) or (2, d). What a
        model does not have is absent: an encoder whose blocks end with a normalisation has no final one. They
        may be the model's own memory, so never write into them.
    """
    ends: dict[str, Any] = {"input": forward.model.get_input_embeddings()}
    if forward.head is not None:
        ends["output"] = forward.head.model.get_output_embeddings()
    ends = {name: module for name, module in ends.items() if _has_matrix(module)}
    if len(ends) == 2 and _are_one(*ends.values()):
        ends = {"tied": ends["input"]}
    found = {}
    for name, module in ends.items():
        with _at_hand(module):
            found[name] = _numbers(module.weight)
    norm: Any = forward.final_norm
    if getattr(norm, "weight", None) is not None:
        with _at_hand(norm):
            found[FINAL_NORM] = np.stack([_numbers(vector) for vector in _gain_and_bias(norm)])
    return found


def _has_matrix(module: Any) -> bool:
    return getattr(getattr(module, "weight", None), "ndim", 0) == 2


def _are_one(first: Any, second: Any) -> bool:
    """Whether two modules share their weight, or have equal ones, as where a tie was saved twice."""
    if first.weight is second.weight:
        return True
    if first.weight.shape != second.weight.shape:
        return False
    with _at_hand(first), _at_hand(second):
        return bool((first.weight == second.weight.to(first.weight.device)).all())


def _gain_and_bias(norm: Any) -> "list[torch.Tensor]":
    """What a normalisation multiplies by, in Gemma its weight plus 1, and what it adds, if it does."""
    import torch

    weight, bias = norm.weight, getattr(norm, "bias", None)
    shift = torch.zeros_like(weight) if bias is None else bias
    # Of mean 0 and, times 16, so large that no root has anything added to speak of.
    probe = torch.ones_like(weight)
    probe[1::2] = -1
    with torch.inference_mode():
        answer = (norm(16 * probe) - shift) * probe
        gain = min((weight, 1 + weight), key=lambda gain: float((answer - gain).abs().mean()))
    return [gain] if bias is None else [gain, bias]


def _numbers(weight: "torch.Tensor") -> np.ndarray:
    return weight.detach().float().cpu().numpy()


def _at_hand(module: Any) -> AbstractContextManager[None]:
    """Fetch the weights of one module of a model that is spread over devices, and only of such a one."""
    if not hasattr(module, "_hf_hook"):
        return nullcontext()
    from accelerate.utils import align_module_device

    return align_module_device(module)
