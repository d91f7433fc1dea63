"""Labelled texts from data sets of the Hub."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shape_of_learning.errors import InputError
from shape_of_learning.tasks.examples import SPLITS, Example, Task
from shape_of_learning.tasks.records import Fields, Record, examples_of


def hub_task(name: str, entry: Mapping[str, Any]) -> Task:
    """Make a task of two splits of a data set, both as they were published.

    Parameters
    ----------
    name : str
        Key in section ``tasks``.
    entry : mapping
        Its value: ``hub``, with ``dataset``, ``config``, ``revision``, ``text``, ``text_2``, ``label`` and
        ``split``, which names the published split of each of ours; and ``metric``.

    Raises
    ------
    InputError
        If the files cannot be had or read, or lack a column.
    """
    where, hub = f"task `{name}`", entry["hub"]
    fields = Fields(hub["text"], hub.get("text_2"), hub["label"])
    examples: list[Example] = []
    for split in SPLITS:
        published = hub["split"][split]
        files = parquet_files(hub["dataset"], hub["config"], published, hub["revision"], where)
        records = [record for file in files for record in read_parquet(file, where)]
        examples += examples_of(records, fields, split, f"{where}, split `{published}`")
    return Task(entry.get("metric", "accuracy"), examples)


def parquet_files(dataset: str, config: str, split: str, revision: str, where: str) -> list[Path]:
    """Find the Parquet files of a split, by asking the Hub or, offline, in the user's cache of it.

    They are data: nothing that a repository brings is run.
    """
    from huggingface_hub import snapshot_download

    from shape_of_learning.hub.hub_errors import explained

    with explained(dataset, revision, where=where, key="hub"):
        folder = Path(
            snapshot_download(
                dataset,
                repo_type="dataset",
                revision=revision,
                allow_patterns=[f"{config}/{split}-*.parquet"],
            )
        )
    files = sorted(folder.glob(f"{config}/{split}-*.parquet"))
    if not files:
        raise InputError(
            f"{where}: `{dataset}` at revision `{revision}` has no file {config}/{split}-*.parquet, or the "
            "cache has none while offline; correct `hub.config` and `hub.split`, or run once with a network"
        )
    return files


def read_parquet(file: Path, where: str) -> list[Record]:
    """Read the records of a Parquet file.

    Raises
    ------
    InputError
        If it is damaged.
    """
    import pyarrow.parquet

    try:
        return pyarrow.parquet.read_table(file).to_pylist()
    except (OSError, ValueError) as error:  # what pyarrow raises is one of them
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"{where}: {file} cannot be read ({reason}); delete it and run again"
        ) from error
