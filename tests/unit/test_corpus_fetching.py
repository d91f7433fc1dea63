"""A corpus arrives whole and verified, or not at all."""

import bz2
import gzip
import hashlib
import io
import json
import logging
import lzma
import os
import socket
import subprocess
import sys
import zipfile
from base64 import b64encode
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from mirrors import Mirror, served
from shape_of_learning.corpus.corpus_file import Expected, require_received, write_receipt
from shape_of_learning.corpus.mirrors import ROUNDS, CorpusSource, fetch
from shape_of_learning.errors import InputError
from shape_of_learning.storage.digests import git_blob_name

WORKFLOW = Path(__file__).parents[2] / "workflow"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(WORKFLOW)}
# Incompressible, so that the archive is about as long as its content.
CONTENT = np.random.default_rng(0).bytes(300_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
EXPECTED = Expected(size=len(CONTENT), sha256=SHA256)


def zipped(**members: bytes) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return archive.getvalue()


def get(output: Path, *urls: str, expected: Expected = EXPECTED, member: str | None = None):
    return fetch(CorpusSource("enwik8", urls, member, expected), output, pause=0.01)


def fetch_command(output: Path) -> list[str]:
    script = WORKFLOW / "scripts" / "fetch_corpus.py"
    return [sys.executable, str(script), "--source", "enwik8", "--output", str(output)]


def settings(url: str, sha256: str = SHA256) -> dict[str, str]:
    """What the workflow exports for its scripts."""
    sources = {"enwik8": {"urls": [url], "sha256": sha256}}
    return ENVIRONMENT | {"SHAPE_OF_LEARNING_SETTINGS": json.dumps({"corpus_sources": sources})}


def dead_url() -> str:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{unused.getsockname()[1]}/corpus.zip"


def only(folder: Path, *names: str) -> bool:
    return sorted(path.name for path in folder.iterdir()) == sorted(names)


def test_a_broken_download_begins_anew(tmp_path):
    mirror = Mirror(zipped(enwik8=CONTENT), cuts=[100_000, 200_000])
    with served(mirror) as url:
        get(tmp_path / "enwik8", url)
    assert (tmp_path / "enwik8").read_bytes() == CONTENT
    assert mirror.asked == 3
    assert only(tmp_path, "enwik8")


def test_a_download_that_always_breaks_is_given_up_and_leaves_nothing(tmp_path):
    mirror = Mirror(CONTENT, cuts=[100_000] * 100)
    with served(mirror) as url, pytest.raises(InputError, match="100000 bytes read, 200000 more"):
        get(tmp_path / "enwik8", url)
    assert mirror.asked == ROUNDS
    assert only(tmp_path)


def test_a_killed_download_leaves_nothing(tmp_path):
    mirror = Mirror(CONTENT, stall=Event())
    output = tmp_path / "enwik8"
    with served(mirror) as url:
        process = subprocess.Popen(
            fetch_command(output), env=settings(url), stderr=subprocess.DEVNULL
        )
        assert mirror.stalled.wait(30)
        process.kill()
        process.wait()
        mirror.stall.set()
        assert only(tmp_path, ".enwik8.lock")
        get(output, url)
    assert output.read_bytes() == CONTENT
    assert only(tmp_path, "enwik8")


def test_a_dead_first_mirror_is_passed_over(tmp_path):
    with served(Mirror(CONTENT)) as url:
        get(tmp_path / "enwik8", dead_url(), url)
    assert (tmp_path / "enwik8").read_bytes() == CONTENT


def test_mirrors_are_tried_in_order(tmp_path):
    first, second = Mirror(CONTENT), Mirror(CONTENT)
    with served(first) as url, served(second) as other_url:
        get(tmp_path / "enwik8", url, other_url)
    assert (first.asked, second.asked) == (1, 0)


def test_a_mirror_with_the_wrong_file_is_passed_over(tmp_path):
    portal = Mirror(b"<html>Sign in to this network</html>")
    with served(portal) as wrong, served(Mirror(CONTENT)) as url:
        get(tmp_path / "enwik8", wrong, url)
    assert (tmp_path / "enwik8").read_bytes() == CONTENT
    assert only(tmp_path, "enwik8")


def test_a_mirror_that_is_busy_at_first_is_asked_again(tmp_path):
    mirror = Mirror(CONTENT, statuses=[503, 500])
    with served(mirror) as url:
        get(tmp_path / "enwik8", url)
    assert mirror.asked == 3


def test_a_mirror_without_the_file_is_asked_once(tmp_path):
    mirror = Mirror(CONTENT, statuses=[404, 404, 404, 404])
    with served(mirror) as url, pytest.raises(InputError, match="HTTP 404"):
        get(tmp_path / "enwik8", url)
    assert mirror.asked == 1


def test_a_failure_names_every_mirror_and_the_key(tmp_path):
    missing = tmp_path / "enwik8.zip"
    dead = dead_url()
    with pytest.raises(InputError) as failure:
        get(tmp_path / "out" / "enwik8", str(missing), dead, "ftp://example.org/enwik8.zip")
    message = str(failure.value)
    for named in (str(missing), dead, "ftp", "corpus.sources.enwik8.urls"):
        assert named in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("wrong", "key", "found"),
    [
        (Expected(sha256="0" * 64), "sha256", SHA256),
        (Expected(git_blob="0" * 40), "git_blob", "its git blob is "),
        (Expected(size=len(CONTENT) - 1), "bytes", "more than the expected 299,999 bytes"),
        (Expected(size=len(CONTENT) + 1), "bytes", "300000 where 300001"),
        (Expected(distinct_bytes=205), "distinct_bytes", "256 where 205"),
    ],
)
def test_the_wrong_file_is_removed_and_the_message_says_what_it_is(tmp_path, wrong, key, found):
    with served(Mirror(zipped(enwik8=CONTENT))) as url, pytest.raises(InputError) as failure:
        get(tmp_path / "enwik8", url, expected=wrong)
    assert url in str(failure.value)
    assert f"corpus.sources.enwik8.{key} " in str(failure.value)
    assert found in str(failure.value)
    assert only(tmp_path)


def test_an_earlier_good_file_survives_a_bad_download(tmp_path):
    (tmp_path / "enwik8").write_bytes(b"good")
    with served(Mirror(b"bad")) as url, pytest.raises(InputError):
        get(tmp_path / "enwik8", url)
    assert (tmp_path / "enwik8").read_bytes() == b"good"


@pytest.mark.parametrize(
    "pack",
    [bytes, gzip.compress, lzma.compress, bz2.compress, lambda content: zipped(enwik8=content)],
    ids=["plain", "gzip", "xz", "bzip2", "zip"],
)
@pytest.mark.parametrize("as_url", [False, True], ids=["path", "file URL"])
def test_a_local_file_is_unpacked_and_left_alone(tmp_path, pack, as_url):
    local = tmp_path / "a corpus with spaces"
    local.write_bytes(packed := pack(CONTENT))
    found = get(tmp_path / "out", local.as_uri() if as_url else str(local))
    assert (tmp_path / "out").read_bytes() == CONTENT
    assert (found.size, found.sha256, found.distinct_bytes) == (len(CONTENT), SHA256, 256)
    assert local.read_bytes() == packed


@pytest.mark.parametrize(
    "pack",
    [gzip.compress, lzma.compress, bz2.compress, lambda content: zipped(enwik8=content)],
    ids=["gzip", "xz", "bzip2", "zip"],
)
@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_a_damaged_archive_is_recognised_without_a_digest(tmp_path, pack, damage):
    packed = bytearray(pack(CONTENT))
    if damage == "cut":
        del packed[150_000:]
    else:
        packed[150_000] ^= 0xFF
    (tmp_path / "packed").write_bytes(packed)
    with pytest.raises(InputError, match="damaged archive"):
        get(tmp_path / "out", str(tmp_path / "packed"), expected=Expected())
    assert only(tmp_path, "packed")


def test_a_member_is_taken_from_among_others(tmp_path):
    (tmp_path / "packed").write_bytes(zipped(readme=b"no", enwik8=CONTENT))
    get(tmp_path / "out", str(tmp_path / "packed"), member="enwik8")
    assert (tmp_path / "out").read_bytes() == CONTENT


@pytest.mark.parametrize("member", [None, "enwik9"])
def test_an_archive_of_several_files_needs_the_name_of_one(tmp_path, member):
    (tmp_path / "packed").write_bytes(zipped(readme=b"no", enwik8=CONTENT))
    with pytest.raises(InputError, match=r"holds readme, enwik8.*corpus\.sources\.enwik8\.member"):
        get(tmp_path / "out", str(tmp_path / "packed"), member=member)


def test_an_encrypted_archive_is_one_sentence(tmp_path):
    archive = bytearray(zipped(enwik8=CONTENT))
    archive[6] |= 1  # as its own header and the list of contents say
    archive[archive.rindex(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "corpus.zip").write_bytes(archive)
    with pytest.raises(
        InputError, match="enwik8 in the archive is encrypted; unpack it"
    ) as refused:
        get(tmp_path / "out", str(tmp_path / "corpus.zip"))
    assert "\n" not in str(refused.value)
    assert only(tmp_path, "corpus.zip")


def test_an_archive_of_an_unknown_method_is_one_sentence(tmp_path):
    archive = bytearray(zipped(enwik8=CONTENT))
    archive[8] = 99  # that of AES
    archive[archive.rindex(b"PK\x01\x02") + 10] = 99
    (tmp_path / "corpus.zip").write_bytes(archive)
    with pytest.raises(InputError, match="packed in a way that cannot be unpacked"):
        get(tmp_path / "out", str(tmp_path / "corpus.zip"))


def test_what_is_not_pinned_must_be_what_it_was(tmp_path, caplog):
    output, mirror = tmp_path / "out", Mirror(CONTENT)
    with served(mirror) as url:
        get(output, url, expected=Expected())
        assert f"corpus.sources.enwik8.sha256 to {SHA256}" in caplog.text
        assert only(tmp_path, "out", "out.sha256")
        output.unlink()
        get(output, url, expected=Expected())
        mirror.content = CONTENT[:-1] + b"?"
        with pytest.raises(InputError, match=rf"{SHA256} is expected since an earlier run fetched"):
            get(output, url, expected=Expected())
        assert output.read_bytes() == CONTENT
        # Whoever means it says so.
        get(output, url, expected=Expected(sha256=hashlib.sha256(mirror.content).hexdigest()))
    assert output.read_bytes() == mirror.content


def with_password(url: str) -> str:
    return url.replace("://", "://someone:s3cr%40t@") + "?token=t0k3n"


SECRETS = ("someone", "s3cr", "t0k3n")


@pytest.mark.parametrize(
    "url",
    [
        "{served}",
        "{dead}",
        "{bad}",
        "http://someone:s3cr%40t@[broken/x",
        "ftp://someone:s3cr@h/?t0k3n",
    ],
)
def test_passwords_are_used_and_neither_printed_nor_kept(tmp_path, url):
    with served(Mirror(CONTENT)) as good, served(Mirror(b"", statuses=[404] * 9)) as bad:
        url = url.format(**{k: with_password(v) for k, v in
                            {"served": good, "bad": bad, "dead": dead_url()}.items()})  # fmt: skip
        told = {"urls": [url], "format": "text"}
        settings = {"corpus_sources": {"enwik8": told}}
        ended = subprocess.run(
            [*fetch_command(tmp_path / "out"), "--log", str(tmp_path / "log")],
            env=ENVIRONMENT | {"SHAPE_OF_LEARNING_SETTINGS": json.dumps(settings)},
            capture_output=True,
            text=True,
        )
    assert (ended.returncode == 0) == (
        bad not in url and "127" in url and good.split("/")[2] in url
    )
    assert ended.stderr
    written = [path.read_bytes() for path in tmp_path.iterdir() if path.name != "out"]
    for text in (ended.stdout + ended.stderr, *map(bytes.decode, written)):
        assert not [secret for secret in SECRETS if secret in text]
    assert "Traceback" not in ended.stderr


def test_a_password_is_sent(tmp_path):
    mirror = Mirror(CONTENT)
    with served(mirror) as url:
        get(tmp_path / "out", with_password(url))
    assert mirror.authorisation == "Basic " + b64encode(b"someone:s3cr@t").decode()


def test_a_password_may_be_in_netrc_alone(tmp_path, monkeypatch):
    netrc, mirror = tmp_path / "netrc", Mirror(CONTENT)
    netrc.write_text("machine 127.0.0.1 login someone password s3cr@t\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    with served(mirror) as url:
        get(tmp_path / "out", url)
    assert mirror.authorisation == "Basic " + b64encode(b"someone:s3cr@t").decode()


def test_a_git_blob_is_named_as_git_does(tmp_path):
    (tmp_path / "hello").write_bytes(b"hello world\n")
    # `printf 'hello world\n' | git hash-object --stdin`
    assert git_blob_name(tmp_path / "hello") == "3b18e512dba79e4c8300dd08aeb37f8e728b8dad"


def test_without_a_digest_the_file_is_accepted_with_a_warning(tmp_path, caplog):
    (tmp_path / "corpus").write_bytes(CONTENT)
    with caplog.at_level(logging.WARNING):
        get(tmp_path / "out", str(tmp_path / "corpus"), expected=Expected())
    assert f"corpus.sources.enwik8.sha256 to {SHA256}" in caplog.text


def test_the_script_ends_with_one_sentence_for_a_wrong_hash(tmp_path):
    local = tmp_path / "corpus"
    local.write_bytes(CONTENT)
    ended = subprocess.run(
        fetch_command(tmp_path / "out"),
        env=settings(str(local), sha256="0" * 64),
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1
    assert SHA256 in ended.stderr
    assert only(tmp_path, "corpus")


def test_the_script_shows_the_progress_of_a_download(tmp_path):
    with served(Mirror(CONTENT)) as url:
        ended = subprocess.run(
            fetch_command(tmp_path / "out"), env=settings(url), capture_output=True, text=True
        )
    assert ended.returncode == 0
    assert "100%" in ended.stderr


@pytest.mark.parametrize("damage", ["truncated", "replaced", "missing"])
def test_a_corpus_that_is_another_since_it_was_fetched_is_not_used(tmp_path, damage):
    local, raw, receipt = (tmp_path / name for name in ("local", "corpus.raw", "source.json"))
    local.write_bytes(CONTENT)
    write_receipt(receipt, get(raw, str(local)))
    require_received(raw, receipt)
    if damage == "truncated":
        os.truncate(raw, 1000)
    elif damage == "replaced":
        raw.write_bytes(bytes(len(CONTENT)))
    else:
        raw.unlink()
    with pytest.raises(InputError, match=r"is not what was fetched .*; delete .*source\.json"):
        require_received(raw, receipt)
