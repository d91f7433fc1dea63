"""Write the hidden states of all layers of one checkpoint on sampled windows, and its loss on them."""

import argparse
import json
import logging
from pathlib import Path

from shape_of_learning.checkpoints.model_entry import check_against_entry, read_configuration_file
from shape_of_learning.command_line import run
from shape_of_learning.corpus.windows import read_text, sample_windows
from shape_of_learning.embeddings.dump import DumpProtocol, dump_embeddings
from shape_of_learning.embeddings.losses import write_loss
from shape_of_learning.random_streams import random_stream


def main(
    checkpoint: Path,
    text: Path,
    model: str,
    revision: str,
    role: str,
    widths: list[int],
    windows: int,
    window_characters: int,
    seed: int,
    special_tokens: str,
    first_token: str,
    precision: str,
    last_layer: str,
    batch_size: int | None,
    dtype: str,
    threads: int,
    output: Path,
    loss: Path,
) -> None:
    """Sample the windows, run them and write one HDF5 file per layer into the folder `output`.

    The table `loss` has one row, the checkpoint's cross-entropy on these windows.
    """
    import torch
    import transformers

    check_against_entry(
        read_configuration_file(checkpoint),
        layers=len(widths) - 1,
        hidden_size=widths[0],
        last_hidden_size=widths[-1],
        role=role,
        where=f"model `{model}`",
    )
    # No owner: all models see the same windows, so that their curves are paired.
    stream = random_stream(seed, "windows")
    sample, _ = sample_windows(read_text(text), windows, window_characters, stream, corpus=text)
    protocol = DumpProtocol(
        keep_special_tokens=special_tokens == "keep",
        keep_first_token=first_token == "keep",
        precision=precision,
        last_layer=last_layer,
        batch_size=batch_size,
        dtype=dtype,
    )
    origin = checkpoint / "checkpoint.json"
    tokens, cross_entropy = dump_embeddings(
        checkpoint,
        sample,
        output,
        role=role,
        widths=widths,
        protocol=protocol,
        # No owner either: all checkpoints of a model predict the same tokens.
        masking=random_stream(seed, "masked tokens"),
        attributes={
            "model": model,
            "revision": revision,
            "checkpoint": origin.read_text(encoding="utf-8") if origin.exists() else "{}",
            "text": str(text),
            "windows": windows,
            "window_characters": window_characters,
            "seed": seed,
            "protocol": json.dumps(vars(protocol)),
            "versions": json.dumps(
                {"torch": torch.__version__, "transformers": transformers.__version__}
            ),
        },
        threads=threads,
    )
    # Last: who finds a loss finds whole embeddings.
    write_loss(loss, cross_entropy)
    logging.getLogger("shape_of_learning").info(
        "%d tokens in %s, %.4f nats per predicted token", tokens, output, cross_entropy.loss
    )


def windows_or_auto(text: str) -> int | None:
    """Read the batch size: a number of windows, or None for ``auto``."""
    if text == "auto":
        return None
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} windows are none; give 1 or more, or auto")
    return int(text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--revision", required=True)
    parser.add_argument("--role", choices=["encoder", "decoder"], required=True)
    parser.add_argument("--widths", type=int, nargs="+", required=True)
    parser.add_argument("--windows", type=int, required=True)
    parser.add_argument("--window-characters", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--special-tokens", choices=["keep", "drop"], required=True)
    parser.add_argument("--first-token", choices=["keep", "drop"], required=True)
    parser.add_argument("--precision", choices=["float32", "bfloat16", "float16"], required=True)
    parser.add_argument(
        "--last-layer", choices=["after_final_norm", "before_final_norm"], required=True
    )
    parser.add_argument("--batch-size", type=windows_or_auto, required=True)
    parser.add_argument("--dtype", choices=["float32", "float16"], required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--loss", type=Path, required=True)
    run(main, parser)
