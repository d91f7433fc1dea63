import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import transformers

from hub_server import Front, HubRepository, free_port, in_front, served
from tiny_models import save_tokenizer

SCRIPT = Path(__file__).parents[2] / "workflow" / "scripts" / "fetch_checkpoint.py"
LAYERS, WIDTH = 2, 16
TOKENIZER = ["tokenizer.json", "tokenizer_config.json"]
# What repositories hold beside what is needed; none of it may be downloaded, least of all code.
UNWANTED = [
    *("README.md", "flax_model.msgpack", "tf_model.h5", "model.onnx", "modeling_tiny.py"),
    *("generation_config.json", "model.fp16.safetensors", "training_args.bin"),
]


@dataclass(frozen=True)
class Hub:
    """A running Hub, what was put there, and the commit of each revision."""

    endpoint: str
    sources: Path
    commits: dict[str, str]


def save_model(folder: Path, *, seed: int, form: str) -> Path:
    torch.manual_seed(seed)
    model = transformers.GPTNeoXForCausalLM(
        transformers.GPTNeoXConfig(
            vocab_size=300,
            hidden_size=WIDTH,
            num_hidden_layers=LAYERS,
            num_attention_heads=2,
            intermediate_size=32,
        )
    )
    if form in ("safetensors", "both"):
        model.save_pretrained(folder)
    if form == "shards":
        model.save_pretrained(folder, max_shard_size="15KB")
    if form in ("bin", "both"):
        model.config.save_pretrained(folder)
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
    return folder


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, hub_program: Path) -> Iterator[Hub]:
    root, sources = tmp_path_factory.mktemp("hub"), tmp_path_factory.mktemp("sources")
    tiny, bare = HubRepository(root, "org/tiny"), HubRepository(root, "org/bare")
    commits = {}

    def publish(repository: HubRepository, branch: str, folder: Path, *large: str) -> None:
        commits[f"{repository.name}@{branch}"] = repository.commit(branch, folder, large=large)

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
        yield Hub(endpoint, sources, commits)


def command(output: Path, repository: str, revision: str, **more: object) -> list[str]:
    arguments = {
        "model": "tiny",
        "repository": repository,
        "revision": revision,
        "layers": LAYERS,
        "hidden-size": WIDTH,
        "role": "decoder",
        "output": output,
    } | {name.replace("_", "-"): value for name, value in more.items()}
    return [sys.executable, str(SCRIPT), *(f"--{k}={v}" for k, v in arguments.items())]


def environment(endpoint: str, tmp_path: Path, **more: str) -> dict[str, str]:
    own = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
    settings = {
        "HF_ENDPOINT": endpoint,
        "HF_HOME": str(tmp_path / "hf"),
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "NO_PROXY": "127.0.0.1",
        "PYTHONPATH": str(SCRIPT.parents[1]),
    }
    return own | settings | more


def fetch(
    endpoint: str, output: Path, repository: str, revision: str, token: str = "", **more: object
) -> None:
    done = subprocess.run(
        command(output, repository, revision, **more),
        env=environment(endpoint, output.parent, **({"HF_TOKEN": token} if token else {})),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def refusal(
    endpoint: str,
    output: Path,
    repository: str,
    revision: str,
    settings: dict[str, str] | None = None,
    **more: object,
) -> str:
    """The one line that a refused fetch prints."""
    done = subprocess.run(
        command(output, repository, revision, **more),
        env=environment(endpoint, output.parent, **(settings or {})),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert not output.exists(), "something is under the final name"
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("ERROR: model `tiny`: ")
    return lines[0]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def assert_same_files(fetched: Path, source: Path, expected: list[str]) -> None:
    assert names(fetched) == sorted([*expected, "checkpoint.json"])
    assert {n: (fetched / n).read_bytes() for n in expected} == {
        n: (source / n).read_bytes() for n in expected
    }


def test_safetensors_are_preferred_and_nothing_else_is_downloaded(hub, tmp_path):
    fetch(hub.endpoint, tmp_path / "main", "org/tiny", "main")
    wanted = ["config.json", "model.safetensors", *TOKENIZER]
    assert_same_files(tmp_path / "main", hub.sources / "both", wanted)


def test_pickled_weights_are_taken_where_there_are_no_safetensors(hub, tmp_path):
    fetch(hub.endpoint, tmp_path / "step1", "org/tiny", "step1")
    wanted = ["config.json", "pytorch_model.bin", *TOKENIZER]
    assert_same_files(tmp_path / "step1", hub.sources / "step1", wanted)


def test_the_index_decides_which_shards_are_downloaded(hub, tmp_path):
    fetch(hub.endpoint, tmp_path / "shards", "org/tiny", "shards")
    index = "model.safetensors.index.json"
    source = hub.sources / "shards"
    shards = sorted(set(json.loads((source / index).read_text())["weight_map"].values()))
    assert len(shards) > 1
    assert_same_files(tmp_path / "shards", source, ["config.json", index, *shards, *TOKENIZER])


@pytest.mark.parametrize("revision", ["main", "step1", "shards"])
def test_what_is_fetched_loads_as_what_was_published(hub, tmp_path, revision):
    fetch(hub.endpoint, tmp_path / "fetched", "org/tiny", revision)
    source = hub.sources / {"main": "both"}.get(revision, revision)
    fetched, published = (
        transformers.AutoModel.from_pretrained(folder).state_dict()
        for folder in (tmp_path / "fetched", source)
    )
    assert fetched.keys() == published.keys()
    assert all(torch.equal(fetched[name], published[name]) for name in published)
    assert transformers.AutoTokenizer.from_pretrained(tmp_path / "fetched")("text").input_ids


def test_the_record_says_which_commit_the_files_come_from(hub, tmp_path):
    fetch(hub.endpoint, tmp_path / "step1", "org/tiny", "step1")
    record = json.loads((tmp_path / "step1" / "checkpoint.json").read_text())
    assert (record["repository"], record["revision"]) == ("org/tiny", "step1")
    assert record["commit"] == record["tokenizer"]["commit"] == hub.commits["org/tiny@step1"]
    weights = hub.sources / "step1" / "pytorch_model.bin"
    assert record["files"]["pytorch_model.bin"] == {
        "bytes": weights.stat().st_size,
        "sha256": hashlib.sha256(weights.read_bytes()).hexdigest(),
    }
    assert names(tmp_path / "step1") == sorted([*record["files"], "checkpoint.json"])


def test_a_commit_is_a_revision_too(hub, tmp_path):
    fetch(hub.endpoint, tmp_path / "pinned", "org/tiny", hub.commits["org/tiny@step1"])
    assert (tmp_path / "pinned" / "pytorch_model.bin").read_bytes() == (
        hub.sources / "step1" / "pytorch_model.bin"
    ).read_bytes()


def test_a_tokenizer_may_come_from_another_repository(hub, tmp_path):
    fetch(
        hub.endpoint, tmp_path / "m", "org/bare", "global_step10", tokenizer_repository="org/tiny"
    )
    record = json.loads((tmp_path / "m" / "checkpoint.json").read_text())
    assert record["commit"] == hub.commits["org/bare@global_step10"]
    assert record["tokenizer"]["commit"] == hub.commits["org/tiny@main"]
    assert set(TOKENIZER) < set(names(tmp_path / "m"))


def test_a_checkpoint_in_a_subfolder_takes_the_tokenizer_of_its_repository(hub, tmp_path):
    fetch(hub.endpoint, tmp_path / "7", "org/tiny", "nested", subfolder="checkpoints/7")
    assert names(tmp_path / "7") == sorted(
        ["checkpoint.json", "config.json", "model.safetensors", *TOKENIZER]
    )


def test_nothing_is_left_beside_a_complete_checkpoint(hub, tmp_path):
    fetch(hub.endpoint, tmp_path / "out" / "main", "org/tiny", "main")
    assert names(tmp_path / "out") == ["main"]


def test_a_missing_revision_is_refused_with_those_that_exist(hub, tmp_path):
    message = refusal(hub.endpoint, tmp_path / "m", "org/tiny", "step2")
    assert "`org/tiny` has no revision `step2`" in message
    assert "`revision`" in message
    assert "`step1`" in message


def test_a_missing_repository_is_refused(hub, tmp_path):
    message = refusal(hub.endpoint, tmp_path / "m", "org/none", "main")
    assert "no repository `org/none`" in message
    assert "`repository`" in message


def test_a_missing_tokenizer_repository_names_the_key_tokenizer(hub, tmp_path):
    message = refusal(
        hub.endpoint, tmp_path / "m", "org/bare", "global_step10", tokenizer_repository="org/none"
    )
    assert "no repository `org/none`" in message
    assert "`tokenizer`" in message


def test_a_repository_without_a_tokenizer_asks_for_the_key(hub, tmp_path):
    message = refusal(hub.endpoint, tmp_path / "m", "org/bare", "global_step10")
    assert "has no tokenizer" in message
    assert "`tokenizer`" in message


def test_a_revision_without_weights_is_refused(hub, tmp_path):
    message = refusal(hub.endpoint, tmp_path / "m", "org/tiny", "empty")
    assert "neither model.safetensors nor pytorch_model.bin" in message


def test_a_folder_without_a_configuration_is_refused(hub, tmp_path):
    message = refusal(hub.endpoint, tmp_path / "m", "org/tiny", "main", subfolder="checkpoints")
    assert "has no checkpoints/config.json" in message


def test_a_contradiction_of_the_entry_is_found_before_the_weights_are_asked_for(hub, tmp_path):
    front = Front(hub.endpoint)
    with in_front(front) as endpoint:
        message = refusal(endpoint, tmp_path / "m", "org/tiny", "main", layers=24)
    assert re.search(r"`layers`.* says 2 .* says 24", message)
    assert "config.json" in front.asked
    assert "model.safetensors" not in front.asked


def test_a_gated_model_without_a_token_is_refused(hub, tmp_path):
    with in_front(Front(hub.endpoint, token="secret")) as endpoint:
        message = refusal(endpoint, tmp_path / "m", "org/tiny", "main")
    assert "is gated" in message
    assert "HF_TOKEN" in message
    assert "`models`" in message


def test_a_gated_model_is_refused_to_a_token_that_was_not_admitted(hub, tmp_path):
    with in_front(Front(hub.endpoint, token="secret")) as endpoint:
        message = refusal(endpoint, tmp_path / "m", "org/tiny", "main", {"HF_TOKEN": "other"})
    assert "accept its licence" in message
    assert "other" not in message


def test_a_gated_model_is_fetched_with_the_token(hub, tmp_path):
    with in_front(Front(hub.endpoint, token="secret")) as endpoint:
        fetch(endpoint, tmp_path / "m", "org/tiny", "main", token="secret")
    assert (tmp_path / "m" / "model.safetensors").exists()


def test_an_unreachable_hub_is_named(tmp_path):
    endpoint = f"http://127.0.0.1:{free_port()}"
    message = refusal(endpoint, tmp_path / "m", "org/tiny", "main")
    assert f"{endpoint} cannot be reached" in message
    assert "HF_ENDPOINT" in message


def test_offline_mode_is_honoured_and_named(hub, tmp_path):
    front = Front(hub.endpoint)
    with in_front(front) as endpoint:
        message = refusal(endpoint, tmp_path / "m", "org/tiny", "main", {"HF_HUB_OFFLINE": "1"})
    assert "HF_HUB_OFFLINE" in message
    assert front.asked == []


def test_a_file_that_arrives_damaged_is_refused_and_downloaded_anew(hub, tmp_path):
    with in_front(Front(hub.endpoint, damaged="pytorch_model.bin")) as endpoint:
        message = refusal(endpoint, tmp_path / "m", "org/tiny", "step1")
    assert "pytorch_model.bin" in message
    assert "arrived damaged" in message
    fetch(hub.endpoint, tmp_path / "m", "org/tiny", "step1")
    assert (tmp_path / "m" / "pytorch_model.bin").read_bytes() == (
        hub.sources / "step1" / "pytorch_model.bin"
    ).read_bytes()


def test_a_killed_download_is_resumed_and_ends_with_the_right_bytes(hub, tmp_path):
    front = Front(hub.endpoint, stalled="pytorch_model.bin")
    output = tmp_path / "out" / "step1"
    with in_front(front) as endpoint:
        with subprocess.Popen(
            command(output, "org/tiny", "step1"),
            env=environment(endpoint, tmp_path),
            stderr=subprocess.PIPE,
        ) as killed:
            assert front.reached.wait(60), killed.stderr.read()
            killed.send_signal(signal.SIGKILL)
        assert killed.returncode == -signal.SIGKILL
        assert not output.exists()
        front.stalled = ""
        front.asked.clear()
        fetch(endpoint, output, "org/tiny", "step1")
    wanted = ["config.json", "pytorch_model.bin", *TOKENIZER]
    assert_same_files(output, hub.sources / "step1", wanted)
    assert "config.json" not in front.asked, "a complete file was downloaded twice"
    assert names(output.parent) == ["step1"]
