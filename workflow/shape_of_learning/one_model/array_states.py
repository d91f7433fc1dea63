"""Read hidden states from a user's arrays, and pool the vectors of each window."""

import math
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import torch

from shape_of_learning.errors import InputError
from shape_of_learning.estimators.arrays import LARGEST
from shape_of_learning.estimators.massive import find_massive_in_any_state
from shape_of_learning.metrics.selections import HiddenStates, average_windows, find_last_tokens

LARGEST_MASKED = -1000  # an additive mask adds at most this number for padding


def find_states(model: Any) -> Any:
    """Return hidden states by layer, from a model's output or as they are given."""
    if isinstance(model, Mapping):
        if model.get("hidden_states") is None:
            raise InputError(
                f"`model` is a {type(model).__name__} without `hidden_states`; run the model with "
                "`output_hidden_states=True`; if it has an encoder and a decoder, give the states of one of them"
            )
        return model["hidden_states"]
    if not isinstance(model, Iterable):
        raise InputError(
            f"`model` is a {type(model).__name__}; give a model of transformers, or hidden states"
        )
    return model


class ArrayStates:
    """Arrays of hidden states with the interface of :class:`.HiddenStates`.

    Parameters
    ----------
    states : array_like or iterable of array_like or torch.Tensor, each of shape (text, token, hidden) or (n, hidden)
    mask : array_like, shape (text, token), optional
    groups : array_like of int, shape (n,), optional
        The group of each of n vectors.
    """

    def __init__(self, states: Any, mask: Any = None, groups: Any = None):
        states = [states] if hasattr(states, "ndim") and states.ndim < 4 else list(states)
        states = [_convert_frame(state) for state in states]
        for state in states:
            _require_numbers(state, "hidden states")
        shapes = {tuple(np.shape(state)) for state in states}
        if {len(shape) for shape in shapes} == {2}:
            if mask is not None:
                raise InputError(
                    "`mask` needs states (text, token, hidden); leave masked vectors out"
                )
            states = [
                (state if isinstance(state, np.ma.MaskedArray) else _convert_array(state))[None]
                for state in states
            ]
            shapes = {tuple(state.shape) for state in states}
        elif groups is not None:
            raise InputError(
                "`groups` needs vectors (n, hidden); leave it out, since texts are the groups of states"
            )
        if len({shape[:-1] for shape in shapes}) != 1 or len(shape := shapes.pop()) != 3:
            raise InputError(
                "hidden states must have the shape (batch, token, hidden), and layers may differ in `hidden` only"
            )
        if any(np.shape(state)[-1] == 0 for state in states):
            raise InputError(
                "hidden states have no coordinates; give states of shape (batch, token, hidden)"
            )
        if not all(shape[:2]):
            raise InputError("there are 0 vectors; give the hidden states of a text")
        is_token = np.ones(shape[:2], bool) if mask is None else _read_mask(mask, shape[:2])
        for state in states:
            if isinstance(state, np.ma.MaskedArray):
                is_token = is_token & ~_find_masked_vectors(state)
        if mask is not None and not is_token.any():
            raise InputError(
                "the mask leaves 0 tokens; give True or 1 for tokens, or no mask if all vectors are of tokens"
            )
        self.layers = len(states) - 1
        self._states, self._is_token = states, is_token
        windows, positions = np.nonzero(is_token)
        first_positions = is_token.argmax(axis=1)[windows]
        if groups is not None:
            labels = _number_groups(groups, is_token.size)[is_token.ravel()]
            windows = np.unique(labels, return_inverse=True)[1]
        self.rows: Mapping[str, np.ndarray] = {
            "windows": windows,
            "positions": positions - first_positions,
            # The tokens are unknown, so they count as different.
            "token_ids": np.arange(len(windows)),
            "special": np.zeros(len(windows), bool),
        }

    def __getitem__(self, state: int) -> np.ndarray:
        """Return one hidden state of shape (tokens, hidden), in float32 unless its type is wider."""
        values = _convert_array(self._states[state])[self._is_token]
        if np.can_cast(values.dtype, np.float32):
            return values.astype(np.float32, copy=False)
        values = values.astype(np.float64, copy=False)
        if (np.abs(values[np.isfinite(values)]) > LARGEST).any():
            raise InputError(
                f"hidden state {state} holds numbers beyond {LARGEST:g}; scale it down"
            )
        return values

    @cached_property
    def massive(self) -> np.ndarray:
        """Whether each token is massive in any of the states, bool of shape (tokens,)."""
        return find_massive_in_any_state(self[state] for state in range(self.layers + 1))


class PooledStates:
    """One vector for each window of hidden states: the vector of its last token, or the mean of its vectors.

    Parameters
    ----------
    states : HiddenStates
    pool : {"last", "mean"}
    """

    def __init__(self, states: HiddenStates, pool: str):
        self._states, self._pool = states, pool
        self.layers = states.layers
        self._windows = states.rows["windows"]
        number = len(np.unique(self._windows))
        self.rows: Mapping[str, np.ndarray] = {
            "windows": np.arange(number),
            "positions": np.zeros(number, np.int64),
            "token_ids": np.arange(number),
            "special": np.zeros(number, bool),
        }

    def __getitem__(self, state: int) -> Any:
        """Return one hidden state of shape (windows, hidden)."""
        values = self._states[state]
        if self._pool == "last":
            return values[find_last_tokens(self._windows)]
        return average_windows(values, self._windows)

    @cached_property
    def massive(self) -> np.ndarray:
        """Whether the vector of each window is massive in any hidden state, bool of shape (windows,)."""
        return find_massive_in_any_state(self[state] for state in range(self.layers + 1))


def _number_groups(groups: Any, vectors: int) -> np.ndarray:
    """Number the groups of vectors from 0."""
    labels = np.asarray(_convert_array(groups))
    if labels.shape != (vectors,):
        raise InputError(
            f"`groups` has the shape {labels.shape}; give one group for each of {vectors} vectors"
        )
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise InputError("`groups` has NaN; give a number for the group of each vector")
    try:
        return np.unique(labels, return_inverse=True)[1]
    except TypeError:  # the values cannot be compared
        raise InputError("`groups` has values of several types; give numbers or text") from None


def _convert_frame(values: Any) -> Any:
    """Convert a data frame whose columns may lack numbers (`Float64`) into an array; other values stay as they are."""
    if type(values).__module__.partition(".")[0] != "pandas" or not hasattr(values, "dtypes"):
        return values
    from pandas.api.types import is_extension_array_dtype, is_numeric_dtype

    types = [*values.dtypes] if values.ndim > 1 else [values.dtype]
    if not all(map(is_numeric_dtype, types)) or not any(map(is_extension_array_dtype, types)):
        return values
    return values.to_numpy(dtype=float, na_value=math.nan)


def _convert_array(values: Any) -> np.ndarray:
    if not hasattr(values, "detach"):
        return np.asarray(values)
    if values.dtype not in (torch.float64, torch.int64, torch.int32):
        values = values.float()
    return values.detach().cpu().numpy()


def _require_numbers(values: Any, subject: str) -> None:
    """Raise InputError unless `values` is a dense array of real numbers."""
    if isinstance(values, torch.Tensor):
        problems = {
            "quantised": values.is_quantized,
            "without values": values.is_meta,
            "sharded": hasattr(values, "full_tensor"),
            "sparse or nested": values.is_nested or values.layout != torch.strided,
        }
        if problem := next((name for name, is_true in problems.items() if is_true), ""):
            raise InputError(
                f"{subject} are {problem}; give dense tensors, as `.dequantize()`, `.full_tensor()` or `.to_dense()` "
                "return them"
            )
        is_real = not values.is_complex()
    else:
        try:
            dtype = np.asarray(values).dtype
        except (ValueError, TypeError):
            dtype = np.dtype(object)
        # NumPy gives records and bfloat16 of other libraries the same kind, but only records the type `np.void`.
        is_real = dtype.kind not in "cOSUMm" and dtype.type is not np.void
    if not is_real:
        raise InputError(f"{subject} are not real numbers; give arrays or tensors of real numbers")


def _read_mask(mask: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Read a mask, and return True for tokens and False for padding."""
    _require_numbers(mask, "values of the mask")
    if np.shape(mask) != shape:
        raise InputError(
            f"the mask has the shape {tuple(np.shape(mask))}, but hidden states are of {shape[0]} texts of {shape[1]} "
            "tokens; give one value for each token, such as the tokenizer's `attention_mask`"
        )
    values = _convert_array(np.ma.filled(mask, 0) if isinstance(mask, np.ma.MaskedArray) else mask)
    if np.isin(values, (0, 1)).all():
        return values.astype(bool)
    # An additive mask is 0 for tokens, and so low for padding that its attention vanishes.
    if ((values == 0) | (values <= LARGEST_MASKED)).all():
        return values == 0
    invalid = values[~np.isin(values, (0, 1))][0]
    raise InputError(
        f"the mask has the value {invalid:.4g}; give True or 1 for tokens, and False or 0 for padding"
    )


def _find_masked_vectors(state: "np.ma.MaskedArray") -> np.ndarray:
    """Return which vectors of a masked array are masked."""
    mask = np.ma.getmaskarray(state)
    if (mask.any(axis=-1) != mask.all(axis=-1)).any():
        raise InputError(
            "hidden states are masked in some coordinates of a vector; mask whole vectors, or fill them"
        )
    return np.asarray(mask.all(axis=-1))
