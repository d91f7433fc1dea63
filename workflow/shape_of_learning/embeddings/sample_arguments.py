"""The arguments of the scripts that run a checkpoint on sampled windows."""

import argparse
from pathlib import Path

from shape_of_learning.checkpoints.model_entry import check_against_entry, read_configuration_file
from shape_of_learning.corpus.windows import read_text, sample_windows
from shape_of_learning.embeddings.sample_run import SampleProtocol, SampleRun
from shape_of_learning.random_streams import random_stream


def add_sample_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what :func:`load_sample` takes, and the revision."""
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


def load_sample(
    checkpoint: Path,
    text: Path,
    model: str,
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
) -> SampleRun:
    """Sample the windows and load the checkpoint.

    Raises
    ------
    InputError
        If the checkpoint is not what its entry says, the text is too short, or as
        :meth:`SampleRun.load`.
    """
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
    return SampleRun.load(
        checkpoint,
        sample,
        role=role,
        widths=widths,
        protocol=SampleProtocol(
            keep_special_tokens=special_tokens == "keep",
            keep_first_token=first_token == "keep",
            precision=precision,
            last_layer=last_layer,
            batch_size=batch_size,
            dtype=dtype,
        ),
        # No owner either: all checkpoints of a model predict the same tokens.
        masking=random_stream(seed, "masked tokens"),
        threads=threads,
    )


def windows_or_auto(text: str) -> int | None:
    """Read the batch size: a number of windows, or None for ``auto``."""
    if text == "auto":
        return None
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} windows are none; give 1 or more, or auto")
    return int(text)
