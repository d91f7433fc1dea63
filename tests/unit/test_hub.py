"""Revisions of a Hub on loopback are resolved for a plan, downloaded and verified."""

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
from hub_fetching import LAYERS, WIDTH, ask_hub, make_environment, resolve_on_hub, save_model
from hub_server import HubRepository, Proxy, find_free_port, serve_hub, serve_proxy
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
    with serve_hub(root, hub_program) as endpoint:
        yield SimpleNamespace(endpoint=endpoint, sources=sources, repositories=repositories)


@pytest.fixture
def pin(hub, tmp_path):
    """A function that pins a revision as it is now."""

    def pin_revision(*place: str) -> dict:
        revision, _ = resolve_on_hub(hub.endpoint, tmp_path / "asking", *place)
        assert LockedRevision(**revision).place == Place(*place)
        return revision

    return pin_revision


def fetch(endpoint: str, folder: Path, weights: dict, *, shape=SHAPE, tokenizer=None, **settings):
    """Download a revision; return the folder, or the sentence that refuses."""
    job = {"weights": weights, "tokenizer": tokenizer, "shape": shape}
    output = folder / "out/main"
    answer = ask_hub(endpoint, folder, "fetch", {**job, "output": str(output)}, **settings)
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


def test_the_needed_files_of_a_commit_are_resolved_and_fetched(hub, pin, tmp_path):
    weights = pin("org/whole", "main")
    folder = fetch(hub.endpoint, tmp_path, weights)
    assert_holds(folder, hub.sources / "whole")
    record = read_record(folder)
    assert (record["repository"], record["commit"]) == ("org/whole", weights["commit"])
    # If both formats exist, safetensors are taken; a subfolder has its own configuration and tokenizer.
    weights = pin("org/both", "main", "deep/er")
    assert (list(weights["files"]), list(weights["other_format"])) == ([WHOLE], [BIN])
    folder = fetch(hub.endpoint, tmp_path / "both", weights)
    assert_holds(folder, hub.sources / "both/deep/er", ["config.json", WHOLE, *TOKENIZER])


def test_shards_are_fetched_with_a_tokenizer_of_another_repository(hub, pin, tmp_path):
    weights, tokenizer = pin("org/large", "main"), pin("org/whole", "main")
    names = sorted(path.name for path in (hub.sources / "large").glob("*.safetensors"))
    assert sorted(weights["files"]) == names
    folder = fetch(hub.endpoint, tmp_path, weights, tokenizer=tokenizer)
    index = "model.safetensors.index.json"
    assert_holds(folder, hub.sources / "large", ["config.json", index, *names, *TOKENIZER])
    assert read_record(folder)["tokenizer"]["repository"] == "org/whole"
    bare = fetch(hub.endpoint, tmp_path / "bare", pin("org/bare", "main"))
    assert "has no tokenizer" in bare


def test_a_pinned_revision_stays_when_its_branch_moves(hub, pin, tmp_path):
    repository = hub.repositories["bare"]
    repository.commit("moving", hub.sources / "whole", large=(BIN,))
    weights = pin("org/bare", "moving")
    repository.commit("moving", hub.sources / "bare", large=(BIN,))
    folder = fetch(hub.endpoint, tmp_path, weights)
    assert_holds(folder, hub.sources / "whole")
    assert pin("org/bare", "moving")["commit"] != weights["commit"]


def test_a_missing_revision_has_a_problem_and_a_missing_repository_is_refused(hub, tmp_path):
    revision, mains = resolve_on_hub(
        hub.endpoint, tmp_path, "org/whole", "step7", mains=["org/whole"]
    )
    assert (revision["problem"], revision["commit"], revision["files"]) == ("missing", "", {})
    revision, mains = resolve_on_hub(
        hub.endpoint, tmp_path, "org/whole", "main", mains=["org/none"]
    )
    assert (revision["problem"], mains["org/none"]["problem"]) == ("", "missing")
    sentence = resolve_on_hub(hub.endpoint, tmp_path, "org/none", "main")
    assert "model `tiny`: the Hub has no `org/none`" in sentence
    assert "set HF_TOKEN" in sentence
    empty, _ = resolve_on_hub(hub.endpoint, tmp_path, "org/whole", "main", "elsewhere")
    assert empty["problem"] == "no weights"
    assert "because the Hub could not be reached" in fetch(hub.endpoint, tmp_path, None)


def test_a_gated_model_needs_the_right_token(hub, pin, tmp_path):
    weights = pin("org/whole", "main")
    with serve_proxy(Proxy(hub.endpoint, token="hf_right")) as gate:
        for token in ("", "hf_other"):
            sentence = fetch(gate, tmp_path, weights, HF_TOKEN=token)
            assert "is gated; accept its licence at " in sentence
        folder = fetch(gate, tmp_path, weights, HF_TOKEN="hf_right")
    assert_holds(folder, hub.sources / "whole")


def test_changed_bytes_are_refused_and_asked_for_again(hub, pin, tmp_path):
    weights = pin("org/whole", "main")
    for name in (BIN, "tokenizer.json"):
        with serve_proxy(Proxy(hub.endpoint, damaged_file=name)) as endpoint:
            sentence = fetch(endpoint, tmp_path / name, weights)
        assert f"{name} of `org/whole` at revision `main` is not what the lock lists" in sentence
        folder = fetch(hub.endpoint, tmp_path / name, weights)
        assert_holds(folder, hub.sources / "whole")


@pytest.mark.long
@pytest.mark.parametrize("name", [BIN, "tokenizer.json"])
def test_bytes_that_are_wrong_once_are_asked_for_again(hub, pin, tmp_path, name):
    weights = pin("org/whole", "main")
    for fault in ({"damaged_file": name, "damages": 1}, {"surplus": {name: 2}}):
        proxy = Proxy(hub.endpoint, **fault)
        with serve_proxy(proxy) as endpoint:
            folder = fetch(endpoint, tmp_path / next(iter(fault)), weights)
        assert_holds(folder, hub.sources / "whole")
        assert proxy.requests.count(name) > 1
    with serve_proxy(Proxy(hub.endpoint, surplus={name: 100})) as endpoint:
        sentence = fetch(endpoint, tmp_path / "always", weights)
    assert "came with another size than" in sentence


# The command has no lock: what the Hub lists decides ----------------------------------------------


def find_folder(endpoint: str, folder: Path, model: str = "org/whole", revision: str = MAIN):
    """Return the folder that the command would measure, or the sentence that refuses."""
    answer = ask_hub(endpoint, folder, "find", {"model": model, "revision": revision})
    return Path(answer) if (folder / "hf").is_dir() and Path(answer).is_dir() else answer


def test_the_command_takes_only_bytes_that_the_hub_lists(hub, tmp_path):
    for name in (BIN, "tokenizer.json", "config.json"):
        with serve_proxy(Proxy(hub.endpoint, damaged_file=name)) as endpoint:
            sentence = find_folder(endpoint, tmp_path / name)
        assert f"{name} of `org/whole` at revision `main` is not what the Hub lists" in sentence
        folder = find_folder(hub.endpoint, tmp_path / name)  # the damaged file is not in the cache
        assert (folder / name).read_bytes() == (hub.sources / "whole" / name).read_bytes()
    for fault in ({"damaged_file": BIN, "damages": 1}, {"surplus": {BIN: 2}}):
        with serve_proxy(Proxy(hub.endpoint, **fault)) as endpoint:
            folder = find_folder(endpoint, tmp_path / next(iter(fault)))
        assert (folder / BIN).read_bytes() == (hub.sources / "whole" / BIN).read_bytes()


def test_a_file_in_the_cache_is_compared_once_and_again_when_it_changed(hub, tmp_path):
    folder = find_folder(hub.endpoint, tmp_path)
    assert {BIN, "config.json", *TOKENIZER} <= {path.name for path in folder.iterdir()}
    assert not (folder / "notes.txt").exists()
    cached_file = (folder / BIN).resolve()
    content, status = cached_file.read_bytes(), cached_file.stat()
    proxy = Proxy(hub.endpoint)
    with serve_proxy(proxy) as endpoint:
        assert find_folder(endpoint, tmp_path) == folder
    assert BIN not in proxy.requests
    cached_file.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    os.utime(cached_file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert find_folder(hub.endpoint, tmp_path) == folder
    assert (folder / BIN).read_bytes() == content


def test_a_missing_repository_or_revision_is_named(hub, tmp_path):
    assert "no `org/whole` at revision `nonsense`" in find_folder(
        hub.endpoint, tmp_path, revision="nonsense"
    )
    assert "no `org/nothing`" in find_folder(hub.endpoint, tmp_path, "org/nothing")
    # The weights of `org/both` are in a folder.
    assert "has no weights" in find_folder(hub.endpoint, tmp_path, "org/both")


def test_a_broken_download_is_continued_and_a_whole_folder_is_reused(hub, pin, tmp_path):
    weights = pin("org/whole", "main")
    proxy = Proxy(hub.endpoint, cuts={BIN: 1})
    with serve_proxy(proxy) as endpoint:
        folder = fetch(endpoint, tmp_path, weights)
    assert_holds(folder, hub.sources / "whole")
    assert proxy.requests.count(BIN) == 2
    # A folder of another run is reused if it is whole.
    proxy.requests.clear()
    with serve_proxy(proxy) as endpoint:
        fetch(endpoint, tmp_path, weights)
        assert proxy.requests == []
        (folder / "added_tokens.json").write_text("{}")
        fetch(endpoint, tmp_path, weights)
        assert BIN in proxy.requests
    assert_holds(folder, hub.sources / "whole")


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_fails_for_a_while_is_asked_again(hub, pin, tmp_path, status):
    proxy = Proxy(hub.endpoint, failures={"refs": 2, BIN: 2}, status=status)
    with serve_proxy(proxy) as endpoint:
        weights, _ = resolve_on_hub(endpoint, tmp_path, "org/whole", "main")
        fetch(endpoint, tmp_path, weights)
        assert proxy.requests.count("refs") == 3
        proxy.failures["refs"] = 100
        sentence = resolve_on_hub(endpoint, tmp_path, "org/whole", "main")
    assert f"answered {status}" in sentence
    assert proxy.requests.count("refs") == 3 + 4


def test_a_refused_connection_is_retried_and_then_reported(hub, pin, tmp_path):
    weights, port = pin("org/whole", "main"), find_free_port()
    with ThreadPoolExecutor() as pool:  # the first request comes before the server
        late = pool.submit(fetch, f"http://127.0.0.1:{port}", tmp_path, weights)
        time.sleep(2)
        with serve_proxy(Proxy(hub.endpoint), port):
            assert_holds(late.result(60), hub.sources / "whole")
    nowhere = f"http://127.0.0.1:{find_free_port()}"
    sentence = resolve_on_hub(nowhere, tmp_path, "org/whole", "main")
    assert f"{nowhere} cannot be reached for `org/whole`" in sentence


def test_without_a_network_files_come_from_the_cache_or_are_refused(hub, pin, tmp_path):
    weights = pin("org/whole", "main")
    sentence = fetch("http://127.0.0.1:9", tmp_path, weights, HF_HUB_OFFLINE="1")
    assert "HF_HUB_OFFLINE forbids asking for it" in sentence
    variables = make_environment(hub.endpoint, tmp_path)
    download = "import huggingface_hub as h; h.snapshot_download('org/whole')"
    subprocess.run([sys.executable, "-c", download], env={**os.environ, **variables}, check=True)
    small = {**weights["small_files"], "config.json": f"git:{0:040}"}
    sentence = fetch(
        "http://127.0.0.1:9", tmp_path, {**weights, "small_files": small}, HF_HUB_OFFLINE="1"
    )
    assert "config.json of `org/whole` at revision `main` is not what the lock lists" in sentence
    # The refused file stays in the cache, since it could not be downloaded again.
    folder = fetch("http://127.0.0.1:9", tmp_path, weights, HF_HUB_OFFLINE="1")
    assert_holds(folder, hub.sources / "whole")


def test_a_login_page_is_not_taken_for_a_hub(tmp_path):
    with mirrors.serve_mirror(mirrors.Mirror(b"<html>Sign in</html>")) as page:
        address = page.rpartition("/")[0]
        sentence = resolve_on_hub(address, tmp_path, "org/whole", "main")
    assert f"{address} cannot be reached for `org/whole` at revision `main` (" in sentence
