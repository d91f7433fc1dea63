"""The arguments of the scripts that run a checkpoint on sampled windows."""

import argparse
import json
from pathlib import Path

from shape_of_learning.embeddings.run import SamplingProtocol
from shape_of_learning.script_arguments.settings import LOCAL, plumbing_settings


def add_sample_arguments(parser: argparse.ArgumentParser) -> None:
    """Add those of :func:`add_checkpoint_arguments` and the file that digests of tensors go to."""
    add_checkpoint_arguments(parser)
    parser.add_argument("--tensors", type=Path, required=True, help="written: their digests")


def add_checkpoint_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the names of the checkpoint, what says what it is, the text, and what `SampleRun.load` takes."""
    parser.add_argument("--model", required=True)
    parser.add_argument("--revision", required=True)
    parser.add_argument("--checkpoint", type=checkpoint_folder, required=True)
    parser.add_argument(
        "--receipt", type=Path, help="what the checkpoint's files were as they came"
    )
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--protocol", type=SamplingProtocol.from_json, required=True)
    parser.add_argument("--shape", type=json.loads, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.set_defaults(window_batch_size=window_batch_size())


def window_batch_size() -> int | None:
    """Return `forward.batch_size` of the settings; None to choose by free memory."""
    size = plumbing_settings().get("window_batch_size", "auto")
    return None if size == "auto" else size


def checkpoint_folder(text: str) -> Path:
    """Return a folder, or where the settings say that a local model's is."""
    if not text.startswith(LOCAL):
        return Path(text)
    return Path(plumbing_settings()["model_folders"][text.removeprefix(LOCAL)])
