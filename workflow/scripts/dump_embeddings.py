"""Write the hidden states of all layers of one checkpoint on sampled windows, and the loss on these windows.

Also write measures of its matrices and digests of its tensors, which show copies whose files differ.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from threadpoolctl import threadpool_limits

from shape_of_learning.checkpoints.tensors import check_tensors
from shape_of_learning.embeddings.massive_tokens import describe_massive_tokens
from shape_of_learning.embeddings.matrices import write_checkpoint_tables
from shape_of_learning.embeddings.protocol import DumpJob, ForwardFiles, find_forward_files
from shape_of_learning.embeddings.run import SampleRun
from shape_of_learning.embeddings.states import StateFiles, write_states
from shape_of_learning.embeddings.tokenised_windows import draw_windows
from shape_of_learning.job import run_job

logger = logging.getLogger("shape_of_learning")


def main(job: DumpJob, files: ForwardFiles, output: Mapping[str, str], threads: int) -> None:
    """Run the windows of a text through a checkpoint.

    The paths of `output` are ``embeddings``, a folder, and those of :func:`.write_checkpoint_tables`.
    """
    import torch
    import transformers

    weights = job.weights
    folder = Path(output["embeddings"])
    digests = check_tensors(files.checkpoint, weights.is_download, threads)
    sample = SampleRun.load(
        files.checkpoint,
        draw_windows(files.text, job.sampling),
        job.sampling,
        weights.shape,
        threads=threads,
        tokenizer=files.tokenizer,
    )
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    attributes = {
        "model": weights.model,
        "revision": weights.revision,
        "protocol": json.dumps(asdict(job.sampling)),
        "versions": json.dumps(versions),
    }
    with write_states(folder, sample, attributes) as writer:
        cross_entropy = sample.store_states(writer)
    states = StateFiles(folder, sample.layers)
    massive = describe_massive_tokens(states, files.tokenizer) if job.matrices.massive else ()
    with threadpool_limits(1):
        write_checkpoint_tables(
            sample.forward, digests, cross_entropy, output, job.matrices, massive
        )
    logger.info("%d tokens in %s", sample.tokens, folder)


if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        main(
            snakemake.params.job,
            find_forward_files(snakemake),
            output=dict(snakemake.output.items()),
            threads=snakemake.threads,
        )
