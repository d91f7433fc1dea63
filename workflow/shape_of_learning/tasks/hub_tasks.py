"""Labelled texts from data sets of the Hub."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from shape_of_learning.errors import InputError
from shape_of_learning.tasks.examples import SPLITS, Example, Task
from shape_of_learning.tasks.records import Fields, examples_of


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
        As :func:`prepared`; or if a split or a column is not there.
    """
    where, hub = f"task `{name}`", entry["hub"]
    builder = prepared(hub, where)
    fields = Fields(hub["text"], hub.get("text_2"), hub["label"])
    examples: list[Example] = []
    for split in SPLITS:
        published, there = hub["split"][split], list(builder.info.splits)
        if published not in there:
            near = get_close_matches(published, there, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(there)}"
            raise InputError(
                f"{where}: `{hub['dataset']}` has no split `{published}`, which its entry gives as "
                f"`hub.split.{split}`; {hint}"
            )
        records = builder.as_dataset(split=published)
        examples += examples_of(records, fields, split, f"{where}, split `{published}`")
    return Task(entry.get("metric", "accuracy"), examples)


def prepared(hub: Mapping[str, Any], where: str) -> Any:
    """Download a data set, or find it in the user's cache; nothing that a repository brings is run.

    Parameters
    ----------
    hub : mapping
        As above.
    where : str
        How an error names the task.

    Returns
    -------
    datasets.DatasetBuilder
        Of the commit that is pinned: without the Hub, the library would take any that is cached.

    Raises
    ------
    InputError
        If the data set or its configuration is not there, needs a script, or is damaged; as
        :func:`.explained`; or if another commit is all that can be had.
    """
    import datasets

    from shape_of_learning.checkpoints.hub import explained

    datasets.config.HF_UPDATE_DOWNLOAD_COUNTS = False  # which another host than the Hub keeps
    datasets.utils.logging.set_verbosity_error()
    datasets.disable_progress_bars()
    dataset, config, revision = hub["dataset"], hub["config"], hub["revision"]
    with explained(dataset, revision, where=where, key="hub.dataset"):
        try:
            # The prefix keeps a local folder of this name from being taken.
            builder = datasets.load_dataset_builder(
                f"hf://datasets/{dataset}", name=config, revision=revision
            )
            if builder.hash == revision:
                builder.download_and_prepare()
        except datasets.exceptions.DatasetNotFoundError as error:
            raise InputError(
                f"{where}: {_plain(error)}; correct `hub.dataset` and `hub.revision`, or set HF_TOKEN to a "
                "token of an account that may see it"
            ) from error
        except datasets.exceptions.DatasetsError as error:
            raise InputError(
                f"{where}: `{dataset}` at revision `{revision}` cannot be read ({_plain(error)}); take "
                "another data set, or delete this from the Hugging Face cache if it is damaged there"
            ) from error
        except RuntimeError as error:
            if "scripts are no longer supported" not in str(error):
                raise
            raise InputError(
                f"{where}: `{dataset}` at revision `{revision}` has a loading script, which is never run; "
                "name a revision or a copy of it that has Parquet files"
            ) from error
        except ValueError as error:
            if f"'{config}'" not in str(error):
                raise
            raise InputError(f"{where}: {_plain(error)}; correct `hub.config`") from error
    if builder.hash != revision:
        raise InputError(
            f"{where}: of `{dataset}` the Hugging Face cache has revision `{builder.hash}`, not "
            f"`{revision}`, and the Hub cannot be asked; run once where it can, or correct `hub.revision`"
        )
    return builder


def _plain(error: Exception) -> str:
    """What a library says, on one line."""
    return " ".join(str(error).split())[:200].rstrip(".")
