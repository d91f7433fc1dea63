"""A Hub that lies: what it lists leads nowhere but to one sentence, or to what a Hub may say."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hub_fetching import environment

COMMIT, DIGEST = "a" * 40, "b" * 64
RESOLVE = """
import json, sys
from shape_of_learning.checkpoints.lock import Place
from shape_of_learning.checkpoints.hub import resolve
from shape_of_learning.errors import InputError
try:
    found, _ = resolve({"it": Place("org/model", "step1")}, [], where="model `tiny`")
    print(json.dumps(found["it"].model_dump()))
except InputError as error:
    sys.exit(str(error))
"""


def weights(**changes) -> dict:
    lfs = {"oid": DIGEST, "size": 7, "pointerSize": 130} | changes.pop("lfs", {})
    entry = {"type": "file", "path": "model.safetensors", "oid": "c" * 40, "size": 7, "lfs": lfs}
    return entry | changes


@contextmanager
def lying(answers: dict[str, object], seen: list[tuple[str, str | None]]) -> Iterator[str]:
    """Answer by the last part of the path; a number is a status, a text where it redirects to."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            last = self.path.partition("?")[0].rpartition("/")[2]
            seen.append((self.path, self.headers.get("Authorization")))
            answer = answers.get(last, 404)
            status = 302 if isinstance(answer, str) else 200
            self.send_response_only(answer if isinstance(answer, int) else status)
            if isinstance(answer, str):
                self.send_header("Location", answer)
            body = b"" if isinstance(answer, int | str) else json.dumps(answer).encode()
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def refs(commit: object = COMMIT) -> dict:
    branch = {"name": "step1", "ref": "refs/heads/step1", "targetCommit": commit}
    return {"branches": [branch], "tags": [], "converts": []}


def resolved(address: str, folder: Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-c", RESOLVE],
        env=environment(address, folder, HF_TOKEN="hf_secret"),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "Traceback" not in done.stderr
    assert "hf_secret" not in done.stderr
    return done


def test_a_hub_that_makes_sense_is_believed(tmp_path):
    with lying({"refs": refs(), COMMIT: [weights()]}, []) as address:
        found = json.loads(resolved(address, tmp_path).stdout)
    assert (found["commit"], found["problem"]) == (COMMIT, "")
    assert found["files"] == {"model.safetensors": {"bytes": 7, "hash": f"sha256:{DIGEST}"}}


@pytest.mark.parametrize(
    "answers",
    [
        {"refs": refs("../../etc")},
        {"refs": refs(7)},
        {"refs": {"branches": 3}},
        {"refs": []},
        {"refs": refs(), COMMIT: {"error": "no list"}},
        {"refs": refs(), COMMIT: [weights(size=-7)]},
        {"refs": refs(), COMMIT: [weights(lfs={"oid": "../../x"})]},
        {"refs": refs(), COMMIT: [weights(lfs={"oid": 7})]},
        {"refs": refs(), COMMIT: [weights(size="many")]},
        {"refs": 500},
    ],
)
def test_nonsense_is_one_sentence(tmp_path, answers):
    with lying({"step1": 404, **answers}, []) as address:
        done = resolved(address, tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("model `tiny`: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("path", ["../model.safetensors", "/model.safetensors", "a\0b", "C:\\x"])
def test_paths_that_lead_out_of_a_repository_are_not_listed(tmp_path, path):
    with lying({"refs": refs(), COMMIT: [weights(path=path)]}, []) as address:
        found = json.loads(resolved(address, tmp_path).stdout)
    assert (found["files"], found["problem"]) == ({}, "no weights")


def test_the_token_is_not_shown_to_another_host(tmp_path):
    seen: list[tuple[str, str | None]] = []
    with (
        lying({}, seen) as other,
        lying({"refs": f"{other.replace('127.0.0.1', 'localhost')}/elsewhere"}, []) as address,
    ):
        resolved(address, tmp_path)
    assert seen, "nobody followed"
    assert {token for _, token in seen} == {None}
