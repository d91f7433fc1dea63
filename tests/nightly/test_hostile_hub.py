"""A Hub that lies: what it lists leads nowhere but to one sentence, or to what a Hub may say."""

import json
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from hub_fetching import resolve_on_hub
from mirrors import serve

COMMIT, DIGEST = "a" * 40, "b" * 64


def weights(oid: object = DIGEST, **changes) -> dict:
    lfs = {"oid": oid, "size": 7, "pointerSize": 130}
    entry = {"type": "file", "path": "model.safetensors", "oid": "c" * 40, "size": 7, "lfs": lfs}
    return entry | changes


def refs(commit: object = COMMIT) -> dict:
    branch = {"name": "step1", "ref": "refs/heads/step1", "targetCommit": commit}
    return {"branches": [branch], "tags": [], "converts": []}


def lying(answers: dict[str, object], seen: list[str | None]) -> type[BaseHTTPRequestHandler]:
    """Answer by the last part of the path; a number is a status, a text where it redirects to."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("Authorization"))
            answer = answers.get(self.path.partition("?")[0].rpartition("/")[2], 404)
            status = 302 if isinstance(answer, str) else 200
            self.send_response_only(answer if isinstance(answer, int) else status)
            if isinstance(answer, str):
                self.send_header("Location", answer)
            body = b"" if isinstance(answer, int | str) else json.dumps(answer).encode()
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_HEAD = do_GET

    return Handler


def asked(folder: Path, answers: dict[str, object]):
    """What is listed of `step1`, or the sentence that refuses, without a secret in it."""
    with serve(lying(answers, [])) as address:
        found = resolve_on_hub(address, folder, "org/model", "step1", HF_TOKEN="hf_secret")
    return found if isinstance(found, str) else found[0]


def test_a_hub_that_makes_sense_is_believed(tmp_path):
    found = asked(tmp_path, {"refs": refs(), COMMIT: [weights()]})
    assert (found["commit"], found["problem"]) == (COMMIT, "")
    assert found["files"] == {"model.safetensors": {"bytes": 7, "hash": f"sha256:{DIGEST}"}}


@pytest.mark.parametrize(
    "answers",
    [
        *({"refs": each} for each in (refs("../../etc"), refs(7), {"branches": 3}, [], 500)),
        {"refs": refs(), COMMIT: {"error": "no list"}},
        *({"refs": refs(), COMMIT: [weights(size=each)]} for each in (-7, "many")),
        *({"refs": refs(), COMMIT: [weights(each)]} for each in ("../../x", 7)),
    ],
)
def test_nonsense_is_one_sentence(tmp_path, answers):
    assert asked(tmp_path, answers).startswith("model `tiny`: ")


@pytest.mark.parametrize("path", ["../model.safetensors", "/model.safetensors", "a\0b", "C:\\x"])
def test_paths_that_lead_out_of_a_repository_are_not_listed(tmp_path, path):
    found = asked(tmp_path, {"refs": refs(), COMMIT: [weights(path=path)]})
    assert (found["files"], found["problem"]) == ({}, "no weights")


def test_the_token_is_not_shown_to_another_host(tmp_path):
    seen: list[str | None] = []
    with serve(lying({}, seen)) as other:
        elsewhere = f"{other.replace('127.0.0.1', 'localhost')}/elsewhere"
        asked(tmp_path, {"refs": elsewhere})
    assert seen, "nobody followed"
    assert {*seen} == {None}
