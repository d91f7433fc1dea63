"""Environment files as this project writes them: conda-forge only, each package at major.minor."""

import re
from dataclasses import dataclass
from pathlib import Path

import yaml

CHANNELS = ["conda-forge", "nodefaults"]
KEYS = {"channels", "dependencies"}
PINNED = re.compile(r"(?P<name>[a-z0-9][a-z0-9._-]*)=(?P<version>\d+\.\d+)")


class EnvironmentFileError(Exception):
    """What is wrong with an environment file, in one sentence."""


@dataclass(frozen=True)
class EnvironmentFile:
    """Python's version, and that of each package by its conda name; all are major.minor."""

    python: str
    packages: dict[str, str]


def read_environment_file(path: Path) -> EnvironmentFile:
    """Read one; conda's many other ways to write it are refused, so that all files look alike."""
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict) or set(content) != KEYS:
        raise EnvironmentFileError(f"{path}: its keys must be {' and '.join(sorted(KEYS))}")
    if content["channels"] != CHANNELS:
        raise EnvironmentFileError(f"{path}: its channels must be {', '.join(CHANNELS)}")
    pins = dict(_pin(path, each) for each in content["dependencies"])
    if len(pins) < len(content["dependencies"]):
        raise EnvironmentFileError(f"{path}: a package is listed twice")
    if "python" not in pins:
        raise EnvironmentFileError(f"{path}: python itself is not listed")
    return EnvironmentFile(python=pins.pop("python"), packages=pins)


def _pin(path: Path, entry: object) -> tuple[str, str]:
    match = PINNED.fullmatch(str(entry))
    if match is None:
        raise EnvironmentFileError(f"{path}: {entry!r} is not of the form name=major.minor")
    return match["name"], match["version"]
