"""The arguments of the scripts that run a checkpoint on sampled windows."""

from pathlib import Path

from shape_of_learning.script_arguments.settings import LOCAL, plumbing_settings


def window_batch_size() -> int | None:
    """Return `forward.batch_size` of the settings; None to choose by free memory."""
    size = plumbing_settings().get("window_batch_size", "auto")
    return None if size == "auto" else size


def checkpoint_folder(text: str) -> Path:
    """Return a folder, or where the settings say that a local model's is."""
    if not text.startswith(LOCAL):
        return Path(text)
    return Path(plumbing_settings()["model_folders"][text.removeprefix(LOCAL)])
