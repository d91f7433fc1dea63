"""Checkpoints that are in the user's Hugging Face cache already, with and without a network."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hub_fetching import (
    FILES,
    TOKENIZER,
    WEIGHTS,
    Hub,
    assert_same_files,
    environment,
    fetch,
    refusal,
    save_model,
    small_disk,
)
from hub_server import Front, HubRepository, in_front, served
from tiny_models import save_tokenizer

OFFLINE = {"HF_HUB_OFFLINE": "1"}


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, hub_program: Path) -> Iterator[Hub]:
    root, sources = tmp_path_factory.mktemp("hub"), tmp_path_factory.mktemp("sources")
    source = save_model(sources / "whole", seed=1, form="bin")
    save_tokenizer(source)
    commit = HubRepository(root, "org/whole").commit("main", source, large=(WEIGHTS,))
    with served(root, hub_program) as endpoint:
        yield Hub(endpoint, sources, {"org/whole": commit})


def fill_cache(hub: Hub, folder: Path, files: list[str] = FILES) -> None:
    """Download with the ordinary client, as anything else on the user's machine does."""
    program = "import sys, huggingface_hub\n" + (
        "for name in sys.argv[1:]: huggingface_hub.hf_hub_download('org/whole', name)"
    )
    settings = environment(hub.endpoint, folder)
    subprocess.run([sys.executable, "-c", program, *files], env=settings, check=True)


def contents(cache: Path) -> dict[str, tuple[int, int, bytes]]:
    """All that a write to the cache would change; a hard link changes none of it."""
    return {
        str(path): (path.lstat().st_mtime_ns, path.stat().st_size, path.read_bytes())
        for path in cache.rglob("*")
        if path.is_file()
    }


def blob_of(cache: Path, name: str) -> Path:
    return next(cache.glob(f"hub/models--org--whole/snapshots/*/{name}")).resolve()


def test_what_is_in_the_cache_is_linked_and_not_downloaded(hub, tmp_path):
    fill_cache(hub, tmp_path)
    before = contents(tmp_path / "hf")
    front = Front(hub.endpoint)
    with in_front(front) as endpoint:
        log = fetch(endpoint, tmp_path / "m", "org/whole", "main")
    assert not set(FILES) & set(front.asked)
    assert (tmp_path / "m" / WEIGHTS).samefile(blob_of(tmp_path / "hf", WEIGHTS))
    assert f"{WEIGHTS} is taken from the Hugging Face cache" in log
    assert_same_files(tmp_path / "m", hub.sources / "whole", FILES)
    assert contents(tmp_path / "hf") == before


def test_what_is_on_another_disk_is_copied(hub, tmp_path):
    front = Front(hub.endpoint)
    with small_disk(tmp_path / "hf", "8m"), in_front(front) as endpoint:
        fill_cache(hub, tmp_path)
        fetch(endpoint, tmp_path / "m", "org/whole", "main")
        assert not (tmp_path / "m" / WEIGHTS).samefile(blob_of(tmp_path / "hf", WEIGHTS))
    assert not set(FILES) & set(front.asked)
    assert_same_files(tmp_path / "m", hub.sources / "whole", FILES)


def test_a_torn_download_does_not_grow_into_the_cache(hub, tmp_path):
    fill_cache(hub, tmp_path)
    before = contents(tmp_path / "hf")
    folder = tmp_path / ".m.download" / hub.commits["org/whole"]
    folder.mkdir(parents=True)
    # What a kill between the link to the cache and its new name leaves behind.
    os.link(blob_of(tmp_path / "hf", WEIGHTS), folder / f"{WEIGHTS}.cached")
    (folder / f"{WEIGHTS}.part").write_bytes(b"torn")
    fetch(hub.endpoint, tmp_path / "m", "org/whole", "main")
    assert_same_files(tmp_path / "m", hub.sources / "whole", FILES)
    assert contents(tmp_path / "hf") == before


@pytest.mark.parametrize("name", [WEIGHTS, "tokenizer.json"], ids=["sha256", "git_blob"])
def test_what_is_damaged_in_the_cache_is_downloaded(hub, tmp_path, name):
    fill_cache(hub, tmp_path)
    blob = blob_of(tmp_path / "hf", name)
    blob.write_bytes(blob.read_bytes()[:-1] + b"?")
    front = Front(hub.endpoint)
    with in_front(front) as endpoint:
        fetch(endpoint, tmp_path / "m", "org/whole", "main")
    assert name in front.asked
    assert_same_files(tmp_path / "m", hub.sources / "whole", FILES)


def test_a_checkpoint_in_the_cache_is_fetched_offline(hub, tmp_path):
    fill_cache(hub, tmp_path)
    front = Front(hub.endpoint)
    with in_front(front) as endpoint:
        fetch(endpoint, tmp_path / "m", "org/whole", "main", OFFLINE)
    assert front.asked == []
    assert_same_files(tmp_path / "m", hub.sources / "whole", FILES)
    record = json.loads((tmp_path / "m" / "checkpoint.json").read_text())
    assert (record["revision"], record["commit"]) == ("main", hub.commits["org/whole"])


def test_the_record_does_not_tell_whether_there_was_a_network(hub, tmp_path):
    fill_cache(hub, tmp_path)
    fetch(hub.endpoint, tmp_path / "offline", "org/whole", "main", OFFLINE)
    fetch(hub.endpoint, tmp_path / "online", "org/whole", "main")
    offline, online = (
        (tmp_path / name / "checkpoint.json").read_text() for name in ("offline", "online")
    )
    assert offline == online


def test_a_pinned_commit_in_the_cache_is_fetched_offline(hub, tmp_path):
    fill_cache(hub, tmp_path)
    (tmp_path / "hf" / "hub" / "models--org--whole" / "refs" / "main").unlink()
    pinned = {"commit": hub.commits["org/whole"]}
    fetch(hub.endpoint, tmp_path / "m", "org/whole", "main", OFFLINE, **pinned)
    assert_same_files(tmp_path / "m", hub.sources / "whole", FILES)


@pytest.mark.parametrize("missing", [FILES, [WEIGHTS], TOKENIZER, ["config.json"]])
def test_what_the_cache_lacks_offline_is_one_sentence(hub, tmp_path, missing):
    fill_cache(hub, tmp_path, [name for name in FILES if name not in missing])
    front = Front(hub.endpoint)
    with in_front(front) as endpoint:
        message = refusal(endpoint, tmp_path / "m", "org/whole", "main", OFFLINE)
    assert "`org/whole` at revision `main`" in message
    assert "is not downloaded yet and HF_HUB_OFFLINE forbids to ask for it" in message
    assert front.asked == []


def test_what_is_damaged_in_the_cache_offline_is_one_sentence(hub, tmp_path):
    fill_cache(hub, tmp_path)
    blob = blob_of(tmp_path / "hf", WEIGHTS)
    blob.write_bytes(blob.read_bytes()[:-1] + b"?")
    message = refusal(hub.endpoint, tmp_path / "m", "org/whole", "main", OFFLINE)
    assert str(blob) in message
    assert "delete it" in message
