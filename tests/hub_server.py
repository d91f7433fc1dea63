"""A Hugging Face Hub on loopback.

The server is the PyPI package `olah` over git repositories that the tests make, whose branches are
the revisions. What it never does, such as to refuse or to stall, a proxy
before it does, as networks and gates do: `Proxy`.
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

from mirrors import serving

OLAH = "olah==0.5.4"
# What git lets a user's own settings change must not change a test.
SETTINGS = (
    *("user.name=tests", "user.email=tests@localhost", "commit.gpgsign=false"),
    *("core.autocrlf=false", "core.hooksPath=/dev/null"),
)
GIT = ["git", *(word for setting in SETTINGS for word in ("-c", setting))]


def olah_environment(folder: Path) -> Path:
    """Make, once, a virtual environment of `olah` and return its program.

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
        known = self._git("branch", "--list", branch)
        self._git(
            *("symbolic-ref", "HEAD", f"refs/heads/{branch}")
            if known
            else ("checkout", "--quiet", "--orphan", branch)
        )
        shutil.copytree(files, self.folder, dirs_exist_ok=True)
        for name in large:
            self._store_large(self.folder / name)
        self._git("add", "--all")
        self._git("commit", "--quiet", "--allow-empty", "--message", branch)
        return self._git("rev-parse", "HEAD")

    def branch(self, name: str, commit: str) -> None:
        """Let another branch be at a commit."""
        self._git("branch", name, commit)

    def _store_large(self, path: Path) -> None:
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        stored = self.folder / ".git" / "lfs" / "objects" / digest[:2] / digest[2:4] / digest
        stored.parent.mkdir(parents=True, exist_ok=True)
        stored.write_bytes(content)
        path.write_text(
            "version https://git-lfs.github.com/spec/v1\n"
            f"oid sha256:{digest}\nsize {len(content)}\n"
        )

    def _git(self, *arguments: str) -> str:
        done = subprocess.run(
            [*GIT, *arguments], cwd=self.folder, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()


@contextmanager
def served(root: Path, program: Path) -> Iterator[str]:
    """Serve the repositories under `root` and yield the endpoint."""
    port = free_port()
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


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass
class Proxy:
    """What the proxy does, and what it has seen.

    Attributes
    ----------
    upstream : str
        Endpoint of the Hub.
    token : str, optional
        Makes every model gated: files are for those who show it.
    damaged : str
        Name of the file that arrives with one bit turned.
    damages : int
        How many more downloads of it do; by default all.
    resized : dict of str to int
        File -> how many more downloads of it have a byte more than the Hub says.
    cut : dict of str to int
        File -> how many more downloads of it break off after half of what was asked for.
    failing : dict of str to int
        Last part of a path -> how many more requests for it are answered with `status`.
    asked : list of str
        The last part of the path of each GET request so far.
    """

    upstream: str
    token: str | None = None
    damaged: str = ""
    damages: int = 1_000_000
    resized: dict[str, int] = field(default_factory=dict)
    cut: dict[str, int] = field(default_factory=dict)
    failing: dict[str, int] = field(default_factory=dict)
    status: int = 503
    asked: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def counts_down(self, counter: dict[str, int], name: str) -> bool:
        with self._lock:
            counter[name] = counter.get(name, 0) - 1
            return counter[name] >= 0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: Proxy

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self.proxy.asked.append(self._name())
        self._answer()

    def _name(self) -> str:
        return urlsplit(self.path).path.rpartition("/")[2]

    def _answer(self) -> None:
        proxy, shown = self.proxy, self.headers.get("Authorization")
        is_gated = "/resolve/" in self.path or self._name() == "auth-check"
        if proxy.token and is_gated and shown != f"Bearer {proxy.token}":
            # The Hub: 401 for nobody, 403 for somebody who has not accepted the licence.
            self._start(403 if shown else 401, {"X-Error-Code": "GatedRepo", "Content-Length": "0"})
        elif proxy.token and self._name() == "auth-check":  # of which olah knows nothing
            self._start(200, {"Content-Length": "0"})
        elif proxy.counts_down(proxy.failing, self._name()):
            self._start(proxy.status, {"Content-Length": "0"})
        else:
            self._forward()

    def _start(self, status: int, headers: dict[str, str]) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _forward(self) -> None:
        status, headers, body = self._upstream()
        name = self._name()
        if name == self.proxy.damaged and body and self.proxy.damages > 0:
            body, self.proxy.damages = bytes([body[0] ^ 1]) + body[1:], self.proxy.damages - 1
        if self.command == "GET" and self.proxy.counts_down(self.proxy.resized, name):
            body += b"!"
        if self.command == "GET":  # a chunked body is whole now
            status, body, part = self._range(status, body)
            headers |= {"content-length": str(len(body))} | part
        self._start(status, headers)
        if self.command == "GET":
            if self.proxy.counts_down(self.proxy.cut, name):
                body = body[: len(body) // 2]
                self.close_connection = True
            self.wfile.write(body)

    def _upstream(self) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(urlsplit(self.proxy.upstream).netloc, timeout=30)
        try:
            headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "range")}
            connection.request(self.command, self.path, headers=headers)
            answer = connection.getresponse()
            kept = {k.lower(): v for k, v in answer.getheaders()}
            for hop_by_hop in ("transfer-encoding", "connection"):
                kept.pop(hop_by_hop, None)
            return answer.status, kept, answer.read()
        finally:
            connection.close()

    def _range(self, status: int, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        """The part that was asked for; `olah` itself always sends the whole of its own files."""
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if status != 200 or not asked:
            return status, body, {}
        start, total = int(asked[1]), len(body)
        if start >= total:
            return 416, b"", {"content-range": f"bytes */{total}"}
        return 206, body[start:], {"content-range": f"bytes {start}-{total - 1}/{total}"}


@contextmanager
def proxied(proxy: Proxy, port: int = 0) -> Iterator[str]:
    """Serve the proxy and yield its endpoint."""
    with serving(type("Handler", (_Handler,), {"proxy": proxy}), port) as address:
        yield address
