"""Random numbers that depend on what they are for, never on the order in which jobs run."""

import hashlib

import numpy as np


def stream_seed(seed: int, purpose: str, *, model: str = "") -> int:
    """Derive the seed of one random stream from its name.

    Parameters
    ----------
    seed : int
        The seed of the whole run, from the configuration.
    purpose : str
        What the numbers decide, such as ``"windows"`` or ``"batches"``.
    model : str
        Whose they are; left out where the stream is meant to be shared, as the windows of text are shared by
        all models so that their measurements are paired.

    Returns
    -------
    int
        63 bits of the SHA-256 digest of the name.
    """
    name = "\x1f".join([str(seed), purpose, model, "", ""])  # once for a revision and a layer
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 1


def random_stream(seed: int, purpose: str, *, model: str = "") -> np.random.Generator:
    """NumPy generator seeded by :func:`stream_seed`; same parameters."""
    return np.random.default_rng(stream_seed(seed, purpose, model=model))
