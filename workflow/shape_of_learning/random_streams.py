"""Random numbers that depend on a seed and a purpose, but not on the order in which jobs run."""

import hashlib

import numpy as np


def stream_seed(seed: int, purpose: str, *, model: str = "") -> int:
    """Derive the seed of one random stream from its name.

    Parameters
    ----------
    seed : int
        The seed of the whole run, from the configuration.
    purpose : str
        The random choice for which the numbers are used, such as ``"windows"`` or ``"batches"``.
    model : str
        The model that owns the stream; empty for a stream that all models share. Windows of text are shared, so that
        measurements of models are paired.

    Returns
    -------
    int
        63 bits of the SHA-256 digest of the name.
    """
    # Earlier versions had a revision and a layer in the two empty fields; without the fields every seed would change.
    name = "\x1f".join([str(seed), purpose, model, "", ""])
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 1


def random_stream(seed: int, purpose: str, *, model: str = "") -> np.random.Generator:
    """Return a NumPy generator seeded by :func:`stream_seed`, with the same parameters."""
    return np.random.default_rng(stream_seed(seed, purpose, model=model))
