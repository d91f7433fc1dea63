"""Tasks are made from data sets of a Hub on loopback, and then from the cache without it."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow
import pyarrow.parquet
import pytest
import yaml

from hub_fetching import make_environment
from hub_server import HubRepository, serve_hub
from shape_of_learning.tasks.examples import Example, read_task

REPOSITORY = Path(__file__).parents[2]
TASKS = yaml.safe_load((REPOSITORY / "config/config.yaml").read_text())["tasks"]
NOBODY = "http://127.0.0.1:9"
SPLITS = {"train": range(40), "validation": range(100, 120), "test": range(200, 210)}
# Columns of texts, and the label of each example; those of the published test set are hidden.
DATA = {
    "sst2": (["sentence"], lambda n: n % 2),
    "stsb": (["sentence1", "sentence2"], lambda n: n / 4),
}
# Makes several tasks in one process, since the library loads slowly; refused tasks give a message.
MAKE = """
import json, pathlib, sys
from shape_of_learning.errors import InputError
from shape_of_learning.tasks.entry import ExamplesJob, TaskEntry
from shape_of_learning.tasks.examples import write_task
from shape_of_learning.tasks.sources import make_task
for name, entry in json.loads(sys.argv[1]).items():
    try:
        job = ExamplesJob(name, TaskEntry(**entry), seed=0)
        write_task(pathlib.Path(sys.argv[2], f"{name}.csv"), make_task(job, text=None))
    except InputError as error:
        print(json.dumps([name, str(error)]))
"""


def save_data(folder: Path, offset: int) -> Path:
    """Save Parquet files and a card like those of GLUE."""
    configurations = []
    for name, (columns, label) in DATA.items():
        for split, numbers in SPLITS.items():
            table = {key: [f"{key} {offset + number}" for number in numbers] for key in columns}
            table["label"] = [-1 if split == "test" else label(number) for number in numbers]
            path = folder / name / f"{split}-00000-of-00001.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pyarrow.parquet.write_table(pyarrow.table(table), path)
        files = [{"split": split, "path": f"{name}/{split}-*"} for split in SPLITS]
        configurations.append({"config_name": name, "data_files": files})
    (folder / "README.md").write_text(f"---\n{yaml.safe_dump({'configs': configurations})}---\n")
    return folder


@pytest.fixture(scope="module")
def hub(tmp_path_factory, hub_program) -> Iterator[SimpleNamespace]:
    """A running Hub, and commits of its data sets."""
    root, sources = tmp_path_factory.mktemp("hub"), tmp_path_factory.mktemp("sources")
    glue = HubRepository(root, "nyu-mll/glue", "datasets")
    first, second = (glue.commit("main", save_data(sources / str(n), n)) for n in (0, 1000))
    script = sources / "0" / "scripted.py"
    script.write_text(f"open({str(root / 'it was run')!r}, 'w')\n")
    other = HubRepository(root, "org/scripted", "datasets").commit("main", sources / "0")
    with serve_hub(root, hub_program) as endpoint:
        yield SimpleNamespace(endpoint=endpoint, first=first, second=second, script=other)
    assert not (root / "it was run").exists()


def make_entry(task: str, revision: str, **changes: object) -> dict:
    """Return an entry of the configuration with another commit."""
    entry = TASKS[task]
    return {**entry, "hub": {**entry["hub"], "revision": revision, **changes}}


def make_tasks(folder: Path, entries: dict[str, dict], settings: dict[str, str]) -> dict[str, str]:
    """Make tasks in a folder; return the messages of refused tasks."""
    command = [sys.executable, "-c", MAKE, json.dumps(entries), str(folder)]
    process = subprocess.run(command, env=settings, check=True, stdout=subprocess.PIPE, text=True)
    messages = dict(map(json.loads, process.stdout.splitlines()))
    for name, sentence in messages.items():
        assert sentence.startswith(f"task `{name}`")
        assert sentence.isprintable()
    return messages


def test_a_data_set_becomes_a_task_and_again_from_the_cache(hub, tmp_path):
    online = make_environment(hub.endpoint, tmp_path)
    pairs = {"pairs": make_entry("stsb", hub.first)}
    assert not make_tasks(tmp_path / "online", pairs, online)
    shutil.rmtree(tmp_path / "hf/hub")  # it is in the cache of the library for data sets
    offline = {**online, "HF_ENDPOINT": NOBODY, "HF_HUB_OFFLINE": "1"}
    # The library would take another commit than the requested one from its cache.
    more = {"a": make_entry("stsb", hub.second), "b": make_entry("sst2", hub.first)}
    other = make_tasks(tmp_path / "offline", pairs | more, offline)
    first, again = (tmp_path / name / "pairs.csv" for name in ("online", "offline"))
    assert again.read_bytes() == first.read_bytes()
    task = read_task(again)
    assert task.metric == "spearman"
    assert (len(task.split("train")), len(task.split("held_out"))) == (40, 20)
    third = task.split("held_out")[3]
    assert third == Example("held_out", 25.75, third.group, "sentence1 103", "sentence2 103")
    assert all(f"`{revision}`" in other["a"] for revision in (hub.first, hub.second))
    assert "cannot be read (Couldn't find cache" in other["b"]
    nothing = make_tasks(tmp_path, pairs, {**offline, "HF_HOME": str(tmp_path / "nothing")})
    assert "HF_HUB_OFFLINE forbids asking for it" in nothing["pairs"]


def test_a_missing_column_split_or_data_set_is_named(hub, tmp_path):
    mistakes = {"label": "lable", "text": "words", "config": "sst3"}
    entries = {
        key: make_entry("sst2", hub.second, **{key: value}) for key, value in mistakes.items()
    }
    entries["split"] = make_entry("sst2", hub.second, split={"train": "train", "held_out": "dev"})
    entries["hidden"] = make_entry("sst2", hub.second, split={"train": "train", "held_out": "test"})
    entries["dataset"] = make_entry("sst2", hub.second, dataset="nyu-mll/gleu")
    entries["script"] = make_entry("sst2", hub.script, dataset="org/scripted")
    messages = make_tasks(tmp_path, entries, make_environment(hub.endpoint, tmp_path))
    assert "no column `lable`; correct `hub.label`" in messages["label"]
    assert "no column `words`; correct `hub.text`" in messages["text"]
    assert "'sst3' not found. Available: ['sst2', 'stsb']" in messages["config"]
    assert "has no split `dev`; correct `hub.split.held_out`" in messages["split"]
    assert "labels of the split `held_out` are -1" in messages["hidden"]
    assert "the Hub has no `nyu-mll/gleu`" in messages["dataset"]
    assert "scripts are no longer supported" in messages["script"]
