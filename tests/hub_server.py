"""A Hugging Face Hub on loopback.

The server is the PyPI package `olah` over git repositories that the tests make, whose branches are
the revisions. What it never does, such as to refuse or to stall, a proxy before it does: `Proxy`.
"""

import hashlib
import json
import shutil
import socket
import subprocess
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hub_proxy import Proxy as Proxy
from hub_proxy import proxied as proxied

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
