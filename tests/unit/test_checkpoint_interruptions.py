"""Downloads that are killed, torn or out of space, and the run after that."""

import random
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hub_fetching import (
    FILES,
    LARGE_WIDTH,
    TOKENIZER,
    WEIGHTS,
    Hub,
    assert_same_files,
    command,
    environment,
    fetch,
    gathering,
    names,
    refusal,
    shards,
    size,
    small_disk,
    whole_and_large,
)
from hub_server import Proxy, proxied


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, hub_program: Path) -> Iterator[Hub]:
    with whole_and_large(tmp_path_factory.mktemp("hub"), hub_program) as running:
        yield running


def fill(disk: Path) -> None:
    with (disk / "filler").open("wb", buffering=0) as filler:
        while True:
            try:
                filler.write(b"." * 4096)
            except OSError:  # full
                return


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_what_is_complete_when_a_run_is_ended_is_not_downloaded_again(hub, tmp_path, number):
    last = shards(hub)[-1]
    proxy = Proxy(hub.endpoint, stalled=last)
    output = tmp_path / "out" / "main"
    wide = {"hidden_size": LARGE_WIDTH, "log": tmp_path / "log"}
    with proxied(proxy) as endpoint:
        arguments = command(hub, output, "org/large", "main", **wide)
        with subprocess.Popen(arguments, env=environment(endpoint, tmp_path)) as ended:
            assert proxy.reached.wait(60)
            ended.send_signal(number)
            assert ended.wait(30) in (-number, 128 + number), "the download is not waited for"
        assert not output.exists()
        proxy.stalled = ""
        proxy.requests.clear()
        subprocess.run(arguments, env=environment(endpoint, tmp_path), check=True)
    assert set(proxy.asked) & {*shards(hub), *TOKENIZER, "config.json"} == {last}
    wanted = ["config.json", "model.safetensors.index.json", *shards(hub), *TOKENIZER]
    assert_same_files(output, hub.sources / "large", wanted)
    assert names(output.parent) == ["main", "main.lock.yaml"]


def test_a_complete_file_that_was_changed_since_is_downloaded_anew(hub, tmp_path):
    folder = gathering(tmp_path / "m") / hub.commits["org/whole"]
    folder.mkdir(parents=True)
    (folder / WEIGHTS).write_bytes(b"?" * size(hub))
    fetch(hub, tmp_path / "m", "org/whole", "main")
    assert_same_files(tmp_path / "m", hub.sources / "whole", FILES)


def test_a_disk_too_small_is_one_sentence_before_any_weights_are_asked_for(hub, tmp_path):
    proxy = Proxy(hub.endpoint)
    with small_disk(tmp_path / "small", "1m") as small, proxied(proxy) as endpoint:
        message = refusal(
            *(hub, small / "m", "org/large", "main", {"HF_HOME": str(tmp_path / "hf")}),
            hidden_size=LARGE_WIDTH,
            endpoint=endpoint,
        )
    missing = ["model.safetensors.index.json", *shards(hub), *TOKENIZER]
    needed = sum((hub.sources / "large" / name).stat().st_size for name in missing)
    assert f"needs {needed / 1e6:.1f} MB, but " in message
    assert "MB are free there" in message
    assert not set(shards(hub)) & set(proxy.asked)


def test_a_disk_that_fills_meanwhile_is_one_sentence_and_costs_no_complete_file(hub, tmp_path):
    # In one piece, and larger than the buffers between the Hub and the disk.
    shard = max(shards(hub), key=lambda name: (hub.sources / "large" / name).stat().st_size)
    proxy = Proxy(hub.endpoint, stalled=shard)
    wide = {"hidden_size": LARGE_WIDTH, "log": tmp_path / "log"}
    settings = {"HF_HOME": str(tmp_path / "hf")}
    with small_disk(tmp_path / "small", "8m") as small, proxied(proxy) as endpoint:
        output = small / "m"
        arguments = command(hub, output, "org/large", "main", **wide)
        with subprocess.Popen(
            arguments,
            env=environment(endpoint, small, **settings),
            stderr=subprocess.PIPE,
            text=True,
        ) as running:
            assert proxy.reached.wait(60)
            fill(small)
            proxy.released.set()
            lines = running.stderr.read().strip().splitlines()
        assert running.returncode == 1
        assert len(lines) == 1
        assert "the disk is full" in lines[0]
        assert names(small) == [".m.download", "filler", "m.lock.yaml"]
        (small / "filler").unlink()
        proxy.stalled = ""
        proxy.requests.clear()
        subprocess.run(arguments, env=environment(endpoint, small, **settings), check=True)
        assert "config.json" not in proxy.asked
        assert (output / shard).read_bytes() == (hub.sources / "large" / shard).read_bytes()


def test_twenty_kills_at_random_moments_end_with_the_right_bytes(hub, tmp_path):
    published = {path.name: path.read_bytes() for path in (hub.sources / "large").iterdir()}
    total = sum(map(len, published.values()))
    proxy = Proxy(hub.endpoint, throttled=total / 2)  # two seconds for all files
    output = tmp_path / "out" / "main"
    wide = {"hidden_size": LARGE_WIDTH, "log": tmp_path / "log"}
    moments = random.Random(20)

    def assert_whole(folder: Path) -> None:
        for file in folder.rglob("*"):
            if file.is_file():
                whole = file.read_bytes() == published[file.name]
                assert whole, f"{file} has its name but is not whole"

    wanted = ["config.json", "model.safetensors.index.json", *shards(hub), *TOKENIZER]
    kills = 0
    with proxied(proxy) as endpoint:
        settings = environment(endpoint, tmp_path)
        while kills < 20:
            arguments = command(hub, output, "org/large", "main", **wide)
            with subprocess.Popen(arguments, env=settings) as running:
                try:
                    # The first byte comes after about 0.7 s: some kills are earlier, some near the end.
                    running.wait(moments.uniform(0.3, 2.0))
                except subprocess.TimeoutExpired:
                    running.send_signal(signal.SIGKILL)
            assert running.returncode in (0, -signal.SIGKILL)
            kills += running.returncode == -signal.SIGKILL
            assert_whole(gathering(output))
            if output.exists():  # complete before the kill: from the beginning
                assert_same_files(output, hub.sources / "large", wanted)
                shutil.rmtree(output)
        proxy.throttled = 0
        fetch(hub, output, "org/large", "main", hidden_size=LARGE_WIDTH, endpoint=endpoint)
    assert_same_files(output, hub.sources / "large", wanted)
    assert names(output.parent) == ["log.json", "main"]
