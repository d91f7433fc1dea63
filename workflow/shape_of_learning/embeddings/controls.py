"""Null models of hidden states: shuffled tokens, untrained weights, a Gaussian cloud."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from shape_of_learning.embeddings.tokenised_windows import TokenisedWindow
from shape_of_learning.metrics.protocol import MeasuringProtocol
from shape_of_learning.metrics.selections import HiddenStates, choose_measured_rows
from shape_of_learning.random_streams import random_stream, stream_seed


def shuffle_tokens(
    windows: Sequence[TokenisedWindow], seed: int, *, within: bool
) -> list[TokenisedWindow]:
    """Permute the tokens of windows; special ones and the lengths stay as they are.

    Parameters
    ----------
    windows : sequence of TokenisedWindow
    seed : int
        That of the run; models with the same tokens have the same permutation.
    within : bool
        Within each window, which keeps its topic; or over all windows, which keeps the frequencies alone.
    """
    ordinary = [np.flatnonzero(~window.special) for window in windows]
    tokens = [window.ids[places] for window, places in zip(windows, ordinary, strict=True)]
    stream = random_stream(seed, "shuffled within windows" if within else "shuffled unigram")
    if within:
        drawn = [stream.permutation(own) for own in tokens]
    else:
        ends = np.cumsum([len(own) for own in tokens])[:-1]
        drawn = np.split(stream.permutation(np.concatenate(tokens)), ends)
    found = []
    for window, places, own in zip(windows, ordinary, drawn, strict=True):
        ids = window.ids.copy()
        ids[places] = own
        found.append(replace(window, ids=ids))
    return found


def initialise_weights(model: Any, seed: int, name: str) -> Any:
    """Make a model of the same architecture with weights as the library initialises them.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        The base model of a checkpoint.
    seed : int
        That of the run.
    name : str
        The model's, to which the random numbers belong.

    Returns
    -------
    transformers.PreTrainedModel
        On the same device, of the same type of numbers.
    """
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(stream_seed(seed, "untrained weights", model=name))
        fresh = type(model)(model.config)
    return fresh.to(model.device, model.dtype).eval().requires_grad_(False)


class GaussianStates:
    """Vectors of a Gaussian with the mean and the covariance of each hidden state.

    Parameters
    ----------
    states : HiddenStates
        Whose they are.
    how : MeasuringProtocol
        Its selection says which rows they are taken of, its model and seed to whom the random numbers belong.
    """

    def __init__(self, states: HiddenStates, how: MeasuringProtocol) -> None:
        self._states, self._how = states, how
        self.layers, self.rows = states.layers, states.rows

    def __getitem__(self, state: int) -> np.ndarray:
        """As many vectors as the state has, float32; a state that is not finite as it is."""
        vectors = self._states[state]
        values = np.asarray(vectors.cpu() if hasattr(vectors, "cpu") else vectors, np.float64)
        chosen = values[choose_measured_rows(self._how, self.rows, self._how.selection, [values])]
        if not np.isfinite(chosen).all():
            return values.astype(np.float32)
        mean = chosen.mean(axis=0)
        centred = chosen - mean
        variances, directions = np.linalg.eigh(centred.T @ centred / (len(chosen) - 1))
        stream = random_stream(self._how.seed, f"gaussian, state {state}", model=self._how.model)
        normal = stream.normal(size=values.shape)
        scaled = normal * np.sqrt(np.clip(variances, 0, None))
        return np.asarray(scaled @ directions.T + mean, np.float32)
