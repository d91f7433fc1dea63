"""A server that speaks as a Hub does, and lies: about commits, names, hashes and shards."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

import pytest
from huggingface_hub import constants

from shape_of_learning.checkpoints.lock import LockedRevision
from shape_of_learning.checkpoints.resolution import resolve
from shape_of_learning.checkpoints.weight_listing import MIXED_SHARDS
from shape_of_learning.errors import InputError

COMMIT, BLOB, SHA256 = "c" * 40, "b" * 40, "a" * 64
INDEX, SHARD = "model.safetensors.index.json", "model-1.safetensors"


def listed(path: str, **changes: object) -> dict:
    return {"type": "file", "path": path, "size": 7, "oid": BLOB} | changes


def large(path: str, digest: object = SHA256) -> dict:
    return listed(path, lfs={"oid": digest, "size": 7, "pointerSize": 100})


class Answers(dict):
    """Last words of a path -> what is answered as JSON."""

    @property
    def handler(self) -> type:
        answers = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = unquote(urlsplit(self.path).path)
                known = [answer for end, answer in answers.items() if path.endswith(end)]
                body = json.dumps(known[0] if known else {}).encode()
                self.send_response(200 if known else 404)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler


@pytest.fixture
def answers(monkeypatch) -> Iterator[Answers]:
    """What a Hub answers for `org/model`, whose weights are in one file; tests change some of it."""
    content = Answers(
        {
            "/refs": {
                "branches": [{"name": "main", "ref": "refs/heads/main", "targetCommit": COMMIT}],
                "tags": [],
                "converts": [],
            },
            f"/tree/{COMMIT}": [listed("config.json"), large("model.safetensors")],
            "/revision/step1": {"id": "org/model", "sha": COMMIT},
        }
    )
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), content.handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        endpoint = f"http://127.0.0.1:{server.server_port}"
        files = f"{endpoint}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "ENDPOINT", endpoint)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", files)
        yield content
        server.shutdown()
        thread.join()


def found(revision: str = "main", subfolder: str = "") -> LockedRevision:
    wanted = {"it": LockedRevision("org/model", revision, subfolder)}
    return resolve(wanted, where="model `tiny`")[0]["it"]


def refusal(revision: str = "main") -> str:
    with pytest.raises(InputError) as caught:
        found(revision)
    message = str(caught.value)
    assert message.startswith("model `tiny`: ")
    assert "\n" not in message
    assert "\0" not in message
    return message


def test_an_honest_answer_is_pinned(answers):
    pinned = found()
    assert pinned.listed.commit == COMMIT
    assert pinned.listed.files["model.safetensors"].hash == f"sha256:{SHA256}"
    assert pinned.small_files == {"config.json": f"git:{BLOB}"}
    assert found("step1") == LockedRevision(
        "org/model", "step1", "", pinned.listed, pinned.small_files
    )


NO_COMMITS = ("../../x", "/etc", "", 7, "main", "c" * 39, "c" * 41, "C" * 40, "c" * 39 + "\n")


@pytest.mark.parametrize("commit", [*NO_COMMITS, None])
def test_the_commit_of_a_branch_is_forty_hexadecimal_digits(answers, commit):
    answers["/refs"]["branches"][0]["targetCommit"] = commit
    assert "is no commit, 40 hexadecimal digits" in refusal()


@pytest.mark.parametrize("commit", NO_COMMITS)
def test_the_commit_of_another_revision_is_too(answers, commit):
    answers["/revision/step1"]["sha"] = commit
    assert "is no commit, 40 hexadecimal digits" in refusal("step1")


@pytest.mark.parametrize(
    "path",
    [
        "../config.json",
        "/etc/passwd",
        "a/../../b",
        "a//b",
        "a/./b",
        "C:/x",
        "a\\..\\b",
        "a\0",
        "a\nb",
        "",
    ],
)
def test_a_path_that_leads_out_of_a_repository_is_refused(answers, path):
    answers[f"/tree/{COMMIT}"].append(listed(path))
    assert "is no path inside a repository" in refusal()


@pytest.mark.parametrize(
    "changes",
    [
        {"oid": ""},
        {"oid": None},
        {"oid": "b" * 39},
        {"oid": "../../x"},
        {"size": -1},
        {"size": None},
        {"size": "7"},
        {"lfs": {"oid": "", "size": 7, "pointerSize": 1}},
        {"lfs": {"oid": None, "size": 7, "pointerSize": 1}},
        {"lfs": {"oid": SHA256[1:], "size": 7, "pointerSize": 1}},
    ],
)
def test_a_file_whose_hash_nobody_says_is_refused(answers, changes):
    answers[f"/tree/{COMMIT}"][1] = listed("model.safetensors", **changes)
    assert "by which nothing can be verified" in refusal()


def serve_shards(answers: Answers, index: object) -> None:
    answers[f"/tree/{COMMIT}"] = [listed(INDEX), large(SHARD)]
    answers[f"/{COMMIT}/{INDEX}"] = index


def test_an_honest_index_is_followed(answers):
    serve_shards(answers, {"weight_map": {"a": SHARD}, "metadata": {"total_size": 6}})
    pinned = found()
    assert set(pinned.listed.files) == {SHARD}
    assert set(pinned.small_files) == {INDEX}
    serve_shards(answers, {"weight_map": {"a": SHARD, "b": "model-2.safetensors"}})
    assert found().listed.problem == MIXED_SHARDS


@pytest.mark.parametrize(
    "index",
    [
        {},
        {"weight_map": {}},
        {"weight_map": None},
        {"weight_map": [SHARD]},
        {"weight_map": {"a": 7}},
        {"weight_map": {"a": None}},
        *(
            {"weight_map": {"a": name}}
            for name in ("../x", "/x", "a/b", "", "..", "C:x", "a\0", "a\\b")
        ),
        {"weight_map": {"a": SHARD}, "metadata": {"total_size": "much"}},
        {"weight_map": {"a": SHARD}, "metadata": {"total_size": None}},
        {"weight_map": {"a": SHARD}, "metadata": [7]},
        {"weight_map": {"a": SHARD}, "metadata": None},
    ],
)
def test_an_index_that_is_none_is_one_sentence(answers, index):
    serve_shards(answers, index)
    assert f"{INDEX} of `org/model` at revision `main` is no index of shards" in refusal()


@pytest.mark.parametrize("index", [[], "text", 7, None])
def test_an_index_that_is_no_object_is_one_sentence(answers, index):
    serve_shards(answers, index)
    assert "is not a JSON object" in refusal()
