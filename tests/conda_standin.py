"""A stand-in for the `conda` command, for machines that reach PyPI but no conda channel.

    python tests/conda_standin.py FOLDER

makes the folder in which conda itself would be installed. Its command answers what Snakemake 9.27 asks of conda
and makes each environment an isolated virtual environment with just the packages that the file lists, from PyPI
and at the versions of the pip lock. So a rule whose file forgets a package fails here as it would there. The
stand-in cannot show that conda-forge has these packages, that they can be installed together, or that its builds
use a GPU.
"""

import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).parents[1]
LOCKS = ("envs/pip/torch.txt", "envs/pip/workflow.txt", "envs/pip/tasks.txt")
CHANNELS = ["conda-forge", "nodefaults"]
# Snakemake asks for 24.7.1 at least.
VERSION = "24.11.0"
# Snakemake sources it before it sets `-e`, so a missing environment must end the shell here.
ACTIVATE = """\
if [ ! -d "$1/conda-meta" ]; then
    echo "EnvironmentLocationNotFound: Not a conda environment: $1" >&2
    exit 1
fi
export CONDA_PREFIX="$1" CONDA_DEFAULT_ENV="$1" PATH="$1/bin:$PATH"
hash -r
"""
# Names of packages for pip and for imports, where they differ from the names for conda.
PIP_NAMES = {
    "huggingface_hub": "huggingface-hub",
    "matplotlib-base": "matplotlib",
    "pytorch": "torch",
}
MODULES = {
    "matplotlib-base": "matplotlib",
    "pytorch": "torch",
    "pyyaml": "yaml",
    "pydantic-core": "pydantic_core",
    "scikit-learn": "sklearn",
    "vl-convert-python": "vl_convert",
}


@dataclass(frozen=True)
class EnvironmentFile:
    """The versions of Python and of each package by its conda name, all as major.minor."""

    python: str
    packages: dict[str, str]


def read_environment_file(path: Path) -> EnvironmentFile:
    """Read a file; refuse other notations of conda, so that all files look alike."""
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    if content.keys() != {"channels", "dependencies"} or content["channels"] != CHANNELS:
        sys.exit(f"{path}: it must have the channels {', '.join(CHANNELS)} and dependencies")
    for pin in content["dependencies"]:
        if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*=\d+\.\d+", pin):
            sys.exit(f"{path}: {pin!r} is not of the form name=major.minor")
    pins = dict(pin.split("=") for pin in content["dependencies"])
    return EnvironmentFile(pins.pop("python"), pins)


def lay_out(base: Path) -> None:
    """Make the folder `base`, whose `bin` is to be on the PATH."""
    binaries = base / "bin"
    binaries.mkdir(parents=True, exist_ok=True)
    # Without hashes: with one, pip and uv would require one for each package.
    pins = [
        line.split()[0] for name in LOCKS for line in (REPOSITORY / name).open() if "==" in line
    ]
    (base / "pins.txt").write_text("\n".join(pins))
    (binaries / "activate").write_text(ACTIVATE)
    command = shlex.join([sys.executable, str(Path(__file__).resolve()), str(base)])
    (binaries / "conda").write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    (binaries / "conda").chmod(0o755)


def make_environment(prefix: Path, environment: EnvironmentFile, constraints: Path) -> None:
    """Make the folder `prefix` with Python, the listed packages, and their requirements."""
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    # The demo's text is the documentation of Python, and changes with each patch release.
    is_running = platform.python_version().startswith(f"{environment.python}.")
    python = sys.executable if is_running else environment.python
    make = ["venv", "--quiet", "--no-project", "--no-python-downloads", "--python", python]
    subprocess.run([uv, *make, prefix], check=True)
    packages = [f"{PIP_NAMES.get(name, name)}=={v}.*" for name, v in environment.packages.items()]
    options = ["--python", prefix / "bin/python", "--constraint", constraints]
    for option in ("index-url", "extra-index-url", "find-links"):
        options += [word for value in read_pip_setting(option) for word in (f"--{option}", value)]
    # As pip does: the best version of all indexes, and not that of the first index.
    install = [uv, "pip", "install", "--quiet", "--index-strategy", "unsafe-best-match"]
    subprocess.run([*install, *options, *packages], check=True)
    (prefix / "conda-meta").mkdir()
    (prefix / "conda-meta" / "history").touch()


def read_pip_setting(option: str) -> list[str]:
    """Read a setting of pip, since `uv` does not read them."""
    value = os.environ.get(f"PIP_{option.upper().replace('-', '_')}")
    if value is None:
        ask = [sys.executable, "-m", "pip", "config", "get", f"global.{option}"]
        value = subprocess.run(ask, capture_output=True, text=True).stdout  # empty if it is not set
    return value.split()


def main(base: Path, arguments: list[str]) -> None:
    """Answer one call of the command."""
    match arguments:
        case []:
            lay_out(base)
        case ["--version"]:
            print(f"conda {VERSION} (a stand-in over pip)")
        case ["info", "--json"]:
            info = {"platform": "linux-64", "conda_version": VERSION, "conda_prefix": str(base)}
            print(json.dumps(info))
        case ["config", "--get", "channel_priority", "--json"]:
            print(json.dumps({"get": {"channel_priority": "strict"}}))
        case ["clean", *_]:
            pass
        case ["env", "create", *options]:
            file, prefix = (options[options.index(o) + 1] for o in ("--file", "--prefix"))
            make_environment(Path(prefix), read_environment_file(Path(file)), base / "pins.txt")
        case _:
            sys.exit(f"the stand-in for conda does not know: conda {' '.join(arguments)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
