"""An environment as the stand-in makes it: a virtual environment that sees nothing of its host."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from conda_standin.environment_file import EnvironmentFile, EnvironmentFileError
from conda_standin.names import NAMES


@dataclass(frozen=True)
class Source:
    """Where packages come from: what pip has been told, and the versions of the lock."""

    constraints: str
    index_url: tuple[str, ...]
    extra_index_url: tuple[str, ...]
    find_links: tuple[str, ...]


def pips_source(constraints: Path) -> Source:
    """Ask pip; `uv` does not read its settings."""
    options = ("index-url", "extra-index-url", "find-links")
    told = {option.replace("-", "_"): _pip_option(option) for option in options}
    return Source(constraints=str(constraints), **told)


def make_environment(prefix: Path, wanted: EnvironmentFile, source: Source) -> None:
    """Make the folder `prefix`: Python, the packages that are listed, and what these need."""
    python = _interpreter(wanted.python)
    packages = [f"{_pip_name(name)}=={v}.*" for name, v in sorted(wanted.packages.items())]
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    # pip works as well, and takes minutes where uv takes seconds.
    make = _make_by_uv(uv, python, prefix) if uv else _make_by_pip(python, prefix)
    if packages:
        subprocess.run([*make, *_options(source, by_uv=bool(uv)), *packages], check=True)
    (prefix / "conda-meta").mkdir()
    (prefix / "conda-meta" / "history").write_text("".join(f"# {each}\n" for each in packages))


def _make_by_uv(uv: str, python: str, prefix: Path) -> list[str]:
    subprocess.run([uv, "venv", "--quiet", "--no-project", "--python", python, prefix], check=True)
    return [uv, "pip", "install", "--quiet", "--python", str(prefix / "bin" / "python")]


def _make_by_pip(python: str, prefix: Path) -> list[str]:
    subprocess.run([python, "-m", "venv", prefix], check=True)
    return [str(prefix / "bin" / "python"), "-m", "pip", "install", "--quiet"]


def _options(source: Source, *, by_uv: bool) -> list[str]:
    options = ["--constraint", source.constraints]
    for option in ("index_url", "extra_index_url", "find_links"):
        for value in getattr(source, option):
            options += [f"--{option.replace('_', '-')}", value]
    # As pip does: the best version of all indexes, and not that of the first index.
    return [*options, "--index-strategy", "unsafe-best-match"] if by_uv else options


def _pip_option(name: str) -> tuple[str, ...]:
    told = os.environ.get(f"PIP_{name.upper().replace('-', '_')}")
    if told is None:
        told = subprocess.run(
            [sys.executable, "-m", "pip", "config", "get", f"global.{name}"],
            capture_output=True,
            text=True,
        ).stdout  # empty if it is not set
    return tuple(told.split())


def _pip_name(name: str) -> str:
    if name not in NAMES:
        raise EnvironmentFileError(
            f"the package `{name}` is not known here; add it to tests/conda_standin/names.py"
        )
    return NAMES[name].pip


def _interpreter(version: str) -> str:
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    found = shutil.which(f"python{version}")
    if found is None:
        raise EnvironmentFileError(f"there is no Python {version} on this machine")
    return found
