"""Hidden states of all layers of one checkpoint, one file per layer."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from shape_of_learning.checkpoints.losses import CrossEntropy
from shape_of_learning.embeddings.hidden_state_files import HiddenStateWriter, file_bytes
from shape_of_learning.embeddings.sample_run import SampleRun
from shape_of_learning.storage.files import atomic_write, require_space


def dump_embeddings(
    sample: SampleRun, destination: Path, attributes: Mapping[str, Any]
) -> CrossEntropy:
    """Run the windows through the checkpoint and write one file per layer.

    Parameters
    ----------
    sample : SampleRun
        Both.
    destination : Path
        Folder that receives ``layer_0.h5`` (embedding output) to ``layer_L.h5``.
    attributes : mapping
        Where the data come from, stored in every file beside the `loss`.

    Returns
    -------
    CrossEntropy
        Of the checkpoint on all windows, whichever of their tokens are stored.

    Raises
    ------
    InputError
        If the disk is too small, and as :meth:`SampleRun.into`.
    """
    widths, dtype = sample.batches.widths, sample.protocol.dtype
    tokens = sample.batches.tokens
    needed = sum(file_bytes(tokens, width, np.dtype(dtype)) for width in widths)
    require_space(destination, needed)
    with atomic_write(destination) as folder:
        folder.mkdir()
        writer = HiddenStateWriter(
            folder, widths, sample.token_ids, sample.positions, attributes, dtype
        )
        try:
            return sample.into(writer)
        finally:
            writer.close()
