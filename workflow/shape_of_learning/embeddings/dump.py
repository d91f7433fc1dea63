"""Hidden states of all layers of one checkpoint, one file per layer."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
        Of the checkpoint on all windows.

    Raises
    ------
    InputError
        If the disk is too small, and as :meth:`SampleRun.into`.
    """
    require_space(destination, sum(file_bytes(sample.tokens, width) for width in sample.widths))
    with atomic_write(destination) as folder:
        folder.mkdir()
        writer = HiddenStateWriter(folder, sample.widths, sample.rows, attributes)
        try:
            return sample.into(writer)
        finally:
            writer.close()
