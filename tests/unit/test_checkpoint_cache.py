"""Checkpoints that are in the user's Hugging Face cache already, with and without a network."""

import json
import shutil
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
from hub_server import HubRepository, Proxy, proxied, served
from shape_of_learning.checkpoints.weight_listing import WeightFile, WeightListing
from shape_of_learning.storage.digests import git_blob_name, sha256_of
from tiny_models import save_tokenizer

OFFLINE = {"HF_HUB_OFFLINE": "1"}


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, hub_program: Path) -> Iterator[Hub]:
    root, sources = tmp_path_factory.mktemp("hub"), tmp_path_factory.mktemp("sources")
    source = save_model(sources / "whole", seed=1, form="bin")
    save_tokenizer(source)
    repository = HubRepository(root, "org/whole")
    commit = repository.commit("main", source, large=(WEIGHTS,))
    with served(root, hub_program) as endpoint:
        yield Hub(endpoint, sources, {"org/whole": commit}, repository.listed)


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
    proxy = Proxy(hub.endpoint)
    with proxied(proxy) as endpoint:
        log = fetch(hub, tmp_path / "m", "org/whole", "main", endpoint=endpoint)
    assert not set(FILES) & set(proxy.asked)
    assert (tmp_path / "m" / WEIGHTS).samefile(blob_of(tmp_path / "hf", WEIGHTS))
    assert f"{WEIGHTS} is taken from the Hugging Face cache" in log
    assert_same_files(tmp_path / "m", hub.sources / "whole", FILES)
    assert contents(tmp_path / "hf") == before


def test_what_is_on_another_disk_is_copied(hub, tmp_path):
    proxy = Proxy(hub.endpoint)
    with small_disk(tmp_path / "hf", "8m"), proxied(proxy) as endpoint:
        fill_cache(hub, tmp_path)
        fetch(hub, tmp_path / "m", "org/whole", "main", endpoint=endpoint)
        assert not (tmp_path / "m" / WEIGHTS).samefile(blob_of(tmp_path / "hf", WEIGHTS))
    assert not set(FILES) & set(proxy.asked)
    assert_same_files(tmp_path / "m", hub.sources / "whole", FILES)


@pytest.mark.parametrize("name", [WEIGHTS, "tokenizer.json"], ids=["sha256", "git_blob"])
def test_what_is_damaged_in_the_cache_is_downloaded(hub, tmp_path, name):
    fill_cache(hub, tmp_path)
    blob = blob_of(tmp_path / "hf", name)
    blob.write_bytes(blob.read_bytes()[:-1] + b"?")
    proxy = Proxy(hub.endpoint)
    with proxied(proxy) as endpoint:
        fetch(hub, tmp_path / "m", "org/whole", "main", endpoint=endpoint)
    assert name in proxy.asked
    assert_same_files(tmp_path / "m", hub.sources / "whole", FILES)


def test_a_checkpoint_in_the_cache_is_fetched_offline(hub, tmp_path):
    fill_cache(hub, tmp_path)
    # What counts is the commit that the lock pins, not what the cache takes the branch for.
    (tmp_path / "hf" / "hub" / "models--org--whole" / "refs" / "main").unlink()
    proxy = Proxy(hub.endpoint)
    with proxied(proxy) as endpoint:
        fetch(hub, tmp_path / "m", "org/whole", "main", OFFLINE, endpoint=endpoint)
    assert proxy.asked == []
    assert_same_files(tmp_path / "m", hub.sources / "whole", FILES)
    record = json.loads((tmp_path / "m" / "checkpoint.json").read_text())
    assert (record["revision"], record["commit"]) == ("main", hub.commits["org/whole"])


def test_the_record_does_not_tell_whether_there_was_a_network(hub, tmp_path):
    fill_cache(hub, tmp_path)
    fetch(hub, tmp_path / "offline", "org/whole", "main", OFFLINE)
    fetch(hub, tmp_path / "online", "org/whole", "main")
    offline, online = (
        (tmp_path / name / "checkpoint.json").read_text() for name in ("offline", "online")
    )
    assert offline == online


@pytest.mark.parametrize("missing", [FILES, [WEIGHTS], TOKENIZER, ["config.json"]])
def test_what_the_cache_lacks_offline_is_one_sentence(hub, tmp_path, missing):
    fill_cache(hub, tmp_path, [name for name in FILES if name not in missing])
    proxy = Proxy(hub.endpoint)
    with proxied(proxy) as endpoint:
        message = refusal(hub, tmp_path / "m", "org/whole", "main", OFFLINE, endpoint=endpoint)
    assert "`org/whole` at revision `main`" in message
    assert "is not downloaded yet and HF_HUB_OFFLINE forbids to ask for it" in message
    assert proxy.asked == []


def test_what_is_damaged_in_the_cache_offline_is_one_sentence(hub, tmp_path):
    fill_cache(hub, tmp_path)
    blob = blob_of(tmp_path / "hf", WEIGHTS)
    blob.write_bytes(blob.read_bytes()[:-1] + b"?")
    message = refusal(hub, tmp_path / "m", "org/whole", "main", OFFLINE)
    assert str(blob) in message
    assert "delete it" in message


def without_links(cache: Path) -> None:
    """Make of it what Windows has, and `cp -rL`."""
    subprocess.run(["cp", "-rL", cache / "hub", cache / "copy"], check=True)
    shutil.rmtree(cache / "hub")
    (cache / "copy").rename(cache / "hub")
    assert not [path for path in cache.rglob("*") if path.is_symlink()]


def resolved(hub: Hub, folder: Path, *revisions: str) -> dict[str, dict]:
    """What a lock pins offline."""
    program = (
        "import json, sys\n"
        "from dataclasses import asdict\n"
        "from shape_of_learning.checkpoints.lock import LockedRevision\n"
        "from shape_of_learning.checkpoints.resolution import resolve\n"
        "wanted = {name: LockedRevision('org/whole', name) for name in sys.argv[1:]}\n"
        "found, _ = resolve(wanted, where='model `tiny`')\n"
        "print(json.dumps({name: asdict(each) for name, each in found.items()}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *revisions],
        env=environment(hub.endpoint, folder, **OFFLINE),
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


def test_a_cache_without_links_is_hashed(hub, tmp_path):
    fill_cache(hub, tmp_path)
    linked = resolved(hub, tmp_path, "main")["main"]
    without_links(tmp_path / "hf")
    copied = resolved(hub, tmp_path, "main")["main"]
    whole = hub.sources / "whole"
    assert linked["listed"] == copied["listed"]
    assert copied["listed"]["files"][WEIGHTS]["hash"] == f"sha256:{sha256_of(whole / WEIGHTS)}"
    small = ["config.json", *TOKENIZER]
    assert copied["small_files"] == {name: f"sha256:{sha256_of(whole / name)}" for name in small}
    assert linked["small_files"] == {name: f"git:{git_blob_name(whole / name)}" for name in small}


def test_revisions_in_a_cache_without_links_are_not_the_same(hub, tmp_path):
    fill_cache(hub, tmp_path)
    without_links(tmp_path / "hf")
    repository = tmp_path / "hf" / "hub" / "models--org--whole"
    other = "f" * 40
    shutil.copytree(
        repository / "snapshots" / hub.commits["org/whole"], repository / "snapshots" / other
    )
    weights = repository / "snapshots" / other / WEIGHTS
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    (repository / "refs" / "step1").write_text(other)
    first, second = (
        WeightListing(files={WEIGHTS: WeightFile(**each["listed"]["files"][WEIGHTS])})
        for each in resolved(hub, tmp_path, "main", "step1").values()
    )
    assert not first.same_weights(second)


def test_what_is_fetched_from_a_cache_without_links_is_verified(hub, tmp_path):
    fill_cache(hub, tmp_path)
    without_links(tmp_path / "hf")
    fetch(hub, tmp_path / "m", "org/whole", "main", OFFLINE)
    assert_same_files(tmp_path / "m", hub.sources / "whole", FILES)
    for name in (WEIGHTS, "config.json", "tokenizer.json"):
        (file,) = (tmp_path / "hf" / "hub").glob(f"models--org--whole/snapshots/*/{name}")
        good = file.read_bytes()
        file.unlink()  # the one that was fetched may be a link to it
        file.write_bytes(good[:-1] + b"?")
        message = refusal(hub, tmp_path / "n", "org/whole", "main", OFFLINE)
        assert f"{name} of `org/whole` is damaged in the Hugging Face cache" in message
        listed = hub.listed[hub.commits["org/whole"]][name]
        assert f"expected {listed.bytes} bytes with the hash {listed.hash}, found" in message
        file.write_bytes(good)


@pytest.mark.parametrize(
    "commit", ["../../../somewhere", "", "/etc", "f" * 39, "F" * 40, "g" * 40, "\0" * 40]
)
def test_a_reference_to_no_commit_is_one_sentence(hub, tmp_path, commit):
    fill_cache(hub, tmp_path)
    (tmp_path / "hf" / "somewhere").mkdir()
    (tmp_path / "hf" / "somewhere" / "config.json").write_text("{}")
    (tmp_path / "hf" / "hub" / "models--org--whole" / "refs" / "main").write_text(commit)
    with pytest.raises(subprocess.CalledProcessError) as caught:
        resolved(hub, tmp_path, "main")
    last = caught.value.stderr.strip().splitlines()[-1]
    assert "InputError" in last
    assert "which is no commit, 40 hexadecimal digits; delete it" in last


def test_a_link_out_of_the_cache_has_no_hash_by_its_name(hub, tmp_path):
    fill_cache(hub, tmp_path)
    (snapshot,) = (tmp_path / "hf" / "hub").glob("models--org--whole/snapshots/*")
    (snapshot / WEIGHTS).unlink()
    elsewhere = tmp_path / ("0" * 64)
    elsewhere.write_bytes(b"other weights")
    (snapshot / WEIGHTS).symlink_to(elsewhere)
    found = resolved(hub, tmp_path, "main")["main"]["listed"]["files"][WEIGHTS]["hash"]
    assert found == f"sha256:{sha256_of(elsewhere)}"
    message = refusal(hub, tmp_path / "m", "org/whole", "main", OFFLINE)
    assert f"{WEIGHTS} of `org/whole` is damaged in the Hugging Face cache" in message
