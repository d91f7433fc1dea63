"""A server that answers as the Hub does but for one thing, which the name of the repository says.

``attack/tree-endless`` is a repository whose listing of files never ends, ``attack/refs-html`` one whose
branches come as a page for people. Run as a script it attacks the library with all of them and prints what
that says.
"""

import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TOKEN = "hf_notForOthers"
COMMIT = "a" * 40
HASH = "b" * 64
REFS = {"branches": [{"name": "main", "ref": "refs/heads/main", "targetCommit": COMMIT}]}
REFS |= {"converts": [], "tags": []}
INDEX = {"metadata": {"total_size": 5}, "weight_map": {"a": "model-00001-of-00001.safetensors"}}
CONFIG = {"model_type": "gpt_neox", "num_hidden_layers": 2, "hidden_size": 16}


def listed(path: object, **other: object) -> dict:
    return {"type": "file", "path": path, "size": 7, "oid": "c" * 40, **other}


def tree(**of_weights: object) -> list[dict]:
    shard = listed("model-00001-of-00001.safetensors", **of_weights)
    return [listed("config.json"), listed("model.safetensors.index.json"), shard]


def bent(content: dict, key: str, value: object) -> bytes:
    return json.dumps({**content, key: value}).encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    elsewhere = ""
    released: threading.Event
    shown: list[tuple[str, str | None]]  # the path of each request, and the token that it shows

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.shown.append((self.path, self.headers.get("Authorization")))
        route = "refs" if self.path.endswith("/refs") else "tree" if "/tree/" in self.path else ""
        route = route or ("index" if "index.json" in self.path else "")
        route = route or ("info" if "/revision/" in self.path else "config")
        name = self.path.partition("attack/")[2].partition("/")[0]
        where, _, kind = name.partition("-")
        attack = ATTACKS.get(name) or ATTACKS.get(kind)
        try:
            if where == route and attack:
                attack(self)
            else:
                usual = {"refs": REFS, "tree": tree(), "index": INDEX, "info": {}, "config": CONFIG}
                self.answer(json.dumps(usual[route]).encode())
        except OSError:
            self.close_connection = True

    def answer(self, body: bytes, status: int = 200, **headers: str) -> None:
        self.send_response_only(status)
        for name, value in {"Content_Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def _stall(to: _Handler) -> None:
    to.released.wait(120)


def _drip(to: _Handler, head: bytes) -> None:
    to.wfile.write(head)
    while not to.released.wait(0.1):
        to.wfile.write(b" ")


def _lie(to: _Handler, factor: float) -> None:
    body = json.dumps(REFS).encode()
    to.answer(body, Content_Length=str(int(len(body) * factor)), Connection="close")
    to.close_connection = True


def _endless(to: _Handler, body: bytes, host: str = "") -> None:
    own = f"http://{to.headers['Host']}"
    to.answer(body, Link=f'<{host or own}{to.path}>; rel="next"')


def _file(to: _Handler, size: int, send: Callable[[_Handler], None]) -> None:
    """What is said of a file before it is sent, and then the file."""
    if to.command == "HEAD":
        to.answer(b"", Content_Length=str(size), ETag='"x"', X_Repo_Commit=COMMIT)
    else:
        send(to)


def _huge(to: _Handler) -> None:
    to.send_response_only(200)
    to.send_header("Content-Length", "1000000000")
    to.end_headers()
    for _ in range(1000):
        to.wfile.write(b" " * 1_000_000)


def _gzipped(to: _Handler) -> None:
    to.answer(gzip.compress(b" " * 200_000_000, 1), Content_Encoding="gzip")


def _elsewhere(to: _Handler) -> None:
    to.answer(b"", 302, Location=to.elsewhere + to.path)


def _just(body: bytes, status: int = 200, **headers: str) -> Callable[[_Handler], None]:
    return lambda to: to.answer(body, status, **headers)


NOT_A_HUB = "what is no answer of a Hub"
NO_ANSWER = "cannot be reached"
NO_INDEX = "is no index of shards"
GATE = {"X_Error_Code": "GatedRepo", "X_Error_Message": "Access to this model is restricted."}
PAGE = b"<html><body>Welcome to the hotel's network</body></html>"
# What a repository may do to any question, and what the sentence says of it.
ANYWHERE: dict[str, tuple[Callable[[_Handler], None], str]] = {
    "stall": (_stall, NO_ANSWER),
    "drip": (partial(_drip, head=b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"), NO_ANSWER),
    "driphead": (partial(_drip, head=b"HTTP/1.1 200 OK\r\nX-Header: "), NO_ANSWER),
    "long": (partial(_lie, factor=2), NO_ANSWER),
    "loop": (lambda to: to.answer(b"", 302, Location=to.path), NO_ANSWER),
    "file": (_just(b"", 302, Location="file:///etc/passwd"), NO_ANSWER),
    "huge": (_huge, "sends more than 32,000,000 bytes"),
    "gzip": (_gzipped, "sends a compressed answer"),
    "busy": (_just(b"", 429, Retry_After="1"), "answered 429"),
    "patience": (_just(b"", 429, Retry_After="1000000000"), "answered 429"),
    "superscript": (_just(b"", 429, Retry_After="\u00b2"), "answered 429"),
    "date": (_just(b"", 429, Retry_After="Fri, 31 Dec 2150 23:59:59 GMT"), "answered 429"),
    "broken": (_just(b"", 503), "answered 503"),
    "listerror": (_just(b"[1]", 500), NOT_A_HUB),
    "escape": (_just(b"", 400, X_Error_Message="\x1b[2J" * 999), "answered 400"),
    "gated401": (_just(b"", 401, **GATE), "is gated; accept its licence"),
    "gated403": (_just(b"", 403, **GATE), "is gated; accept its licence"),
}
# Of one question each.
REFUSED: dict[str, tuple[bytes, str]] = {
    **{
        f"refs-{name}": (body, NOT_A_HUB)
        for name, body in {
            "html": PAGE,
            "empty": b"",
            "list": b"[]",
            "null": b"null",
            "number": b"7",
            "nested": b"[" * 200_000,
            "utf8": b'{"\xff": 1}',
            "nobranches": b"{}",
            "nullbranches": bent(REFS, "branches", None),
            "wordbranches": bent(REFS, "branches", ["main"]),
            "numbername": bent(
                REFS, "branches", [{"name": 3, "ref": "refs/heads/3", "targetCommit": COMMIT}]
            ),
        }.items()
    },
    "refs-nullcommit": (
        bent(REFS, "branches", [{"name": "main", "ref": "x", "targetCommit": None}]),
        "no commit",
    ),
    "refs-path": (
        bent(REFS, "branches", [{"name": "main", "ref": "x", "targetCommit": "../../x"}]),
        "no commit",
    ),
    **{
        f"tree-{name}": (body, NOT_A_HUB)
        for name, body in {
            "html": PAGE,
            "dict": json.dumps({"siblings": None}).encode(),
            "null": b"null",
            "words": b'["config.json"]',
            "notype": json.dumps([{"path": "config.json"}]).encode(),
            "listlfs": json.dumps(tree(lfs=[1])).encode(),
        }.items()
    },
    **{
        f"tree-{name}": (body, "by which nothing can be verified")
        for name, body in {
            "negative": json.dumps(tree(size=-1)).encode(),
            "textsize": json.dumps(tree(size="7")).encode(),
            "boolsize": json.dumps(tree(size=True)).encode(),
            "nullsize": json.dumps(tree(size=None)).encode(),
            "nan": json.dumps(tree(size=float("nan"))).encode(),
            "nulloid": json.dumps(tree(oid=None)).encode(),
            "numberlfs": json.dumps(tree(lfs={"oid": 3, "size": 7, "pointerSize": 1})).encode(),
        }.items()
    },
    "tree-numberpath": (json.dumps([listed(3)]).encode(), "no path inside a repository"),
    **{
        f"info-{name}": (body, NOT_A_HUB)
        for name, body in {
            "html": PAGE,
            "list": b"[]",
            "siblings": json.dumps({"id": "a/b", "siblings": [None]}).encode(),
        }.items()
    },
    **{
        f"index-{name}": (body, NO_INDEX)
        for name, body in {
            "empty": b"{}",
            "list": bent(INDEX, "weight_map", ["a"]),
            "numbers": bent(INDEX, "weight_map", {"a": 1}),
            "null": bent(INDEX, "weight_map", None),
            "textsize": bent(INDEX, "metadata", {"total_size": "5"}),
            "listmetadata": bent(INDEX, "metadata", []),
        }.items()
    },
    "index-html": (PAGE, "is not a JSON object"),
    "config-html": (PAGE, "is not a JSON object"),
    "config-nested": (b"[" * 200_000, "is not a JSON object"),
    "config-list": (b"[]", "is not a JSON object"),
    "config-nolayers": (b'{"hidden_size": 3}', "has none of the keys"),
    "config-boollayers": (bent(CONFIG, "num_hidden_layers", True), "which cannot be"),
    "config-negative": (bent(CONFIG, "num_hidden_layers", -2), "which cannot be"),
    "config-wordwidth": (bent(CONFIG, "hidden_size", "wide"), "which cannot be"),
}
ATTACKS: dict[str, Callable[[_Handler], None]] = {
    **{name: attack for name, (attack, _) in ANYWHERE.items()},
    "short": partial(_lie, factor=0.5),
    "endless": partial(_endless, body=json.dumps(tree()).encode()),
    "next": lambda to: _endless(to, json.dumps(tree()).encode(), to.elsewhere),
    "elsewhere": _elsewhere,
    "dripfile": partial(_file, size=9999, send=ANYWHERE["drip"][0]),
    "hugefile": partial(_file, size=7, send=_huge),
    **{name: _just(body) for name, (body, _) in REFUSED.items()},
}
# Repository -> what the sentence says.
EXPECTED: dict[str, str] = {
    **{f"{w}-{name}": said for name, (_, said) in ANYWHERE.items() for w in ("refs", "tree")},
    **{f"config-{n}": ANYWHERE[n][1] for n in ("drip", "huge", "gzip", "gated401", "gated403")},
    "refs-short": NOT_A_HUB,
    "tree-endless": NO_ANSWER,
    "tree-next": NO_ANSWER,
    **{name: said for name, (_, said) in REFUSED.items()},
    "config-dripfile": "bytes in 1 s",
    "config-hugefile": "sends more than 1,000,000 bytes",
}


@contextmanager
def hostile(elsewhere: str = "") -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    """Serve; yield the address and, as they come, the paths that are asked for, each with the token shown."""
    shown: list[tuple[str, str | None]] = []
    released = threading.Event()
    fields = {"elsewhere": elsewhere, "shown": shown, "released": released}
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), fields)) as server:
        server.daemon_threads = True
        server.handle_error = lambda *_: None  # who asked has gone, as planned
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", shown
        finally:
            released.set()
            server.shutdown()


def attacked(endpoint: str, home: Path, **settings: str) -> dict[str, tuple[str, float, str]]:
    """What the library says of each repository, after how many seconds, and the kind of its error."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
    own = {"HF_ENDPOINT": endpoint, "HF_HOME": str(home), "HF_TOKEN": TOKEN}
    library = str(Path(__file__).parents[1] / "workflow")
    done = subprocess.run(
        [sys.executable, __file__],
        env={**variables, **own, "NO_PROXY": "127.0.0.1", "PYTHONPATH": library, **settings},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def _attack_all() -> None:
    from concurrent.futures import ThreadPoolExecutor

    from shape_of_learning.checkpoints.lock import LockedRevision
    from shape_of_learning.checkpoints.resolution import listed_shape, resolve
    from shape_of_learning.hub import hub_client, listing, retries
    from shape_of_learning.hub.hub_file import take_file
    from shape_of_learning.hub.remote_revision import RemoteFile, RemoteRevision

    # Nobody is spared by waiting here: all bounds are a fraction of what they are.
    listing.ANSWER_SECONDS = 3.0
    hub_client.SLOW_SECONDS = 1.0
    sleep = time.sleep
    time.sleep = lambda seconds: sleep(seconds / 100)
    retries.TRIES = 2

    def attack(name: str) -> tuple[str, float, str]:
        begun = time.monotonic()
        revision = "other" if name.startswith("info-") else "main"
        wanted = LockedRevision(f"attack/{name}", revision)
        try:
            if name.endswith(("dripfile", "hugefile")):
                with tempfile.TemporaryDirectory() as folder:
                    whence = RemoteRevision(wanted.repository, "main", COMMIT, {})
                    file = RemoteFile("config.json", 9999, None, "c" * 40)
                    target = Path(folder, "config.json")
                    take_file(whence, file, target, kept=Path(folder, "kept"), where="model `m`")
            found, _ = resolve({"x": wanted}, where="model `m`")
            said, kind = str(listed_shape(found["x"], where="model `m`")), ""
        except Exception as error:
            said, kind = str(error), type(error).__name__
        return said, time.monotonic() - begun, kind

    # Those that send much come one by one, so that the memory is that of the worst and not of chance.
    much = [name for name in EXPECTED if name.endswith(("huge", "hugefile", "gzip", "nested"))]
    outcome = {name: attack(name) for name in much}
    # Not ru_maxrss, which begins with that of the process that has started this one.
    status = Path("/proc/self/status").read_text()
    memory = int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])
    others = [name for name in [*EXPECTED, "config-elsewhere", "config-fine"] if name not in much]
    with ThreadPoolExecutor(16) as pool:
        outcome |= zip(others, pool.map(attack, others), strict=True)
    print(json.dumps(outcome | {"memory": memory}))


if __name__ == "__main__":
    _attack_all()
