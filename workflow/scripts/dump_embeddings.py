"""Write the hidden states of all layers of one checkpoint on sampled windows, and its loss on them.

Beside them go digests of its tensors, which tell copies whose files differ.
"""

import argparse
import json
import logging
from pathlib import Path
from typing import Any

from shape_of_learning.checkpoints.losses import write_loss
from shape_of_learning.checkpoints.tensors import checked_tensors, write_tensor_digests
from shape_of_learning.embeddings.hidden_state_files import dump_embeddings
from shape_of_learning.embeddings.model_weights import model_matrices
from shape_of_learning.embeddings.sample_run import SampleRun, draw_windows
from shape_of_learning.script_arguments.protocol import SamplingProtocol
from shape_of_learning.script_arguments.running import run
from shape_of_learning.script_arguments.sample import add_sample_arguments


def main(
    model: str,
    revision: str,
    text: Path,
    protocol: SamplingProtocol,
    output: Path,
    loss: Path,
    **loaded: Any,
) -> None:
    """Run the windows and write one HDF5 file per layer into the folder `output`.

    The table `loss` has one row, the checkpoint's cross-entropy on these windows; the table `tensors` has one
    for each tensor of the weights.
    """
    import torch
    import transformers

    windows = draw_windows(text, protocol)
    tensors, receipt = loaded.pop("tensors"), loaded.pop("receipt", None)
    digests = checked_tensors(loaded["checkpoint"], receipt, loaded.get("threads", 1))
    sample = SampleRun.load(windows=windows, protocol=protocol, **loaded)
    origin = loaded["checkpoint"] / "checkpoint.json"
    attributes = {
        "model": model,
        "revision": revision,
        "checkpoint": origin.read_text(encoding="utf-8") if origin.exists() else "{}",
        "protocol": protocol.to_json(),
        "versions": json.dumps(
            {"torch": torch.__version__, "transformers": transformers.__version__}
        ),
    }
    cross_entropy = dump_embeddings(sample, model_matrices(sample.forward), output, attributes)
    write_tensor_digests(tensors, digests)
    # Last: who finds a loss finds whole embeddings.
    write_loss(loss, cross_entropy)
    logging.getLogger("shape_of_learning").info(
        "%d tokens in %s, %.4f nats per predicted token", sample.tokens, output, cross_entropy.loss
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_sample_arguments(parser)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--loss", type=Path, required=True)
    run(main, parser)
