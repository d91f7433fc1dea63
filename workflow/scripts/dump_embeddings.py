"""Write the hidden states of all layers of one checkpoint on sampled windows, and its loss on them.

Beside them go digests of its tensors, which tell copies whose files differ, and measures of its matrices.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from shape_of_learning.checkpoints.tensors import check_tensors
from shape_of_learning.embeddings.massive_tokens import describe_rows
from shape_of_learning.embeddings.matrices import write_checkpoint_tables
from shape_of_learning.embeddings.run import SampleRun
from shape_of_learning.embeddings.states import StateFiles, write_states
from shape_of_learning.embeddings.tokenised_windows import SamplingProtocol, draw_windows
from shape_of_learning.job import run_job

logger = logging.getLogger("shape_of_learning")


def main(
    names: Mapping[str, str],
    checkpoint: Path,
    is_download: bool,
    text: Path,
    protocol: Mapping[str, Any],
    matrices: Mapping[str, Any],
    output: Mapping[str, str],
    **loaded: Any,
) -> None:
    """Run the windows through a checkpoint.

    Parameters
    ----------
    names : mapping
        Its ``model`` and ``revision``.
    checkpoint : Path
        Its folder.
    is_download : bool
        Whether there is a record of what its files were as they came.
    text : Path
        Whose windows are run.
    protocol : mapping
        Fields of :class:`.SamplingProtocol`.
    matrices : mapping
        What is measured of its own matrices, arguments of :func:`.write_checkpoint_tables`; and whether massive
        tokens are looked for (``massive``).
    output : mapping of str to str
        Paths: ``embeddings``, a folder; others as :func:`.write_checkpoint_tables` has them.
    **loaded
        Further arguments of :meth:`.SampleRun.load`.
    """
    import torch
    import transformers

    sampling, folder = SamplingProtocol(**protocol), Path(output["embeddings"])
    digests = check_tensors(checkpoint, is_download, loaded["threads"])
    sample = SampleRun.load(checkpoint, draw_windows(text, sampling), sampling, **loaded)
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    described = {"protocol": json.dumps(asdict(sampling)), "versions": json.dumps(versions)}
    with write_states(folder, sample, {**names, **described}) as writer:
        cross_entropy = sample.store_states(writer)
    wanted = range(sample.layers + 1) if matrices["massive"] else ()
    own = {key: of for key, of in matrices.items() if key != "massive"}
    massive = (
        row
        for layer in wanted
        for row in describe_rows(
            StateFiles(folder, sample.layers), layer, loaded.get("tokenizer") or checkpoint
        )
    )
    with threadpool_limits(1):
        known = (sample.forward, digests, cross_entropy, output)
        write_checkpoint_tables(*known, massive=massive, **own)
    logger.info("%d tokens in %s", sample.tokens, folder)


if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        main(
            dict(snakemake.wildcards.items()),
            checkpoint=Path(snakemake.resources.checkpoint),
            text=Path(snakemake.input.text),
            output=dict(snakemake.output.items()),
            threads=snakemake.threads,
            **snakemake.params.sample,
            matrices=snakemake.params.matrices,
        )
