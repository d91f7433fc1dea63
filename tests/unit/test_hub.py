"""A Hub on loopback: what a plan asks of it, and what comes of a download."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

import mirrors
from hub_fetching import LAYERS, WIDTH, ask, environment, resolved, save_model
from hub_server import HubRepository, Proxy, free_port, proxied, served
from shape_of_learning.checkpoints.lock import MAIN, LockedRevision, Place
from shape_of_learning.checkpoints.record import read_record
from tiny_models import save_tokenizer

BIN, WHOLE = "pytorch_model.bin", "model.safetensors"
TOKENIZER = ["tokenizer.json", "tokenizer_config.json"]
SHAPE = {"role": "decoder", "layers": LAYERS, "hidden_size": WIDTH, "last_hidden_size": WIDTH}


@pytest.fixture(scope="module")
def hub(tmp_path_factory, hub_program) -> Iterator[SimpleNamespace]:
    """`org/whole` has pickled weights, `org/both` both formats in a folder, `org/large` shards."""
    root, sources = tmp_path_factory.mktemp("hub"), tmp_path_factory.mktemp("sources")
    forms = {"whole": "bin", "both": "both", "large": "shards", "bare": "bin"}
    repositories = {}
    for seed, (name, form) in enumerate(forms.items()):
        folder = sources / name
        inner = folder / "deep/er" if name == "both" else folder
        save_model(inner, seed=seed, form=form)
        if name != "bare":
            save_tokenizer(inner)
        (folder / "notes.txt").write_text("not needed")
        repositories[name] = HubRepository(root, f"org/{name}")
        large = [p for p in folder.rglob("*") if p.suffix in (".bin", ".safetensors")]
        large = tuple(f"{path.relative_to(folder)}" for path in large)
        repositories[name].commit(MAIN, folder, large=large)
    with served(root, hub_program) as endpoint:
        yield SimpleNamespace(endpoint=endpoint, sources=sources, repositories=repositories)


@pytest.fixture
def pins(hub, tmp_path):
    """Pin a revision as it is now."""

    def pin(*place: str) -> dict:
        revision, _ = resolved(hub.endpoint, tmp_path / "asking", *place)
        assert LockedRevision(**revision).place == Place(*place)
        return revision

    return pin


def fetch(endpoint: str, folder: Path, weights: dict, *, shape=SHAPE, tokenizer=None, **settings):
    """The folder, or the sentence that refuses."""
    job = {"weights": weights, "tokenizer": tokenizer, "shape": shape}
    output = folder / "out/main"
    answer = ask(endpoint, folder, "fetch", {**job, "output": str(output)}, **settings)
    if isinstance(answer, str):
        assert not output.exists(), "something is under the final name"
        assert answer.startswith("model `tiny`: ")
        return answer
    assert sorted(path.name for path in output.parent.iterdir()) == [".main.lock", "main"]
    return output


def assert_holds(folder: Path, source: Path, names=("config.json", BIN, *TOKENIZER)) -> None:
    assert sorted(path.name for path in folder.iterdir()) == sorted([*names, "checkpoint.json"])
    for name in names:
        assert (folder / name).read_bytes() == (source / name).read_bytes()
    assert sorted(read_record(folder)["files"]) == sorted(names)


def test_what_is_needed_of_a_commit_is_resolved_and_fetched(hub, pins, tmp_path):
    weights = pins("org/whole", "main")
    folder = fetch(hub.endpoint, tmp_path, weights)
    assert_holds(folder, hub.sources / "whole")
    record = read_record(folder)
    assert (record["repository"], record["commit"]) == ("org/whole", weights["commit"])
    # Of both formats safetensors are taken; a subfolder has all of its own.
    weights = pins("org/both", "main", "deep/er")
    assert (list(weights["files"]), list(weights["other_format"])) == ([WHOLE], [BIN])
    folder = fetch(hub.endpoint, tmp_path / "both", weights)
    assert_holds(folder, hub.sources / "both/deep/er", ["config.json", WHOLE, *TOKENIZER])


def test_shards_and_a_tokenizer_from_elsewhere(hub, pins, tmp_path):
    weights, tokenizer = pins("org/large", "main"), pins("org/whole", "main")
    names = sorted(path.name for path in (hub.sources / "large").glob("*.safetensors"))
    assert sorted(weights["files"]) == names
    folder = fetch(hub.endpoint, tmp_path, weights, tokenizer=tokenizer)
    index = "model.safetensors.index.json"
    assert_holds(folder, hub.sources / "large", ["config.json", index, *names, *TOKENIZER])
    assert read_record(folder)["tokenizer"]["repository"] == "org/whole"
    bare = fetch(hub.endpoint, tmp_path / "bare", pins("org/bare", "main"))
    assert "has no tokenizer" in bare


def test_a_branch_that_moves_changes_nothing_that_is_pinned(hub, pins, tmp_path):
    repository = hub.repositories["bare"]
    repository.commit("moving", hub.sources / "whole", large=(BIN,))
    weights = pins("org/bare", "moving")
    repository.commit("moving", hub.sources / "bare", large=(BIN,))
    folder = fetch(hub.endpoint, tmp_path, weights)
    assert_holds(folder, hub.sources / "whole")
    assert pins("org/bare", "moving")["commit"] != weights["commit"]


def test_what_is_missing_is_listed_as_missing_but_not_if_nothing_is_there(hub, tmp_path):
    revision, mains = resolved(hub.endpoint, tmp_path, "org/whole", "step7", mains=["org/whole"])
    assert (revision["problem"], revision["commit"], revision["files"]) == ("missing", "", {})
    revision, mains = resolved(hub.endpoint, tmp_path, "org/whole", "main", mains=["org/none"])
    assert (revision["problem"], mains["org/none"]["problem"]) == ("", "missing")
    sentence = resolved(hub.endpoint, tmp_path, "org/none", "main")
    assert "model `tiny`: the Hub has no `org/none`" in sentence
    assert "set HF_TOKEN" in sentence
    empty, _ = resolved(hub.endpoint, tmp_path, "org/whole", "main", "elsewhere")
    assert empty["problem"] == "no weights"
    assert "because the Hub could not be reached" in fetch(hub.endpoint, tmp_path, None)


def test_a_gate_is_for_those_whose_token_it_opens_to(hub, pins, tmp_path):
    weights = pins("org/whole", "main")
    with proxied(Proxy(hub.endpoint, token="hf_right")) as gate:
        for token in ("", "hf_other"):
            sentence = fetch(gate, tmp_path, weights, HF_TOKEN=token)
            assert "is gated; accept its licence at " in sentence
        folder = fetch(gate, tmp_path, weights, HF_TOKEN="hf_right")
    assert_holds(folder, hub.sources / "whole")


def test_changed_bytes_are_refused_and_asked_for_again(hub, pins, tmp_path):
    weights = pins("org/whole", "main")
    for name in (BIN, "tokenizer.json"):
        with proxied(Proxy(hub.endpoint, damaged=name)) as endpoint:
            sentence = fetch(endpoint, tmp_path / name, weights)
        assert f"{name} of `org/whole` at revision `main` is not what the lock lists" in sentence
        folder = fetch(hub.endpoint, tmp_path / name, weights)
        assert_holds(folder, hub.sources / "whole")


@pytest.mark.parametrize("name", [BIN, "tokenizer.json"])
def test_bytes_that_are_wrong_once_are_asked_for_again(hub, pins, tmp_path, name):
    weights = pins("org/whole", "main")
    for fault in ({"damaged": name, "damages": 1}, {"resized": {name: 2}}):
        proxy = Proxy(hub.endpoint, **fault)
        with proxied(proxy) as endpoint:
            folder = fetch(endpoint, tmp_path / next(iter(fault)), weights)
        assert_holds(folder, hub.sources / "whole")
        assert proxy.asked.count(name) > 1
    with proxied(Proxy(hub.endpoint, resized={name: 100})) as endpoint:
        sentence = fetch(endpoint, tmp_path / "always", weights)
    assert "came with another size than" in sentence


# The command has no lock: what the Hub lists decides ----------------------------------------------


def find_folder(endpoint: str, folder: Path, model: str = "org/whole", revision: str = MAIN):
    """The folder that a command would measure, or the sentence that refuses."""
    answer = ask(endpoint, folder, "find", {"model": model, "revision": revision})
    return Path(answer) if (folder / "hf").is_dir() and Path(answer).is_dir() else answer


def test_the_command_takes_what_the_hub_lists_and_nothing_else(hub, tmp_path):
    for name in (BIN, "tokenizer.json", "config.json"):
        with proxied(Proxy(hub.endpoint, damaged=name)) as endpoint:
            sentence = find_folder(endpoint, tmp_path / name)
        assert f"{name} of `org/whole` at revision `main` is not what the Hub lists" in sentence
        folder = find_folder(hub.endpoint, tmp_path / name)  # nothing wrong is left in the cache
        assert (folder / name).read_bytes() == (hub.sources / "whole" / name).read_bytes()
    for fault in ({"damaged": BIN, "damages": 1}, {"resized": {BIN: 2}}):
        with proxied(Proxy(hub.endpoint, **fault)) as endpoint:
            folder = find_folder(endpoint, tmp_path / next(iter(fault)))
        assert (folder / BIN).read_bytes() == (hub.sources / "whole" / BIN).read_bytes()


def test_what_is_in_the_cache_is_compared_once_and_again_when_it_changed(hub, tmp_path):
    folder = find_folder(hub.endpoint, tmp_path)
    assert {BIN, "config.json", *TOKENIZER} <= {path.name for path in folder.iterdir()}
    assert not (folder / "notes.txt").exists()
    cached_file = (folder / BIN).resolve()
    content, status = cached_file.read_bytes(), cached_file.stat()
    proxy = Proxy(hub.endpoint)
    with proxied(proxy) as endpoint:
        assert find_folder(endpoint, tmp_path) == folder
    assert BIN not in proxy.asked
    cached_file.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    os.utime(cached_file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert find_folder(hub.endpoint, tmp_path) == folder
    assert (folder / BIN).read_bytes() == content


def test_a_name_or_a_revision_that_is_not_there_is_said(hub, tmp_path):
    assert "no `org/whole` at revision `nonsense`" in find_folder(
        hub.endpoint, tmp_path, revision="nonsense"
    )
    assert "no `org/nothing`" in find_folder(hub.endpoint, tmp_path, "org/nothing")
    assert "has no weights" in find_folder(
        hub.endpoint, tmp_path, "org/both"
    )  # they are in a folder


def test_what_has_come_of_a_download_is_not_asked_for_again(hub, pins, tmp_path):
    weights = pins("org/whole", "main")
    proxy = Proxy(hub.endpoint, cut={BIN: 1})
    with proxied(proxy) as endpoint:
        folder = fetch(endpoint, tmp_path, weights)
    assert_holds(folder, hub.sources / "whole")
    assert proxy.asked.count(BIN) == 2
    # A folder that another run has made is taken if it is whole.
    proxy.asked.clear()
    with proxied(proxy) as endpoint:
        fetch(endpoint, tmp_path, weights)
        assert proxy.asked == []
        (folder / "added_tokens.json").write_text("{}")
        fetch(endpoint, tmp_path, weights)
        assert BIN in proxy.asked
    assert_holds(folder, hub.sources / "whole")


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_fails_for_a_while_is_asked_again(hub, pins, tmp_path, status):
    proxy = Proxy(hub.endpoint, failing={"refs": 2, BIN: 2}, status=status)
    with proxied(proxy) as endpoint:
        weights, _ = resolved(endpoint, tmp_path, "org/whole", "main")
        fetch(endpoint, tmp_path, weights)
        assert proxy.asked.count("refs") == 3
        proxy.failing["refs"] = 100
        sentence = resolved(endpoint, tmp_path, "org/whole", "main")
    assert f"answered {status}" in sentence
    assert proxy.asked.count("refs") == 3 + 4


def test_a_refused_connection_is_tried_again_and_then_said(hub, pins, tmp_path):
    weights, port = pins("org/whole", "main"), free_port()
    with ThreadPoolExecutor() as pool:  # who asks first finds nobody
        late = pool.submit(fetch, f"http://127.0.0.1:{port}", tmp_path, weights)
        time.sleep(2)
        with proxied(Proxy(hub.endpoint), port):
            assert_holds(late.result(60), hub.sources / "whole")
    nowhere = f"http://127.0.0.1:{free_port()}"
    sentence = resolved(nowhere, tmp_path, "org/whole", "main")
    assert f"{nowhere} cannot be reached for `org/whole`" in sentence


def test_without_a_network_all_comes_from_the_cache_or_is_said(hub, pins, tmp_path):
    weights = pins("org/whole", "main")
    sentence = fetch("http://127.0.0.1:9", tmp_path, weights, HF_HUB_OFFLINE="1")
    assert "HF_HUB_OFFLINE forbids to ask for it" in sentence
    variables = environment(hub.endpoint, tmp_path)
    download = "import huggingface_hub as h; h.snapshot_download('org/whole')"
    subprocess.run([sys.executable, "-c", download], env={**os.environ, **variables}, check=True)
    small = {**weights["small_files"], "config.json": f"git:{0:040}"}
    sentence = fetch(
        "http://127.0.0.1:9", tmp_path, {**weights, "small_files": small}, HF_HUB_OFFLINE="1"
    )
    assert "config.json of `org/whole` at revision `main` is not what the lock lists" in sentence
    # What was refused is still in the cache, since it could not come again.
    folder = fetch("http://127.0.0.1:9", tmp_path, weights, HF_HUB_OFFLINE="1")
    assert_holds(folder, hub.sources / "whole")


def test_a_login_page_is_no_hub(tmp_path):
    with mirrors.served(mirrors.Mirror(b"<html>Sign in</html>")) as page:
        address = page.rpartition("/")[0]
        sentence = resolved(address, tmp_path, "org/whole", "main")
    assert f"{address} cannot be reached for `org/whole` at revision `main` (" in sentence
