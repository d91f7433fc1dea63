import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import transformers

from hub_fetching import (
    TOKENIZER,
    Hub,
    assert_same_files,
    fetch,
    names,
    refusal,
    run,
    save_model,
)
from hub_server import HubRepository, Proxy, free_port, proxied, served
from shape_of_learning.checkpoints.checkpoint_record import file_entry
from shape_of_learning.checkpoints.lock import LockedRevision
from shape_of_learning.checkpoints.weight_listing import WeightFile, WeightListing
from tiny_models import save_tokenizer

# What repositories hold beside what is needed; none of it may be downloaded, least of all code.
UNWANTED = [
    *("README.md", "flax_model.msgpack", "tf_model.h5", "model.onnx", "modeling_tiny.py"),
    *("generation_config.json", "model.fp16.safetensors", "training_args.bin"),
]


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, hub_program: Path) -> Iterator[Hub]:
    root, sources = tmp_path_factory.mktemp("hub"), tmp_path_factory.mktemp("sources")
    tiny, bare = HubRepository(root, "org/tiny"), HubRepository(root, "org/bare")
    commits, listed = {}, {}

    def publish(repository: HubRepository, branch: str, folder: Path, *large: str) -> None:
        commits[f"{repository.name}@{branch}"] = repository.commit(branch, folder, large=large)
        listed.update(repository.listed)

    both = save_model(sources / "both", seed=0, form="both")
    save_tokenizer(both)
    for name in UNWANTED:
        (both / name).write_text(f"not wanted: {name}")
    publish(tiny, "main", both)
    pickled = save_model(sources / "step1", seed=1, form="bin")
    save_tokenizer(pickled)
    publish(tiny, "step1", pickled, "pytorch_model.bin")
    shards = save_model(sources / "shards", seed=2, form="shards")
    save_tokenizer(shards)
    (shards / "model-00001-of-00099.safetensors").write_text("a layout given up")
    publish(tiny, "shards", shards)
    empty = sources / "empty"
    save_tokenizer(empty)
    shutil.copy(both / "config.json", empty)
    publish(tiny, "empty", empty)
    nested = sources / "nested"
    save_tokenizer(nested)
    save_model(nested / "checkpoints" / "7", seed=3, form="safetensors")
    publish(tiny, "nested", nested)
    publish(bare, "global_step10", save_model(sources / "bare", seed=4, form="bin"))

    with served(root, hub_program) as endpoint:
        yield Hub(endpoint, sources, commits, listed)


def test_safetensors_are_preferred_and_nothing_else_is_downloaded(hub, tmp_path):
    fetch(hub, tmp_path / "main", "org/tiny", "main")
    wanted = ["config.json", "model.safetensors", *TOKENIZER]
    assert_same_files(tmp_path / "main", hub.sources / "both", wanted)


def test_pickled_weights_are_taken_where_there_are_no_safetensors(hub, tmp_path):
    fetch(hub, tmp_path / "step1", "org/tiny", "step1")
    wanted = ["config.json", "pytorch_model.bin", *TOKENIZER]
    assert_same_files(tmp_path / "step1", hub.sources / "step1", wanted)


def test_the_index_decides_which_shards_are_downloaded(hub, tmp_path):
    fetch(hub, tmp_path / "shards", "org/tiny", "shards")
    index = "model.safetensors.index.json"
    source = hub.sources / "shards"
    shards = sorted(set(json.loads((source / index).read_text())["weight_map"].values()))
    assert len(shards) > 1
    assert_same_files(tmp_path / "shards", source, ["config.json", index, *shards, *TOKENIZER])


@pytest.mark.parametrize("revision", ["main", "step1", "shards"])
def test_what_is_fetched_loads_as_what_was_published(hub, tmp_path, revision):
    fetch(hub, tmp_path / "fetched", "org/tiny", revision)
    source = hub.sources / {"main": "both"}.get(revision, revision)
    fetched, published = (
        transformers.AutoModel.from_pretrained(folder).state_dict()
        for folder in (tmp_path / "fetched", source)
    )
    assert fetched.keys() == published.keys()
    assert all(torch.equal(fetched[name], published[name]) for name in published)
    assert transformers.AutoTokenizer.from_pretrained(tmp_path / "fetched")("text").input_ids


def test_the_record_says_which_commit_the_files_come_from(hub, tmp_path):
    fetch(hub, tmp_path / "step1", "org/tiny", "step1")
    record = json.loads((tmp_path / "step1" / "checkpoint.json").read_text())
    assert (record["repository"], record["revision"]) == ("org/tiny", "step1")
    assert record["commit"] == record["tokenizer"]["commit"] == hub.commits["org/tiny@step1"]
    weights = hub.sources / "step1" / "pytorch_model.bin"
    assert record["files"]["pytorch_model.bin"] == {
        "bytes": weights.stat().st_size,
        "sha256": hashlib.sha256(weights.read_bytes()).hexdigest(),
    }
    assert names(tmp_path / "step1") == sorted([*record["files"], "checkpoint.json"])


def test_a_pinned_commit_is_taken_whatever_the_branch_holds_now(hub, tmp_path):
    pinned = hub.commits["org/tiny@step1"]
    fetch(hub, tmp_path / "m", "org/tiny", "main", commit=pinned)
    record = json.loads((tmp_path / "m" / "checkpoint.json").read_text())
    assert (record["revision"], record["commit"]) == ("main", pinned)
    assert "pytorch_model.bin" in record["files"]


def test_the_tokenizer_is_pinned_too(hub, tmp_path):
    pinned = hub.commits["org/tiny@shards"]
    words = hub.pinned("org/tiny", "main", pinned)
    fetch(hub, tmp_path / "m", "org/bare", "global_step10", tokenizer=words)
    record = json.loads((tmp_path / "m" / "checkpoint.json").read_text())
    assert record["tokenizer"] == {
        "repository": "org/tiny",
        "revision": "main",
        "commit": pinned,
    }


def test_a_pinned_commit_that_is_gone_names_the_file_that_pins_it(hub, tmp_path):
    gone = "0123456789" * 4
    with proxied(Proxy(hub.endpoint, gone=gone)) as endpoint:
        message = refusal(hub, tmp_path / "m", "org/tiny", "main", commit=gone, endpoint=endpoint)
    assert gone in message
    assert "m.lock.yaml" in message
    assert "delete its entry" in message


def test_a_checkpoint_in_a_subfolder_takes_the_tokenizer_of_its_repository(hub, tmp_path):
    fetch(hub, tmp_path / "7", "org/tiny", "nested", subfolder="checkpoints/7")
    assert names(tmp_path / "7") == sorted(
        ["checkpoint.json", "config.json", "model.safetensors", *TOKENIZER]
    )


def test_nothing_is_left_beside_a_complete_checkpoint(hub, tmp_path):
    fetch(hub, tmp_path / "out" / "main", "org/tiny", "main")
    assert names(tmp_path / "out") == ["log.json", "main"]  # what made it, as of every job


def test_a_repository_that_is_gone_is_refused(hub, tmp_path):
    message = refusal(hub, tmp_path / "m", "org/none", commit="0123456789" * 4)
    assert "no repository `org/none`" in message
    assert "`repository`" in message


def test_a_tokenizer_repository_that_is_gone_names_the_key_tokenizer(hub, tmp_path):
    gone = LockedRevision("org/none", "main", listed=WeightListing("0123456789" * 4))
    message = refusal(hub, tmp_path / "m", "org/bare", "global_step10", tokenizer=gone)
    assert "no repository `org/none`" in message
    assert "`tokenizer`" in message


def test_a_revision_that_the_lock_does_not_have_is_refused(hub, tmp_path):
    message = refusal(hub, tmp_path / "m", "org/tiny", "main", name="step8")
    assert "`step8` cannot be fetched" in message
    assert "lock.yaml does not have it" in message
    assert "`snakemake resolve`" in message


def test_bytes_that_a_mirror_serves_under_the_same_commit_are_refused(hub, tmp_path):
    """Even if the mirror lists them as its own: what counts is what the lock pins."""
    pinned = hub.commits["org/tiny@main"]
    files = hub.listed[pinned]
    other = WeightFile(files["model.safetensors"].bytes, "git:" + "0" * 40)
    mirror = replace(hub, listed={pinned: files | {"model.safetensors": other}})
    message = refusal(mirror, tmp_path / "m", "org/tiny", "main")
    assert "model.safetensors of `org/tiny` arrived damaged" in message
    assert pinned[:10] in message
    assert "HF_ENDPOINT" in message


@pytest.mark.parametrize("kind", ["git", "sha256"])
@pytest.mark.parametrize(
    "name", ["config.json", "tokenizer.json", "model.safetensors.index.json", "SHARD"]
)
def test_every_file_must_be_the_one_that_is_pinned(hub, tmp_path, name, kind):
    """Whatever the mirror lists: another hash in the lock is as if it served other bytes."""
    pinned = hub.commits["org/tiny@shards"]
    files = hub.listed[pinned]
    name = next(n for n in files if "-of-0000" in n) if name == "SHARD" else name
    wrong = WeightFile(files[name].bytes, f"{kind}:{'0' * (40 if kind == 'git' else 64)}")
    mirror = replace(hub, listed={pinned: files | {name: wrong}})
    message = refusal(mirror, tmp_path / "m", "org/tiny", "shards")
    content = (hub.sources / "shards" / name).read_bytes()
    blob = hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()
    found = f"git:{blob}" if kind == "git" else f"sha256:{hashlib.sha256(content).hexdigest()}"
    assert f"{name} of `org/tiny` arrived damaged" in message
    assert (
        f"{wrong.bytes} bytes with the hash {wrong.hash}, found {wrong.bytes} with {found}"
        in message
    )
    assert not list(tmp_path.rglob(name))


def test_what_a_mirror_lists_beside_what_is_pinned_is_not_taken(hub, tmp_path):
    """A tokenizer's further file changes its words."""
    pinned = hub.commits["org/tiny@main"]
    files = {name: file for name, file in hub.listed[pinned].items() if name != TOKENIZER[1]}
    fetch(replace(hub, listed={pinned: files}), tmp_path / "m", "org/tiny", "main")
    assert TOKENIZER[0] in names(tmp_path / "m")
    assert TOKENIZER[1] not in names(tmp_path / "m")


def test_a_file_that_is_pinned_and_not_listed_is_one_sentence(hub, tmp_path):
    pinned = hub.commits["org/tiny@main"]
    more = hub.listed[pinned] | {"merges.txt": WeightFile(3, f"git:{'0' * 40}")}
    message = refusal(replace(hub, listed={pinned: more}), tmp_path / "m", "org/tiny", "main")
    assert "has no merges.txt" in message


def changed(file: Path, record: Path | None = None) -> None:
    """Turn a bit, and leave size and time; where there is a record, let it say so."""
    before, old = file.stat(), hashlib.sha256(file.read_bytes()).hexdigest()
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    if record is not None:
        new = hashlib.sha256(content).hexdigest()
        record.write_text(record.read_text().replace(old, new))
        assert new in record.read_text()


@pytest.mark.parametrize("is_recorded", [False, True])
@pytest.mark.parametrize("name", ["pytorch_model.bin", "config.json", "tokenizer.json"])
def test_a_kept_download_of_other_bytes_is_not_believed(hub, tmp_path, name, is_recorded):
    """Neither its size nor its time nor its own record makes it what the lock pins."""
    folder = tmp_path / "m"
    fetch(hub, folder, "org/tiny", "step1")
    changed(folder / name, folder / "checkpoint.json" if is_recorded else None)
    done = run(hub, folder, "org/tiny", "step1", None)
    assert done.returncode == 0
    assert f"{name} in {folder} is not what" in done.stderr
    assert (folder / name).read_bytes() == (hub.sources / "step1" / name).read_bytes()
    assert "another run has fetched" in fetch(hub, folder, "org/tiny", "step1")


def test_a_kept_download_of_another_set_of_files_is_not_believed(hub, tmp_path):
    folder = tmp_path / "m"
    fetch(hub, folder, "org/tiny", "step1")
    record = json.loads((folder / "checkpoint.json").read_text())
    (folder / "merges.txt").write_text("a b")
    record["files"]["merges.txt"] = file_entry(folder / "merges.txt")
    (folder / "checkpoint.json").write_text(json.dumps(record))
    done = run(hub, folder, "org/tiny", "step1", None)
    assert "merges.txt" in done.stderr
    assert "merges.txt" not in names(folder)


@pytest.mark.parametrize(
    "record", ["", "[]", "{}", '{"files": 3}', '{"files": {"../x": {}}}', "[" * 9999]
)
def test_a_kept_download_with_a_damaged_record_is_fetched_anew(hub, tmp_path, record):
    folder = tmp_path / "m"
    fetch(hub, folder, "org/tiny", "step1")
    good = (folder / "checkpoint.json").read_text()
    (folder / "checkpoint.json").write_text(record)
    fetch(hub, folder, "org/tiny", "step1")
    assert (folder / "checkpoint.json").read_text() == good


@pytest.mark.parametrize("unpinned", [TOKENIZER, ["config.json"]])
def test_what_an_incomplete_lock_does_not_pin_is_no_reason_to_fetch_again(hub, tmp_path, unpinned):
    """As one is that was resolved offline from a cache that held a part."""
    commit = hub.commits["org/tiny@step1"]
    files = {name: file for name, file in hub.listed[commit].items() if name not in unpinned}
    partial = replace(hub, listed={commit: files})
    fetch(partial, tmp_path / "m", "org/tiny", "step1")
    assert set(TOKENIZER) <= set(names(tmp_path / "m"))
    assert "another run has fetched" in fetch(partial, tmp_path / "m", "org/tiny", "step1")


def test_a_lock_without_small_files_takes_those_of_its_commit(hub, tmp_path):
    """As locks were before they pinned them; what is kept counts by its own record then."""
    commit = hub.commits["org/tiny@step1"]
    weights = {"pytorch_model.bin": hub.listed[commit]["pytorch_model.bin"]}
    old = replace(hub, listed={commit: weights})
    fetch(old, tmp_path / "m", "org/tiny", "step1")
    assert "another run has fetched" in fetch(old, tmp_path / "m", "org/tiny", "step1")
    assert "another run has fetched" in fetch(hub, tmp_path / "m", "org/tiny", "step1")
    changed(tmp_path / "m" / "config.json")
    assert "config.json in" in run(old, tmp_path / "m", "org/tiny", "step1", None).stderr


def test_a_repository_without_a_tokenizer_asks_for_the_key(hub, tmp_path):
    message = refusal(hub, tmp_path / "m", "org/bare", "global_step10")
    assert "has no tokenizer" in message
    assert "`tokenizer`" in message


def test_a_revision_without_weights_is_refused(hub, tmp_path):
    message = refusal(hub, tmp_path / "m", "org/tiny", "empty")
    assert "lock.yaml calls it 'no weights'" in message


def test_a_folder_without_a_configuration_is_refused(hub, tmp_path):
    pinned = hub.commits["org/tiny@main"]
    files = hub.listed[pinned]
    nested = {f"weights/{name}": file for name, file in files.items()}
    elsewhere = replace(hub, listed={pinned: nested})
    message = refusal(elsewhere, tmp_path / "m", "org/tiny", "main", subfolder="weights")
    assert "has no weights/config.json" in message


def test_a_contradiction_of_the_entry_is_found_before_the_weights_are_asked_for(hub, tmp_path):
    proxy = Proxy(hub.endpoint)
    with proxied(proxy) as endpoint:
        message = refusal(hub, tmp_path / "m", "org/tiny", "main", layers=24, endpoint=endpoint)
    assert re.search(r"`layers`.* says 2 .* says 24", message)
    assert "config.json" in proxy.asked
    assert "model.safetensors" not in proxy.asked


def test_a_gated_model_without_a_token_is_refused(hub, tmp_path):
    proxy = Proxy(hub.endpoint, token="secret")
    with proxied(proxy) as endpoint:
        message = refusal(hub, tmp_path / "m", "org/tiny", "main", endpoint=endpoint)
    assert "is gated" in message
    assert "config.json" not in proxy.asked, "a gate does not open by knocking"
    assert "HF_TOKEN" in message
    assert "`models`" in message


def test_a_gated_model_is_refused_to_a_token_that_was_not_admitted(hub, tmp_path):
    with proxied(Proxy(hub.endpoint, token="secret")) as endpoint:
        message = refusal(
            hub, tmp_path / "m", "org/tiny", "main", {"HF_TOKEN": "other"}, endpoint=endpoint
        )
    assert "accept its licence" in message
    assert "other" not in message


def test_a_gated_model_is_fetched_with_the_token(hub, tmp_path):
    with proxied(Proxy(hub.endpoint, token="secret")) as endpoint:
        fetch(hub, tmp_path / "m", "org/tiny", "main", {"HF_TOKEN": "secret"}, endpoint=endpoint)
    assert (tmp_path / "m" / "model.safetensors").exists()


def test_an_unreachable_hub_is_named(hub, tmp_path):
    endpoint = f"http://127.0.0.1:{free_port()}"
    message = refusal(hub, tmp_path / "m", "org/tiny", "main", endpoint=endpoint)
    assert f"{endpoint} cannot be reached" in message
    assert "HF_ENDPOINT" in message
