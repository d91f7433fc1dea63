"""The folder in which conda itself would be installed; `python -m conda_standin.base FOLDER` makes it."""

import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path

from conda_standin.environment import Source, pips_source

REPOSITORY = Path(__file__).parents[2]
LOCKS = ("requirements-torch.txt", "requirements.txt")
# Snakemake sources it before it sets `-e`, so a missing environment must end the shell here.
ACTIVATE = """\
if [ ! -d "$1/conda-meta" ]; then
    echo "EnvironmentLocationNotFound: Not a conda environment: $1" >&2
    exit 1
fi
export CONDA_PREFIX="$1" CONDA_DEFAULT_ENV="$1" PATH="$1/bin:$PATH"
hash -r
"""


def lay_out(base: Path) -> Path:
    """Make `base` and return the folder to put on the PATH."""
    binaries = base / "bin"
    binaries.mkdir(parents=True, exist_ok=True)
    # Without the hashes: pip and uv then want one of each package.
    pins = [
        line.split()[0] for name in LOCKS for line in (REPOSITORY / name).open() if "==" in line
    ]
    (base / "pins.txt").write_text("\n".join(pins))
    (base / "source.json").write_text(json.dumps(asdict(pips_source(base / "pins.txt"))))
    (binaries / "activate").write_text(ACTIVATE)
    command = shlex.join([sys.executable, "-m", "conda_standin", str(base)])
    tests = shlex.quote(str(Path(__file__).parents[1]))
    (binaries / "conda").write_text(f'#!/bin/sh\nPYTHONPATH={tests} exec {command} "$@"\n')
    (binaries / "conda").chmod(0o755)
    return binaries


def source_of(base: Path) -> Source:
    """Where the environments of a base take their packages from."""
    return Source(**json.loads((base / "source.json").read_text()))


if __name__ == "__main__":
    print(lay_out(Path(sys.argv[1]).resolve()))
