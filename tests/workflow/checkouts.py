"""A copy of what a user clones, in which Snakemake is run as a user runs it."""

import csv
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import yaml

EMPTY: Mapping[str, str] = MappingProxyType({})
REPOSITORY = Path(__file__).parents[2]
# Other processes write and remove these while a copy is made: compiled modules and what a build leaves.
UNWANTED = shutil.ignore_patterns("__pycache__", "*.egg-info")


@dataclass(frozen=True)
class Checkout:
    """A folder that holds the copy, and the Python that runs Snakemake and the jobs there."""

    folder: Path
    python: Path = Path(sys.executable)

    def write(self, name: str, content: object) -> Path:
        """Write a YAML file."""
        path = self.folder / name
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        return path

    def snakemake(
        self, *arguments: str, succeeds: bool = True, environment: Mapping[str, str] = EMPTY
    ) -> str:
        """Run Snakemake and return all that it prints."""
        run = subprocess.run(
            [self.python, "-m", "snakemake", *arguments],
            cwd=self.folder,
            env=self.environment(**environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert (run.returncode == 0) == succeeds, run.stdout[-5000:]
        return run.stdout

    def environment(self, **more: str) -> dict[str, str]:
        """The variables that Snakemake sees: nothing of the user's own Hugging Face settings, and no GPU.

        Numbers of a GPU are other sums of the same, so tables would not be equal byte for byte.
        """
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
        own = {
            "HF_HOME": str(self.folder / "hf"),
            # A file of a package is unpacked once for all checkouts, into a folder that its bytes name.
            "HF_ASSETS_CACHE": str(REPOSITORY / ".snakemake/unpacked"),
            "HF_HUB_OFFLINE": "1",
            "CUDA_VISIBLE_DEVICES": "",
            # The first job compiles the library for all others.
            "PYTHONDONTWRITEBYTECODE": "",
        }
        variables = {**inherited, **own, **more}
        # Jobs call `python`; it must be the one that has the dependencies.
        variables["PATH"] = f"{self.python.parent}{os.pathsep}{variables['PATH']}"
        return variables

    def planned(self, *arguments: str) -> dict[str, int]:
        """Jobs that a dry-run plans, by rule."""
        table = self.snakemake(*arguments, "--dry-run", "--quiet", "rules")
        words = [line.split() for line in table.splitlines()]
        return {w[0]: int(w[1]) for w in words if len(w) == 2 and w[1].isdigit()}

    def rows(self, name: str) -> list[dict[str, str]]:
        """The rows of a table."""
        with (self.folder / name).open(newline="") as file:
            return list(csv.DictReader(file))

    def partial_files(self) -> list[Path]:
        """What an interrupted job would leave beside final names."""
        return [path for path in self.folder.rglob(".*.partial*") if ".venv" not in path.parts]


def check_out(folder: Path) -> Checkout:
    """Copy the files that a clone would have into `folder`."""
    folder.mkdir(exist_ok=True)
    for name in ("workflow", "config", "envs"):
        shutil.copytree(REPOSITORY / name, folder / name, ignore=UNWANTED)
    return Checkout(folder)
