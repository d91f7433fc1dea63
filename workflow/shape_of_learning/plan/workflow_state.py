"""Which state of this workflow a run is planned by: its commit, and what of its code was changed since."""

import hashlib
import subprocess
from pathlib import Path
from typing import Any

CODE = ("Snakefile", "workflow", "envs")
READ_SUFFIXES = {".py", ".smk", ".yaml", ".rst", ""}


def workflow_state(folder: Path, unpacked_commit: str = "") -> dict[str, Any]:
    """Say what code the files of a folder are.

    Parameters
    ----------
    folder : Path
        Top of the repository, or of what was copied or unpacked of it.
    unpacked_commit : str
        Of what was unpacked, its commit; it has no history of its own.

    Returns
    -------
    dict
        ``commit``, empty outside a repository; ``state``: ``"clean"``, ``"dirty"`` or, without a commit,
        ``"unknown"``; ``changed``, the files of code that differ from the commit; and ``code``, a digest of
        all of them, which tells two dirty states apart.
    """
    changed: list[str] = []
    commit = unpacked_commit or _git(folder, "rev-parse", "HEAD").strip()
    if commit and not unpacked_commit:
        said = _git(folder, "status", "--porcelain", "-z", "--no-renames", "--", *CODE)
        changed = sorted(entry[3:] for entry in said.split("\0") if entry)
    return {
        "commit": commit,
        "state": "unknown" if not commit else "dirty" if changed else "clean",
        "changed": changed,
        "code": digest_of_code(folder),
    }


def digest_of_code(folder: Path) -> str:
    """SHA-256 of the names and the bytes of all files of the workflow's code, in the order of their names."""
    files = [
        path
        for name in CODE
        for path in ([folder / name] if (folder / name).is_file() else (folder / name).rglob("*"))
        if path.suffix in READ_SUFFIXES and path.is_file()
    ]
    content = hashlib.sha256()
    for path in sorted(files):
        content.update(f"{path.relative_to(folder).as_posix()}\0".encode())
        content.update(hashlib.sha256(path.read_bytes()).digest())
    return content.hexdigest()


def _git(folder: Path, *arguments: str) -> str:
    """What git says of a repository whose top is this folder; nothing if it is none, or there is no git."""
    git = ("git", "-C", str(folder))
    try:
        top = subprocess.run(
            [*git, "rev-parse", "--show-toplevel"], capture_output=True, text=True, check=True
        )
        if Path(top.stdout.strip()).resolve() != folder.resolve():
            return ""  # of a repository of the user's that it lies in
        return subprocess.run([*git, *arguments], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""
