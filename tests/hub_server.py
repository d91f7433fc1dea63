"""A Hugging Face Hub on loopback.

The server is the PyPI package `olah` over git repositories that the tests make; their branches are
the revisions. `olah` never refuses or fails; `Proxy`, before it, does so as networks and gates do.
"""

import hashlib
import http.client
import json
import re
import shutil
import socket
import subprocess
import threading
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import urlsplit

from mirrors import serve

OLAH = "olah==0.5.4"
# The user's own settings of git must not change a test.
SETTINGS = (
    "user.name=tests",
    "user.email=tests@localhost",
    "commit.gpgsign=false",
    "core.autocrlf=false",
    "core.hooksPath=/dev/null",
)
GIT = ["git", *(word for setting in SETTINGS for word in ("-c", setting))]


def install_olah(folder: Path) -> Path:
    """Install `olah` in a virtual environment, once, and return its program.

    Raises `subprocess.CalledProcessError` if pip cannot install it.
    """
    program = folder / "bin" / "olah-cli"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        subprocess.run(
            [folder / "bin" / "python", "-m", "pip", "install", "--quiet", OLAH],
            check=True,
            capture_output=True,
            text=True,
        )
        (folder / "complete").touch()
    return program


class HubRepository:
    """A git repository where `olah` looks for ``organisation/name``, of `kind` models or datasets."""

    def __init__(self, root: Path, name: str, kind: str = "models") -> None:
        self.name = name
        self.folder = root / kind / name
        self.folder.mkdir(parents=True)
        self._git("init", "--quiet", "--initial-branch=main")

    def commit(self, branch: str, files: Path, *, large: tuple[str, ...] = ()) -> str:
        """Make `files` the content of a branch, new or on top of what it has, and return the commit.

        Files named in `large` are stored as Git LFS does: a pointer in the tree, the bytes beside it.
        """
        for old in self.folder.iterdir():
            if old.name != ".git":
                shutil.rmtree(old) if old.is_dir() else old.unlink()
        if self._git("branch", "--list", branch):
            self._git("symbolic-ref", "HEAD", f"refs/heads/{branch}")
        else:
            self._git("checkout", "--quiet", "--orphan", branch)
        shutil.copytree(files, self.folder, dirs_exist_ok=True)
        for name in large:
            self._store_large(self.folder / name)
        self._git("add", "--all")
        self._git("commit", "--quiet", "--allow-empty", "--message", branch)
        return self._git("rev-parse", "HEAD")

    def branch(self, name: str, commit: str) -> None:
        """Make a branch at a commit."""
        self._git("branch", name, commit)

    def _store_large(self, path: Path) -> None:
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        object_path = self.folder / ".git" / "lfs" / "objects" / digest[:2] / digest[2:4] / digest
        object_path.parent.mkdir(parents=True, exist_ok=True)
        object_path.write_bytes(content)
        path.write_text(
            "version https://git-lfs.github.com/spec/v1\n"
            f"oid sha256:{digest}\nsize {len(content)}\n"
        )

    def _git(self, *arguments: str) -> str:
        process = subprocess.run(
            [*GIT, *arguments], cwd=self.folder, check=True, capture_output=True, text=True
        )
        return process.stdout.strip()


@contextmanager
def serve_hub(root: Path, program: Path) -> Iterator[str]:
    """Serve the repositories under `root` and yield the endpoint."""
    port = find_free_port()
    settings = root / "olah.toml"
    settings.write_text(
        f"""
[basic]
host = "127.0.0.1"
port = {port}
repos-path = {json.dumps(str(root / "cache"))}
hf-scheme = "http"
hf-netloc = "127.0.0.1:9"
mirror-scheme = "http"
mirror-netloc = "127.0.0.1:{port}"
mirrors-path = [{json.dumps(str(root))}]

[accessibility]
offline = true
"""
    )
    with (root / "olah.log").open("w") as log:
        server = subprocess.Popen(
            [program, "--config", settings, "--log-path", root / "logs"],
            cwd=root,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            _wait_for(server, port, root / "olah.log")
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(timeout=20)


def _wait_for(server: subprocess.Popen, port: int, log: Path) -> None:
    for _ in range(300):
        if server.poll() is not None:
            raise RuntimeError(f"olah ended with {server.returncode}:\n{log.read_text()[-2000:]}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError(f"olah does not answer:\n{log.read_text()[-2000:]}")


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass
class Proxy:
    """A proxy that refuses, damages and breaks off, and that lists its requests.

    Attributes
    ----------
    upstream : str
        Endpoint of the Hub.
    token : str, optional
        Makes every model gated: only requests with this token get files.
    damaged_file : str
        Name of the file that arrives with one bit turned.
    damages : int
        How many more downloads of this file are damaged; by default all.
    surplus : dict of str to int
        File -> how many more downloads of it have a byte more than the Hub says.
    cuts : dict of str to int
        File -> how many more downloads of it break off half-way.
    failures : dict of str to int
        Last part of a path -> how many more requests for it are answered with `status`.
    status : int
        Status of these answers.
    requests : list of str
        The last part of the path of each GET request so far.
    """

    upstream: str
    token: str | None = None
    damaged_file: str = ""
    damages: int = 1_000_000
    surplus: dict[str, int] = field(default_factory=dict)
    cuts: dict[str, int] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    status: int = 503
    requests: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count_down(self, counter: dict[str, int], name: str) -> bool:
        with self._lock:
            counter[name] = counter.get(name, 0) - 1
            return counter[name] >= 0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: Proxy

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self.proxy.requests.append(self._read_name())
        self._answer()

    def _read_name(self) -> str:
        return urlsplit(self.path).path.rpartition("/")[2]

    def _answer(self) -> None:
        proxy = self.proxy
        authorisation = self.headers.get("Authorization")
        is_gated = "/resolve/" in self.path or self._read_name() == "auth-check"
        if proxy.token and is_gated and authorisation != f"Bearer {proxy.token}":
            # As the Hub: 401 without a token, 403 for a user who has not accepted the licence.
            status = 403 if authorisation else 401
            self._start(status, {"X-Error-Code": "GatedRepo", "Content-Length": "0"})
        elif proxy.token and self._read_name() == "auth-check":  # `olah` does not have this page
            self._start(200, {"Content-Length": "0"})
        elif proxy.count_down(proxy.failures, self._read_name()):
            self._start(proxy.status, {"Content-Length": "0"})
        else:
            self._forward()

    def _start(self, status: int, headers: dict[str, str]) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _forward(self) -> None:
        status, headers, body = self._ask_upstream()
        name = self._read_name()
        if name == self.proxy.damaged_file and body and self.proxy.damages > 0:
            body, self.proxy.damages = bytes([body[0] ^ 1]) + body[1:], self.proxy.damages - 1
        if self.command == "GET" and self.proxy.count_down(self.proxy.surplus, name):
            body += b"!"
        if self.command == "GET":  # a chunked body is whole now
            status, body, part = self._cut_range(status, body)
            headers |= {"content-length": str(len(body))} | part
        self._start(status, headers)
        if self.command == "GET":
            if self.proxy.count_down(self.proxy.cuts, name):
                body = body[: len(body) // 2]
                self.close_connection = True
            self.wfile.write(body)

    def _ask_upstream(self) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(urlsplit(self.proxy.upstream).netloc, timeout=30)
        try:
            headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "range")}
            connection.request(self.command, self.path, headers=headers)
            answer = connection.getresponse()
            answer_headers = {k.lower(): v for k, v in answer.getheaders()}
            for hop_by_hop in ("transfer-encoding", "connection"):
                answer_headers.pop(hop_by_hop, None)
            return answer.status, answer_headers, answer.read()
        finally:
            connection.close()

    def _cut_range(self, status: int, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        """Cut out the requested part; `olah` itself always sends the whole of its own files."""
        requested_range = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if status != 200 or not requested_range:
            return status, body, {}
        start, total = int(requested_range[1]), len(body)
        if start >= total:
            return 416, b"", {"content-range": f"bytes */{total}"}
        return 206, body[start:], {"content-range": f"bytes {start}-{total - 1}/{total}"}


@contextmanager
def serve_proxy(proxy: Proxy, port: int = 0) -> Iterator[str]:
    """Serve the proxy and yield its endpoint."""
    with serve(type("Handler", (_Handler,), {"proxy": proxy}), port) as address:
        yield address
