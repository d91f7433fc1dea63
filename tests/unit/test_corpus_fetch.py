"""A corpus is downloaded whole and verified, or refused."""

import bz2
import gzip
import hashlib
import io
import logging
import lzma
import re
import socket
import time
import zipfile
from base64 import b64encode
from pathlib import Path

import numpy as np
import pytest

from mirrors import Mirror, serve_mirror
from shape_of_learning.corpus import fetch as module
from shape_of_learning.corpus.fetch import fetch
from shape_of_learning.corpus.job import SourceJob
from shape_of_learning.errors import InputError

# Incompressible, so that the archive is about as long as its content.
CONTENT = np.random.default_rng(0).bytes(300_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
COMPRESSIONS = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}


def make_zip(**members: bytes) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return archive.getvalue()


COMPRESSIONS[".zip"] = lambda content: make_zip(enwik8=content)


def fetch_enwik8(output: Path, *urls: object, sha256: str | None = SHA256, **facts: str) -> None:
    fetch(SourceJob("enwik8", sha256=sha256, **facts), [str(url) for url in urls], output)


def find_dead_url() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{listener.getsockname()[1]}/corpus.zip"


def has_only(folder: Path, *names: str) -> bool:
    """Return whether a folder holds just these files, and locks of downloads."""
    return {path.name for path in folder.iterdir() if path.suffix != ".lock"} == set(names)


def test_addresses_are_tried_in_order_until_one_has_the_file(tmp_path):
    portal, broken = Mirror(b"<html>Sign in to this network</html>"), Mirror(CONTENT, cuts=[100])
    first, second = Mirror(make_zip(enwik8=CONTENT)), Mirror(make_zip(enwik8=CONTENT))
    with (
        serve_mirror(portal) as a,
        serve_mirror(broken) as b,
        serve_mirror(first) as c,
        serve_mirror(second) as d,
    ):
        fetch_enwik8(tmp_path / "enwik8", find_dead_url(), a, b, c, d)
    assert (tmp_path / "enwik8").read_bytes() == CONTENT
    assert (first.request_count, second.request_count) == (1, 0)
    assert has_only(tmp_path, "enwik8")


def test_a_failure_names_every_address_and_the_key(tmp_path):
    missing, dead = tmp_path / "enwik8.zip", find_dead_url()
    with (
        serve_mirror(Mirror(CONTENT, statuses=[404] * 9)) as gone,
        pytest.raises(InputError) as failure,
    ):
        fetch_enwik8(
            tmp_path / "out" / "enwik8", missing, dead, gone, "ftp://example.org/enwik8.zip"
        )
    message = str(failure.value)
    for part in (missing, dead, f"{gone}: 404", "ftp", "corpus.sources.enwik8.urls"):
        assert str(part) in message
    assert "\n" not in message


def test_an_invalid_address_is_named_like_one_that_does_not_answer(tmp_path):
    for url in ("http://example.org:99999/a.zip", "http://[broken/a.zip"):
        with pytest.raises(InputError, match=re.escape(url)):
            fetch_enwik8(tmp_path / "none", url)
        with serve_mirror(Mirror(make_zip(enwik8=CONTENT))) as good:
            fetch_enwik8(tmp_path / "enwik8", url, good)


def test_a_server_that_is_busy_or_breaks_off_is_asked_again_and_one_that_refuses_is_not(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(module, "PAUSES_SECONDS", (0, 0))
    archive = make_zip(enwik8=CONTENT)
    for mirror in (Mirror(archive, statuses=[503, 429]), Mirror(archive, cuts=[100, 5000])):
        with serve_mirror(mirror) as url:
            fetch_enwik8(tmp_path / str(id(mirror)), url)
        assert mirror.request_count == 3
    gone, broken = Mirror(archive, statuses=[404] * 9), Mirror(archive, cuts=[100] * 9)
    with serve_mirror(gone) as a, serve_mirror(broken) as b, pytest.raises(InputError) as failure:
        fetch_enwik8(tmp_path / "none", a, b)
    assert (gone.request_count, broken.request_count) == (1, 3)
    assert str(failure.value).count(b) == 1


def test_without_a_network_one_sentence_says_at_once_what_to_do(tmp_path, monkeypatch, caplog):
    """A port refuses, or a server never answers, as behind a firewall."""
    monkeypatch.setattr(module, "FIRST_ANSWER_SECONDS", 1.0)
    with socket.socket() as deaf, socket.socket() as waiting:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        waiting.connect(deaf.getsockname())  # fills its queue, so that the next one is not answered
        silent = f"http://127.0.0.1:{deaf.getsockname()[1]}/corpus.zip"
        for urls in ([find_dead_url(), find_dead_url()], [silent], [find_dead_url(), silent]):
            caplog.clear()
            began = time.monotonic()
            with caplog.at_level(logging.INFO), pytest.raises(InputError) as failure:
                fetch_enwik8(tmp_path / "enwik8", *urls)
            assert time.monotonic() - began < 10
            assert caplog.text.count("waiting for 127.0.0.1") == 1
            message = str(failure.value)
            for words in ("no server is reached", "'corpus={source: python_topics}'", "127.0.0.1"):
                assert message.count(words) == 1
            assert "\n" not in message


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:{port}", "127.0.0.1:{port}"])
def test_a_download_behind_a_proxy_asks_the_proxy(tmp_path, monkeypatch, proxy):
    mirror = Mirror(make_zip(enwik8=CONTENT))
    with serve_mirror(mirror) as url:
        port = url.split(":")[2].partition("/")[0]
        monkeypatch.setenv("http_proxy", proxy.format(port=port))
        monkeypatch.setenv("no_proxy", "")
        fetch_enwik8(tmp_path / "enwik8", "http://corpus.invalid/enwik8.zip")
    assert mirror.request_count == 1


@pytest.mark.parametrize(
    ("wrong", "digest"),
    [({"sha256": "0" * 64}, SHA256), ({"git_blob": "0" * 40}, "its git blob is")],
)
def test_a_wrong_file_is_removed_and_the_message_gives_its_digest(tmp_path, wrong, digest):
    (tmp_path / "enwik8").write_bytes(b"an earlier one")
    with (
        serve_mirror(Mirror(make_zip(enwik8=CONTENT))) as url,
        pytest.raises(InputError) as failure,
    ):
        fetch_enwik8(tmp_path / "enwik8", url, **wrong)
    assert digest in str(failure.value)
    assert "0" * 40 in str(failure.value)
    assert (tmp_path / "enwik8").read_bytes() == b"an earlier one"


@pytest.mark.parametrize("ending", COMPRESSIONS)
@pytest.mark.parametrize("is_url", [False, True], ids=["path", "file URL"])
def test_a_local_file_is_unpacked_and_left_alone(tmp_path, ending, is_url):
    local = tmp_path / f"a corpus with spaces{ending}"
    local.write_bytes(archive := COMPRESSIONS[ending](CONTENT))
    fetch_enwik8(tmp_path / "out", local.as_uri() if is_url else local)
    assert (tmp_path / "out").read_bytes() == CONTENT
    assert local.read_bytes() == archive
    assert has_only(tmp_path, "out", local.name)


@pytest.mark.parametrize("ending", [ending for ending in COMPRESSIONS if ending])
def test_a_damaged_archive_is_recognised_without_a_digest(tmp_path, ending):
    local = tmp_path / f"packed{ending}"
    local.write_bytes(COMPRESSIONS[ending](CONTENT)[:150_000])
    with pytest.raises(InputError, match="packed"):
        fetch_enwik8(tmp_path / "out", local, sha256=None)
    assert has_only(tmp_path, local.name)


def test_an_archive_of_several_files_needs_the_name_of_one(tmp_path):
    (tmp_path / "packed.zip").write_bytes(make_zip(readme=b"no", enwik8=CONTENT))
    fetch_enwik8(tmp_path / "out", tmp_path / "packed.zip", member="enwik8")
    assert (tmp_path / "out").read_bytes() == CONTENT
    with pytest.raises(InputError, match=r"holds enwik8, readme, .* correct `member`"):
        fetch_enwik8(tmp_path / "other", tmp_path / "packed.zip")
    with pytest.raises(InputError, match="enwik9"):
        fetch_enwik8(tmp_path / "other", tmp_path / "packed.zip", member="enwik9")


@pytest.mark.parametrize("answers", [True, False])
def test_a_password_is_sent_and_not_shown(tmp_path, answers, caplog):
    mirror = Mirror(make_zip(enwik8=CONTENT), statuses=[] if answers else [404] * 9)
    with serve_mirror(mirror) as url:
        url = url.replace("://", "://someone:s3cr%40t@") + "?token=t0k3n"
        message = ""
        try:
            fetch_enwik8(tmp_path / "out", url, url.replace(":", "x:", 1), sha256=None)
        except InputError as error:
            message = str(error)
    assert mirror.authorisation == "Basic " + b64encode(b"someone:s3cr@t").decode()
    assert bool(message) != answers
    for secret in ("s3cr", "t0k3n"):
        assert secret not in message + caplog.text


def test_a_git_blob_is_compared_and_a_file_without_a_digest_gives_a_warning(tmp_path, caplog):
    (tmp_path / "hello").write_bytes(b"hello world\n")
    # `printf 'hello world\n' | git hash-object --stdin`
    blob = "3b18e512dba79e4c8300dd08aeb37f8e728b8dad"
    with caplog.at_level(logging.WARNING):
        fetch_enwik8(tmp_path / "out", tmp_path / "hello", sha256=None, git_blob=blob)
        assert caplog.text == ""
        fetch_enwik8(tmp_path / "more", tmp_path / "hello", sha256=None)
    digest = hashlib.sha256(b"hello world\n").hexdigest()
    assert f"corpus.sources.enwik8.sha256 to {digest}" in caplog.text
