"""The command `conda`, as far as Snakemake 9.27 calls it; its first argument is the base folder."""

import json
import subprocess
import sys
from pathlib import Path

from conda_standin.base import source_of
from conda_standin.environment import make_environment
from conda_standin.environment_file import EnvironmentFileError, read_environment_file

# Snakemake asks for 24.7.1 at least.
VERSION = "24.11.0"
INFO = {"platform": "linux-64", "conda_version": VERSION}


def main(base: Path, arguments: list[str]) -> None:
    """Answer one call."""
    match arguments:
        case ["--version"]:
            print(f"conda {VERSION} (a stand-in over pip)")
        case ["info", "--json"]:
            print(json.dumps(INFO | {"conda_prefix": str(base)}))
        case ["config", "--get", "channel_priority", "--json"]:
            print(json.dumps({"get": {"channel_priority": "strict"}}))
        case ["clean", *_]:
            pass
        case ["env", "create", *options]:
            wanted = read_environment_file(Path(_value(options, "--file")))
            make_environment(Path(_value(options, "--prefix")), wanted, source_of(base))
        case _:
            sys.exit(f"the stand-in for conda does not know: conda {' '.join(arguments)}")


def _value(options: list[str], name: str) -> str:
    return options[options.index(name) + 1]


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), sys.argv[2:])
    except EnvironmentFileError as error:
        sys.exit(str(error))
    except subprocess.CalledProcessError as error:
        sys.exit(f"{error.cmd[0]} ended with {error.returncode}")
