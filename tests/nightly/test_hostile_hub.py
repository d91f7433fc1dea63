"""Wrong answers of a Hub end in one sentence, or are left out."""

import json
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from hub_fetching import resolve_on_hub
from mirrors import serve

COMMIT, DIGEST = "a" * 40, "b" * 64


def make_weights(oid: object = DIGEST, **changes) -> dict:
    lfs = {"oid": oid, "size": 7, "pointerSize": 130}
    entry = {"type": "file", "path": "model.safetensors", "oid": "c" * 40, "size": 7, "lfs": lfs}
    return entry | changes


def make_refs(commit: object = COMMIT) -> dict:
    branch = {"name": "step1", "ref": "refs/heads/step1", "targetCommit": commit}
    return {"branches": [branch], "tags": [], "converts": []}


def make_handler(
    answers: dict[str, object], tokens: list[str | None]
) -> type[BaseHTTPRequestHandler]:
    """Make a handler that answers by the last part of the path; a number is a status, a text a redirection."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            tokens.append(self.headers.get("Authorization"))
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


def ask_hub(folder: Path, answers: dict[str, object]):
    """Return the listing of `step1`, or the sentence that refuses it, without a secret."""
    with serve(make_handler(answers, [])) as address:
        listing = resolve_on_hub(address, folder, "org/model", "step1", HF_TOKEN="hf_secret")
    return listing if isinstance(listing, str) else listing[0]


def test_sensible_answers_are_listed(tmp_path):
    listing = ask_hub(tmp_path, {"refs": make_refs(), COMMIT: [make_weights()]})
    assert (listing["commit"], listing["problem"]) == (COMMIT, "")
    assert listing["files"] == {"model.safetensors": {"bytes": 7, "hash": f"sha256:{DIGEST}"}}


@pytest.mark.parametrize(
    "answers",
    [
        *(
            {"refs": answer}
            for answer in (make_refs("../../etc"), make_refs(7), {"branches": 3}, [], 500)
        ),
        {"refs": make_refs(), COMMIT: {"error": "no list"}},
        *({"refs": make_refs(), COMMIT: [make_weights(size=answer)]} for answer in (-7, "many")),
        *({"refs": make_refs(), COMMIT: [make_weights(answer)]} for answer in ("../../x", 7)),
    ],
)
def test_nonsense_is_refused_in_one_sentence(tmp_path, answers):
    assert ask_hub(tmp_path, answers).startswith("model `tiny`: ")


@pytest.mark.parametrize("path", ["../model.safetensors", "/model.safetensors", "a\0b", "C:\\x"])
def test_paths_that_lead_out_of_a_repository_are_not_listed(tmp_path, path):
    listing = ask_hub(tmp_path, {"refs": make_refs(), COMMIT: [make_weights(path=path)]})
    assert (listing["files"], listing["problem"]) == ({}, "no weights")


def test_the_token_is_not_sent_to_another_host(tmp_path):
    tokens: list[str | None] = []
    with serve(make_handler({}, tokens)) as other:
        elsewhere = f"{other.replace('127.0.0.1', 'localhost')}/elsewhere"
        ask_hub(tmp_path, {"refs": elsewhere})
    assert tokens, "nobody followed"
    assert {*tokens} == {None}
