"""Tasks of published archives, which are as their entries say."""

import io
import json
import tarfile
from hashlib import sha256
from pathlib import Path

import pytest
import requests
import yaml

from mirrors import Mirror, served
from shape_of_learning.errors import InputError
from shape_of_learning.tasks import archives
from shape_of_learning.tasks.sources import make_task

REPOSITORY = Path(__file__).parents[2]


def texts(task, split):
    return {example.text for example in task.split(split)}


def packed(files):
    """A tar.gz of files by name; equal files give equal bytes."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return content.getvalue()


RATED = "".join(f"{i}\t{i % 7 - 3.5}\tA 'quoted \"text, {i // 2}\r\n" for i in range(100)).encode()
RECORDS = json.dumps([{"text": f"Text {i}", "class": i % 2} for i in range(50)] + [{"text": ""}])
ARCHIVE = packed(
    {
        "top/inner.tar.gz": packed({"data/rated.txt": RATED}),
        "top/a.json": RECORDS.encode(),
        "top/words.csv": b"text,kind\nOne,two\n",
    }
)
ENTRY = {"sha256": sha256(ARCHIVE).hexdigest(), "format": "json", "text": "text", "label": "class"}
TABLE = {"format": "tsv", "columns": ["id", "rating", "text"], "label": "rating"}
NESTED = "top/inner.tar.gz/data/rated.txt"


def made_of_archive(folder, content=ARCHIVE, **entry):
    with served(Mirror(content)) as url:
        whole = {**ENTRY, "urls": [url], **entry}
        return make_task("t", whole, text=None, archive=folder / "t.archive", seed=0)


def test_a_file_of_an_archive_in_an_archive_becomes_a_task(tmp_path):
    task = made_of_archive(tmp_path, member=NESTED, metric="spearman", **TABLE)
    found = sorted((example.text, example.label) for example in task.examples)
    assert found == sorted((f"A 'quoted \"text, {i // 2}", i % 7 - 3.5) for i in range(100))
    # Equal texts are on one side.
    assert not texts(task, "train") & texts(task, "held_out")
    assert len(texts(task, "held_out")) == 10


def test_several_members_are_one_task_and_empty_records_none(tmp_path):
    task = made_of_archive(tmp_path, member=["top/a.json", "top/a.json"], most={"held_out": 4})
    assert {split: len(task.split(split)) for split in ("train", "held_out")} == {
        "train": 80,
        "held_out": 4,
    }
    assert task.classes == [0, 1]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"member": "top/a.json", "sha256": "0" * 64}, "SHA-256 is .* correct tasks.t.sha256"),
        ({"member": "top/b.json"}, "the archive holds top/inner.tar.gz, .* correct `member`"),
        ({"member": f"{NESTED}/more"}, "correct `member`"),
        ({"member": "top/a.json", "label": "clas"}, "`clas`.* did you mean `class`"),
        (
            {"member": "top/words.csv", "format": "csv", "label": "kind"},
            "'two', which is no number",
        ),
        ({"member": NESTED, **TABLE}, "-3.5 is no class"),
        ({"member": NESTED, **TABLE, "columns": ["rating", "text"]}, "record 1 has 3 columns"),
        ({"member": NESTED, "format": "json"}, "it is no json file"),
    ],
)
def test_an_archive_that_is_not_as_its_entry_says_is_refused_in_a_sentence(entry, reason, tmp_path):
    with pytest.raises(InputError, match=reason):
        made_of_archive(tmp_path, **entry)


def test_what_is_no_archive_is_refused(tmp_path):
    content = b"no archive"
    with pytest.raises(InputError, match="is no tar archive"):
        made_of_archive(tmp_path, content, member="a", sha256=sha256(content).hexdigest())


@pytest.mark.parametrize(("name", "examples"), [("sentiment", 3000), ("movie_ratings", 10605)])
def test_published_archives_are_as_the_configuration_says(name, examples, tmp_path):
    entry = yaml.safe_load((REPOSITORY / "config/config.yaml").read_text())["tasks"][name]
    try:
        requests.head(entry["urls"][0], timeout=10).raise_for_status()
    except requests.RequestException:
        pytest.skip("the package registry cannot be reached")
    task = make_task(name, entry, text=None, archive=tmp_path / "archive", seed=0)
    assert len(task.examples) == examples
    assert not texts(task, "train") & texts(task, "held_out")


def test_the_downloader_is_not_asked_again_for_what_is_there(tmp_path):
    mirror = Mirror(ARCHIVE)
    with served(mirror) as url:
        for _ in range(2):
            entry = {**ENTRY, "urls": [url], "member": "top/a.json"}
            archives.archive_task("t", entry, tmp_path / "t.archive", seed=0)
    assert mirror.asked == 1
