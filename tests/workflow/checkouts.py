"""A copy of the files of a clone, in which Snakemake runs as a user runs it."""

import csv
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import yaml

EMPTY: Mapping[str, str] = MappingProxyType({})
REPOSITORY = Path(__file__).parents[2]
# Other processes write and remove compiled modules and leftovers of builds while a copy is made.
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
        """Return the variables of Snakemake, without the user's Hugging Face settings and without a GPU.

        A GPU sums in another order, so that tables would not be equal byte for byte.
        """
        inherited_variables = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
        changed_variables = {
            "HF_HOME": str(self.folder / "hf"),
            # All checkouts share the unpacked files of packages, in folders named by a digest.
            "HF_ASSETS_CACHE": str(REPOSITORY / ".snakemake/unpacked"),
            "HF_HUB_OFFLINE": "1",
            "CUDA_VISIBLE_DEVICES": "",
            # The first job compiles the library for all others.
            "PYTHONDONTWRITEBYTECODE": "",
        }
        variables = {**inherited_variables, **changed_variables, **more}
        # Jobs call `python`; it must be the one that has the dependencies.
        variables["PATH"] = f"{self.python.parent}{os.pathsep}{variables['PATH']}"
        return variables

    def plan_jobs(self, *arguments: str) -> dict[str, int]:
        """Return the number of jobs that a dry run plans, by rule."""
        table = self.snakemake(*arguments, "--dry-run", "--quiet", "rules")
        words = [line.split() for line in table.splitlines()]
        return {w[0]: int(w[1]) for w in words if len(w) == 2 and w[1].isdigit()}

    def read_rows(self, name: str) -> list[dict[str, str]]:
        """Read the rows of a table."""
        with (self.folder / name).open(newline="") as file:
            return list(csv.DictReader(file))

    def find_partial_files(self) -> list[Path]:
        """Find files that an interrupted job leaves beside final names."""
        return [path for path in self.folder.rglob(".*.partial*") if ".venv" not in path.parts]


def make_environment(folder: Path) -> Path:
    """Make an environment that has all packages of this one; return the folder for further packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    paths = {"base": str(folder), "platbase": str(folder)}
    packages = Path(sysconfig.get_path("purelib", "venv", paths))
    ours = sysconfig.get_path("purelib")
    (packages / "ours.pth").write_text(f"import site; site.addsitedir({ours!r})")
    return packages


def check_out(folder: Path) -> Checkout:
    """Copy the files that a clone would have into `folder`."""
    folder.mkdir(exist_ok=True)
    for name in ("workflow", "config", "envs"):
        shutil.copytree(REPOSITORY / name, folder / name, ignore=UNWANTED)
    return Checkout(folder)
