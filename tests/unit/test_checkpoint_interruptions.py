"""Downloads that are killed, torn or out of space, and the run after that."""

import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from shape_of_learning.hub.downloads import PARALLEL_FILES

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


def wait_for_bytes(file: Path, count: int) -> None:
    deadline = time.monotonic() + 30
    while not file.exists() or file.stat().st_size < count:
        assert time.monotonic() < deadline, f"{file} does not grow to {count} bytes"
        time.sleep(0.01)


def test_a_killed_download_goes_on_at_the_byte_where_it_was_torn(hub, tmp_path):
    proxy = Proxy(hub.endpoint, stalled=WEIGHTS)
    output = tmp_path / "out" / "main"
    half = size(hub) // 2
    with proxied(proxy) as endpoint:
        with subprocess.Popen(
            command(output, "org/whole", "main"), env=environment(endpoint, tmp_path)
        ) as killed:
            assert proxy.reached.wait(60)
            wait_for_bytes(gathering(output) / hub.commits["org/whole"] / f"{WEIGHTS}.part", half)
            killed.send_signal(signal.SIGKILL)
        assert not output.exists()
        proxy.stalled = ""
        proxy.requests.clear()
        fetch(hub, output, "org/whole", "main", endpoint=endpoint)
    assert proxy.ranges_of(WEIGHTS) == [f"bytes={half}-"]
    assert proxy.ranges_of("config.json") == [], "a complete file was downloaded twice"
    assert_same_files(output, hub.sources / "whole", FILES)
    assert names(output.parent) == ["main"]


@pytest.mark.parametrize("torn", [100, 10**6], ids=["too short", "too long"])
def test_a_torn_file_with_other_bytes_is_downloaded_anew_in_the_same_run(hub, tmp_path, torn):
    folder = gathering(tmp_path / "m") / hub.commits["org/whole"]
    folder.mkdir(parents=True)
    (folder / f"{WEIGHTS}.part").write_bytes(b"?" * torn)
    proxy = Proxy(hub.endpoint)
    with proxied(proxy) as endpoint:
        fetch(hub, tmp_path / "m", "org/whole", "main", endpoint=endpoint)
    assert proxy.ranges_of(WEIGHTS)[-1] is None
    assert_same_files(tmp_path / "m", hub.sources / "whole", FILES)


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
            endpoint,
            small / "m",
            "org/large",
            "main",
            {"HF_HOME": str(tmp_path / "hf")},
            hidden_size=LARGE_WIDTH,
        )
        assert not list(small.rglob("*.part"))
    missing = [*shards(hub), *TOKENIZER]  # configuration and index are there already
    needed = sum((hub.sources / "large" / name).stat().st_size for name in missing)
    assert f"needs {needed / 1e6:.1f} MB, but " in message
    assert "MB are free there" in message
    assert not set(shards(hub)) & set(proxy.asked)


def test_a_disk_that_fills_meanwhile_is_one_sentence_and_costs_no_bytes(hub, tmp_path):
    # In one piece, and larger than the buffers between the Hub and the disk.
    shard = max(shards(hub), key=lambda name: (hub.sources / "large" / name).stat().st_size)
    proxy = Proxy(hub.endpoint, stalled=shard)
    wide = {"hidden_size": LARGE_WIDTH, "log": tmp_path / "log"}
    settings = {"HF_HOME": str(tmp_path / "hf")}
    with small_disk(tmp_path / "small", "8m") as small, proxied(proxy) as endpoint:
        output = small / "m"
        part = gathering(output) / hub.commits["org/large"] / f"{shard}.part"
        half = (hub.sources / "large" / shard).stat().st_size // 2
        with subprocess.Popen(
            command(output, "org/large", "main", **wide),
            env=environment(endpoint, small, **settings),
            stderr=subprocess.PIPE,
            text=True,
        ) as running:
            assert proxy.reached.wait(60)
            wait_for_bytes(part, half)
            fill(small)
            proxy.released.set()
            lines = running.stderr.read().strip().splitlines()
        assert running.returncode == 1
        assert len(lines) == 1
        assert "model `tiny`: the disk is full" in lines[0]
        assert "what arrived is kept" in lines[0]
        assert not output.exists()
        kept = part.stat().st_size
        (small / "filler").unlink()
        proxy.stalled = ""
        proxy.requests.clear()
        subprocess.run(
            command(output, "org/large", "main", **wide),
            env=environment(endpoint, small, **settings),
            check=True,
        )
        assert kept >= half
        assert proxy.ranges_of(shard) == [f"bytes={kept}-"]
        assert (output / shard).read_bytes() == (hub.sources / "large" / shard).read_bytes()


def test_twenty_kills_at_random_moments_end_with_the_right_bytes(hub, tmp_path):
    published = {path.name: path.read_bytes() for path in (hub.sources / "large").iterdir()}
    total = sum(map(len, published.values()))
    # Four files at a time: two to three seconds for all of them.
    proxy = Proxy(hub.endpoint, throttled=total / PARALLEL_FILES / 2)
    output = tmp_path / "out" / "main"
    wide = {"hidden_size": LARGE_WIDTH, "log": tmp_path / "log"}
    moments = random.Random(20)

    def assert_whole(folder: Path) -> None:
        for file in folder.rglob("*"):
            if file.is_file() and file.suffix != ".part":
                whole = file.read_bytes() == published[file.name]
                assert whole, f"{file} has its name but is not whole"

    wanted = ["config.json", "model.safetensors.index.json", *shards(hub), *TOKENIZER]
    kills = 0
    with proxied(proxy) as endpoint:
        settings = environment(endpoint, tmp_path)
        while kills < 20:
            arguments = command(output, "org/large", "main", **wide)
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
        assert any(request.range for request in proxy.requests), "no kill has torn a file"
        proxy.throttled = 0
        fetch(hub, output, "org/large", "main", hidden_size=LARGE_WIDTH, endpoint=endpoint)
    assert_same_files(output, hub.sources / "large", wanted)
    assert names(output.parent) == ["main"]
