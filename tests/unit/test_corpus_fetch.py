"""A corpus arrives whole and verified, or not at all."""

import bz2
import gzip
import hashlib
import io
import logging
import lzma
import socket
import time
import zipfile
from base64 import b64encode
from pathlib import Path

import numpy as np
import pytest

from mirrors import Mirror, served
from shape_of_learning.corpus import fetch as module
from shape_of_learning.corpus.fetch import fetch
from shape_of_learning.corpus.job import SourceJob
from shape_of_learning.errors import InputError

# Incompressible, so that the archive is about as long as its content.
CONTENT = np.random.default_rng(0).bytes(300_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
PACKED = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}


def zipped(**members: bytes) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return archive.getvalue()


PACKED[".zip"] = lambda content: zipped(enwik8=content)


def get(output: Path, *urls: object, sha256: str | None = SHA256, **facts: str) -> None:
    fetch(SourceJob("enwik8", sha256=sha256, **facts), [str(url) for url in urls], output)


def dead_url() -> str:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{unused.getsockname()[1]}/corpus.zip"


def only(folder: Path, *names: str) -> bool:
    """Whether a folder holds just these, and the locks of downloads."""
    return {path.name for path in folder.iterdir() if path.suffix != ".lock"} == set(names)


def test_addresses_are_tried_in_order_and_those_without_the_file_are_passed_over(tmp_path):
    portal, broken = Mirror(b"<html>Sign in to this network</html>"), Mirror(CONTENT, cuts=[100])
    first, second = Mirror(zipped(enwik8=CONTENT)), Mirror(zipped(enwik8=CONTENT))
    with served(portal) as a, served(broken) as b, served(first) as c, served(second) as d:
        get(tmp_path / "enwik8", dead_url(), a, b, c, d)
    assert (tmp_path / "enwik8").read_bytes() == CONTENT
    assert (first.asked, second.asked) == (1, 0)
    assert only(tmp_path, "enwik8")


def test_a_failure_names_every_address_and_the_key(tmp_path):
    missing, dead = tmp_path / "enwik8.zip", dead_url()
    with served(Mirror(CONTENT, statuses=[404] * 9)) as gone, pytest.raises(InputError) as failure:
        get(tmp_path / "out" / "enwik8", missing, dead, gone, "ftp://example.org/enwik8.zip")
    message = str(failure.value)
    for named in (missing, dead, f"{gone}: 404", "ftp", "corpus.sources.enwik8.urls"):
        assert str(named) in message
    assert "\n" not in message


def test_a_server_that_is_busy_or_breaks_off_is_asked_again_and_one_that_refuses_is_not(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(module, "PAUSES_SECONDS", (0, 0))
    packed = zipped(enwik8=CONTENT)
    for mirror in (Mirror(packed, statuses=[503, 429]), Mirror(packed, cuts=[100, 5000])):
        with served(mirror) as url:
            get(tmp_path / str(id(mirror)), url)
        assert mirror.asked == 3
    gone, broken = Mirror(packed, statuses=[404] * 9), Mirror(packed, cuts=[100] * 9)
    with served(gone) as a, served(broken) as b, pytest.raises(InputError) as failure:
        get(tmp_path / "none", a, b)
    assert (gone.asked, broken.asked) == (1, 3)
    assert str(failure.value).count(b) == 1


def test_without_a_network_one_sentence_says_at_once_what_to_do(tmp_path, monkeypatch, caplog):
    """Of a port that refuses, and of a server that never answers, as behind a firewall."""
    monkeypatch.setattr(module, "FIRST_ANSWER_SECONDS", 1.0)
    with socket.socket() as deaf, socket.socket() as waiting:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        waiting.connect(deaf.getsockname())  # the only one that it lets wait
        silent = f"http://127.0.0.1:{deaf.getsockname()[1]}/corpus.zip"
        for urls in ([dead_url(), dead_url()], [silent], [dead_url(), silent]):
            caplog.clear()
            began = time.monotonic()
            with caplog.at_level(logging.INFO), pytest.raises(InputError) as failure:
                get(tmp_path / "enwik8", *urls)
            assert time.monotonic() - began < 10
            assert caplog.text.count("waiting for 127.0.0.1") == 1
            message = str(failure.value)
            for said in ("no server is reached", "'corpus={source: python_topics}'", "127.0.0.1"):
                assert message.count(said) == 1
            assert "\n" not in message


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:{port}", "127.0.0.1:{port}"])
def test_behind_a_proxy_the_proxy_is_the_server_that_is_reached(tmp_path, monkeypatch, proxy):
    mirror = Mirror(zipped(enwik8=CONTENT))
    with served(mirror) as url:
        port = url.split(":")[2].partition("/")[0]
        monkeypatch.setenv("http_proxy", proxy.format(port=port))
        monkeypatch.setenv("no_proxy", "")
        get(tmp_path / "enwik8", "http://corpus.invalid/enwik8.zip")
    assert mirror.asked == 1


@pytest.mark.parametrize(
    ("wrong", "found"),
    [({"sha256": "0" * 64}, SHA256), ({"git_blob": "0" * 40}, "its git blob is")],
)
def test_the_wrong_file_is_removed_and_the_message_says_what_it_is(tmp_path, wrong, found):
    (tmp_path / "enwik8").write_bytes(b"an earlier one")
    with served(Mirror(zipped(enwik8=CONTENT))) as url, pytest.raises(InputError) as failure:
        get(tmp_path / "enwik8", url, **wrong)
    assert found in str(failure.value)
    assert "0" * 40 in str(failure.value)
    assert (tmp_path / "enwik8").read_bytes() == b"an earlier one"


@pytest.mark.parametrize("ending", PACKED)
@pytest.mark.parametrize("as_url", [False, True], ids=["path", "file URL"])
def test_a_local_file_is_unpacked_and_left_alone(tmp_path, ending, as_url):
    local = tmp_path / f"a corpus with spaces{ending}"
    local.write_bytes(packed := PACKED[ending](CONTENT))
    get(tmp_path / "out", local.as_uri() if as_url else local)
    assert (tmp_path / "out").read_bytes() == CONTENT
    assert local.read_bytes() == packed
    assert only(tmp_path, "out", local.name)


@pytest.mark.parametrize("ending", [ending for ending in PACKED if ending])
def test_a_damaged_archive_is_recognised_without_a_digest(tmp_path, ending):
    local = tmp_path / f"packed{ending}"
    local.write_bytes(PACKED[ending](CONTENT)[:150_000])
    with pytest.raises(InputError, match="packed"):
        get(tmp_path / "out", local, sha256=None)
    assert only(tmp_path, local.name)


def test_of_an_archive_of_several_files_one_is_named(tmp_path):
    (tmp_path / "packed.zip").write_bytes(zipped(readme=b"no", enwik8=CONTENT))
    get(tmp_path / "out", tmp_path / "packed.zip", member="enwik8")
    assert (tmp_path / "out").read_bytes() == CONTENT
    with pytest.raises(InputError, match=r"holds enwik8, readme, .* correct `member`"):
        get(tmp_path / "other", tmp_path / "packed.zip")
    with pytest.raises(InputError, match="enwik9"):
        get(tmp_path / "other", tmp_path / "packed.zip", member="enwik9")


@pytest.mark.parametrize("answers", [True, False])
def test_a_password_is_sent_and_not_shown(tmp_path, answers, caplog):
    mirror = Mirror(zipped(enwik8=CONTENT), statuses=[] if answers else [404] * 9)
    with served(mirror) as url:
        url = url.replace("://", "://someone:s3cr%40t@") + "?token=t0k3n"
        said = ""
        try:
            get(tmp_path / "out", url, url.replace(":", "x:", 1), sha256=None)
        except InputError as error:
            said = str(error)
    assert mirror.authorisation == "Basic " + b64encode(b"someone:s3cr@t").decode()
    assert bool(said) != answers
    for secret in ("s3cr", "t0k3n"):
        assert secret not in said + caplog.text


def test_a_git_blob_is_named_as_git_does_and_without_a_digest_there_is_a_warning(tmp_path, caplog):
    (tmp_path / "hello").write_bytes(b"hello world\n")
    # `printf 'hello world\n' | git hash-object --stdin`
    blob = "3b18e512dba79e4c8300dd08aeb37f8e728b8dad"
    with caplog.at_level(logging.WARNING):
        get(tmp_path / "out", tmp_path / "hello", sha256=None, git_blob=blob)
        assert caplog.text == ""
        get(tmp_path / "more", tmp_path / "hello", sha256=None)
    digest = hashlib.sha256(b"hello world\n").hexdigest()
    assert f"corpus.sources.enwik8.sha256 to {digest}" in caplog.text
