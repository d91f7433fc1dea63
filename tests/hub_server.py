"""A Hugging Face Hub on loopback.

The server is the PyPI package `olah` over git repositories that the tests make, whose branches are
the revisions. What it never does, to refuse, to stall or to damage, a proxy before it does.
"""

import hashlib
import http.client
import json
import shutil
import socket
import subprocess
import threading
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

OLAH = "olah==0.5.4"
# What git lets a user's own settings change must not change a test.
GIT = [
    *(
        "git",
        "-c",
        "user.name=tests",
        "-c",
        "user.email=tests@localhost",
        "-c",
        "commit.gpgsign=false",
    ),
    *("-c", "core.autocrlf=false", "-c", "core.hooksPath=/dev/null"),
]


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
    """A git repository where `olah` looks for ``organisation/name``."""

    def __init__(self, root: Path, name: str) -> None:
        self.name = name
        self.folder = root / "models" / name
        self.folder.mkdir(parents=True)
        self._git("init", "--quiet", "--initial-branch=main")

    def commit(self, branch: str, files: Path, *, large: tuple[str, ...] = ()) -> str:
        """Make `files` the content of a branch and return the commit.

        Files named in `large` are stored as Git LFS does: a pointer in the tree, the bytes beside it.
        """
        for old in self.folder.iterdir():
            if old.name != ".git":
                shutil.rmtree(old) if old.is_dir() else old.unlink()
        self._git("checkout", "--quiet", "--orphan", branch)
        shutil.copytree(files, self.folder, dirs_exist_ok=True)
        for name in large:
            self._store_large(self.folder / name)
        self._git("add", "--all")
        self._git("commit", "--quiet", "--allow-empty", "--message", branch)
        return self._git("rev-parse", "HEAD")

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
class Front:
    """A proxy before the Hub.

    Attributes
    ----------
    upstream : str
        Endpoint of the Hub.
    token : str, optional
        Makes every model gated: files are for those who show it.
    stalled : str
        Name of the file whose download stops half-way, until `released` is set; `reached` is set there.
    damaged : str
        Name of the file that arrives with one bit turned.
    asked : list of str
        The files of all GET requests so far.
    """

    upstream: str
    token: str | None = None
    stalled: str = ""
    damaged: str = ""
    reached: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)
    asked: list[str] = field(default_factory=list)


@contextmanager
def in_front(front: Front) -> Iterator[str]:
    """Serve the proxy and yield its endpoint."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            front.asked.append(self._name())
            self._answer()

        def _name(self) -> str:
            return urlsplit(self.path).path.rpartition("/")[2]

        def _answer(self) -> None:
            shown = self.headers.get("Authorization")
            if front.token and "/resolve/" in self.path and shown != f"Bearer {front.token}":
                # The Hub: 401 for nobody, 403 for somebody who has not accepted the licence.
                self.send_response(403 if shown else 401)
                self.send_header("X-Error-Code", "GatedRepo")
                self.send_header("X-Error-Message", "Access to this model is restricted.")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            status, headers, body = self._upstream()
            name = self._name()
            if name == front.damaged and body:
                body = bytes([body[0] ^ 1]) + body[1:]
            self.send_response_only(status)
            for header, value in headers:
                if header.lower() not in ("transfer-encoding", "connection"):
                    self.send_header(header, value)
            self.end_headers()
            half = len(body) // 2 if name == front.stalled else len(body)
            self.wfile.write(body[:half])
            if half < len(body):
                self.wfile.flush()
                front.reached.set()
                front.released.wait(60)
                try:
                    self.wfile.write(body[half:])
                except ConnectionError:  # whoever asked was killed, as planned
                    self.close_connection = True

        def _upstream(self) -> tuple[int, list[tuple[str, str]], bytes]:
            connection = http.client.HTTPConnection(urlsplit(front.upstream).netloc, timeout=30)
            try:
                headers = {k: v for k, v in self.headers.items() if k.lower() != "host"}
                connection.request(self.command, self.path, headers=headers)
                answer = connection.getresponse()
                body = answer.read()
                kept = answer.getheaders()
            finally:
                connection.close()
            if self.command == "GET":  # a chunked body is whole now
                kept = [(k, v) for k, v in kept if k.lower() != "content-length"]
                kept.append(("Content-Length", str(len(body))))
            return answer.status, kept, body

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            front.released.set()
            server.shutdown()
            thread.join()
