"""Whether there is anywhere to write to, before Snakemake finds out with a traceback."""

from pathlib import Path

from shape_of_learning.errors import InputError
from shape_of_learning.storage.files import require_writable


def stop_unless_writable(folder):
    try:
        require_writable(Path(folder))
    except InputError as error:
        raise SystemExit(f"ERROR: {error}") from None


def stop_unless_results_are_writable():
    stop_unless_writable(own_path("<results>"))


def remove_empty_logs():
    """Remove the logs of jobs that had nothing to say, which Snakemake makes all the same."""
    for file in Path(own_path("<results>/logs")).rglob("*.log"):
        if file.stat().st_size == 0:
            file.unlink(missing_ok=True)


stop_unless_writable(".snakemake")
