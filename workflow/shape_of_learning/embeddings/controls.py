"""Make null models of hidden states: shuffled tokens, untrained weights, a Gaussian cloud."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from shape_of_learning.embeddings.tokenised_windows import TokenisedWindow
from shape_of_learning.metrics.protocol import MeasuringProtocol
from shape_of_learning.metrics.selections import HiddenStates, average_windows, choose_measured_rows
from shape_of_learning.random_streams import random_stream, stream_seed


def shuffle_tokens(
    windows: Sequence[TokenisedWindow], seed: int, *, within_windows: bool
) -> list[TokenisedWindow]:
    """Permute the tokens of windows; special tokens and lengths stay as they are.

    Parameters
    ----------
    windows : sequence of TokenisedWindow
    seed : int
        Seed of the run; models with the same tokens have the same permutation.
    within_windows : bool
        Whether tokens are permuted within each window, which keeps its topic, or over all windows, which keeps only the
        frequencies of tokens.
    """
    ordinary = [np.flatnonzero(~window.special) for window in windows]
    tokens = [window.ids[places] for window, places in zip(windows, ordinary, strict=True)]
    stream = random_stream(
        seed, "shuffled within windows" if within_windows else "shuffled unigram"
    )
    if within_windows:
        shuffled_tokens = [stream.permutation(window_tokens) for window_tokens in tokens]
    else:
        ends = np.cumsum([len(window_tokens) for window_tokens in tokens])[:-1]
        shuffled_tokens = np.split(stream.permutation(np.concatenate(tokens)), ends)
    shuffled_windows = []
    for window, places, window_tokens in zip(windows, ordinary, shuffled_tokens, strict=True):
        ids = window.ids.copy()
        ids[places] = window_tokens
        shuffled_windows.append(replace(window, ids=ids))
    return shuffled_windows


def initialise_weights(model: Any, seed: int, name: str) -> Any:
    """Make a model of the same architecture with the library's initial weights.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        The base model of a checkpoint.
    seed : int
        Seed of the run.
    name : str
        Name of the model, on which the random numbers depend.

    Returns
    -------
    transformers.PreTrainedModel
        On the same device, in the same precision.
    """
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(stream_seed(seed, "untrained weights", model=name))
        untrained_model = type(model)(model.config)
    return untrained_model.to(model.device, model.dtype).eval().requires_grad_(False)


class GaussianStates:
    """Gaussian vectors with the mean and the covariance of a hidden state.

    Parameters
    ----------
    states : HiddenStates
    protocol : MeasuringProtocol
        Its selection chooses the rows of mean and covariance; the random numbers depend on its model and seed.
    """

    def __init__(self, states: HiddenStates, protocol: MeasuringProtocol) -> None:
        self._states, self._protocol = states, protocol
        self.layers, self.rows = states.layers, states.rows

    @property
    def massive(self) -> np.ndarray:
        """The massive tokens of the model, so that the null model drops as many vectors as the model does."""
        return self._states.massive

    def __getitem__(self, state: int) -> np.ndarray:
        """Return as many vectors as the state has, in float32, or the state itself if it is not finite."""
        vectors = self._states[state]
        values = np.asarray(vectors.cpu() if hasattr(vectors, "cpu") else vectors, np.float64)
        protocol = self._protocol
        selection = protocol.selection
        massive = self.massive if selection.massive_tokens == "drop" else None
        rows = choose_measured_rows(protocol, self.rows, selection, massive)
        sample, windows = values[rows], np.asarray(self.rows["windows"])
        if not np.isfinite(sample).all():
            return values.astype(np.float32)
        place = np.arange(len(values))
        if protocol.selection.sequence == "mean":  # all tokens of a window get the same vector
            sample = average_windows(sample, windows[rows])
            _, place = np.unique(windows, return_inverse=True)
        mean = sample.mean(axis=0)
        residuals = sample - mean
        variances, directions = np.linalg.eigh(residuals.T @ residuals / (len(sample) - 1))
        stream = random_stream(protocol.seed, f"gaussian, state {state}", model=protocol.model)
        shape = (place.max() + 1, values.shape[1])
        coordinates = stream.normal(size=shape) * np.sqrt(np.clip(variances, 0, None))
        return np.asarray(coordinates @ directions.T + mean, np.float32)[place]
