"""At which training steps a local pretraining saves a revision.

Apart from the training itself because the Snakefile needs the list at every start and must not pay
for torch.
"""


def pretraining_steps(last_step: int) -> list[int]:
    """Log-spaced steps as Pythia has them at its start: 0, 1, 2, 4, 8, ... and the last one.

    Parameters
    ----------
    last_step : int
        Number of optimiser steps of the whole training, at least 1.

    Returns
    -------
    list of int
        Ascending, without repetition.

    Examples
    --------
    >>> pretraining_steps(10)
    [0, 1, 2, 4, 8, 10]
    """
    powers = [2**i for i in range(last_step.bit_length()) if 2**i < last_step]
    return [0, *powers, last_step]


def revision_of_step(step: int) -> str:
    """Name the revision of a step as the Pythia repositories do, ``step{N}``."""
    return f"step{step}"
