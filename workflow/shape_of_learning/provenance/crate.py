"""An RO-Crate of a run: its results, and the inputs and software from which they were computed.

The crate follows the profile Workflow Run Crate (https://w3id.org/ro/wfrun/workflow/0.5). Its root is the
folder of the results, so that this folder, packed as it is, is a valid crate.
"""

import csv
import importlib.metadata
import mimetypes
import platform
import shutil
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from rocrate.model.contextentity import ContextEntity
from rocrate.model.entity import Entity
from rocrate.rocrate import ROCrate

from shape_of_learning.corpus.changes import read_removed_text
from shape_of_learning.files import compute_sha256, write_table
from shape_of_learning.provenance.job import ProvenanceJob

WORKFLOW = Path(__file__).parents[2]
LICENSE = (
    "The publisher of this run decides on its licence; the licence of the workflow is BSD-3-Clause."
)
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": "Workflow RO-Crate",
}
# Terms that the context of RO-Crate 1.1 lacks.
TERMS = {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"}
# Types of files that some systems do not know.
FORMATS = {".md": "text/markdown", ".csv": "text/csv", ".yaml": "application/yaml"}
JOB_COLUMNS = ("job", "seconds", "cpu_seconds", "max_rss_mb")


def describe_run(job: ProvenanceJob, results: Sequence[Path], crate_file: Path) -> None:
    """Write the description of a run into the folder of its results, and its other files into ``provenance/`` there.

    Parameters
    ----------
    job : ProvenanceJob
    results : sequence of Path
        All results.
    crate_file : Path
        ``ro-crate-metadata.json`` in the folder of the results; this folder also contains ``benchmarks``.
    """
    top = crate_file.parent
    folder = top / "provenance"
    shutil.rmtree(folder / "locks", ignore_errors=True)  # an earlier run may have had other models
    (folder / "locks").mkdir(parents=True)
    snakefile = Path(shutil.copyfile(WORKFLOW / "Snakefile", folder / "Snakefile"))
    digests = write_digests(folder / "outputs.sha256", top, results)
    write_jobs(folder / "jobs.csv", top / "benchmarks")
    settings = folder / "configuration.yaml"
    settings.write_text(yaml.safe_dump(dict(job.configuration), sort_keys=False), encoding="utf-8")
    inputs = [top / name for name in job.inputs]
    for lock in filter(Path.exists, map(Path, job.locks)):
        inputs.append(Path(shutil.copyfile(lock, folder / "locks" / lock.name)))
    crate = _Crate(top, job)
    workflow = crate.add_workflow(
        dest_path="provenance/Snakefile",
        main=True,
        lang="snakemake",
        properties={
            "name": "shape-of-learning",
            "sha256": compute_sha256(snakefile),
            "license": "https://spdx.org/licenses/BSD-3-Clause",
            "version": describe_workflow(),
        },
    )
    listed_results = [crate.add_listed_file(path, digest) for path, digest in digests.items()]
    for path in (folder / "outputs.sha256", folder / "jobs.csv", settings):
        crate.add_listed_file(path)
    end_time = datetime.now(UTC).isoformat(timespec="seconds")
    action = crate.add_entity(
        "#run",
        "CreateAction",
        name="The run",
        endTime=end_time,
        instrument=workflow,
        object=[crate.add_listed_file(path) for path in inputs if path.exists()],
        result=listed_results,
        agent=crate.add_environment(),
    )
    crate.describe_root(datePublished=end_time, mentions=[action])
    crate.metadata.write(top)


def write_digests(path: Path, folder: Path, results: Sequence[Path]) -> dict[Path, str]:
    """Return the SHA-256 of all results, and write them as ``sha256sum --check`` reads them in a folder."""
    digests = {result: compute_sha256(result) for result in results}
    lines = [
        f"{digests[result]}  {result.relative_to(folder).as_posix()}\n"
        for result in sorted(digests)
    ]
    path.write_text("".join(lines), encoding="utf-8")
    return digests


def write_jobs(path: Path, benchmarks: Path) -> None:
    """Write time and memory of the jobs from Snakemake's benchmarks; cells are empty if a job was too short."""
    rows = []
    for file in sorted(benchmarks.rglob("*.tsv")):
        *_, last = csv.DictReader(file.read_text(encoding="utf-8").splitlines(), delimiter="\t")
        job = file.relative_to(benchmarks).with_suffix("").as_posix()
        rows.append([job, *(last[key].strip("NA-") for key in ("s", "cpu_time", "max_rss"))])
    write_table(path, JOB_COLUMNS, rows)


def describe_workflow() -> str:
    """Describe this checkout: version, commit, and ``-dirty`` if files have changed since, or code was added."""
    from shape_of_learning import __version__

    if (
        Path(_ask_git("rev-parse", "--show-toplevel")) != WORKFLOW.parent
    ):  # a repository of the user
        return __version__
    commit = _ask_git("rev-parse", "HEAD")
    changes = _ask_git("status", "--porcelain", "--untracked-files=no", "--", ":/")
    new_code = _ask_git("status", "--porcelain", "--", ".")  # such as a paper of one's own
    suffix = "-dirty" if changes or new_code else ""
    return f"{__version__}, commit {commit}{suffix}" if commit else __version__


def _ask_git(*arguments: str) -> str:
    """Return the answer of git about the folder of the workflow; empty if it has none."""
    command = ("git", "-C", str(WORKFLOW), *arguments)
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except FileNotFoundError:  # git is not installed
        return ""


class _Crate(ROCrate):
    """A crate of one run, in the folder of its results."""

    def __init__(self, results: Path, job: ProvenanceJob) -> None:
        super().__init__(version="1.1")
        self.metadata.extra_terms.update(TERMS)
        self.results, self.job = results, job

    def add_entity(self, identifier: str, kind: str, **properties: Any) -> Entity:
        """Add an entity without its empty properties."""
        filled_properties = {
            key: value for key, value in properties.items() if value not in (None, "", [])
        }
        return self.add(
            ContextEntity(self, identifier, properties={"@type": kind, **filled_properties})
        )

    def describe_root(self, **properties: Any) -> None:
        """Describe the results: their content, their papers and the profiles of the crate."""
        run = f" of the run `{self.job.name}`" if self.job.name else ""
        titles = "; ".join(title for title, _ in self.job.papers) or "no paper"
        properties |= {
            "name": f"Results{run} of shape-of-learning",
            "description": f"Figures, tables and verdicts of {titles}, measured on {self.job.source}, with the "
            "inputs and the software that they were computed with.",
            "license": LICENSE,
            "conformsTo": [
                self.add_entity(url, "CreativeWork", name=name, version=url.rpartition("/")[2])
                for url, name in PROFILES.items()
            ],
            "citation": [
                self.add_entity(f"#paper-{n}", "ScholarlyArticle", name=title, description=citation)
                for n, (title, citation) in enumerate(self.job.papers, start=1)
            ],
        }
        for key, value in properties.items():
            self.root_dataset[key] = value

    def add_listed_file(self, path: Path, digest: str = "") -> Entity:
        """Add a file in the folder of the results, with its title, caption, digest, size and format."""
        name = path.relative_to(self.results).as_posix()
        caption = path.with_suffix(".md")
        description = read_removed_text(path) if path.name == "alphabet.json" else ""
        if caption.exists():
            description = caption.read_text(encoding="utf-8").strip()
        facts = {
            "name": self.job.titles.get(name.removesuffix(path.suffix), name),
            "description": description,
            "sha256": digest or compute_sha256(path),
            "contentSize": str(path.stat().st_size),
            "encodingFormat": FORMATS.get(path.suffix) or mimetypes.guess_type(name)[0],
        }
        return self.add_file(dest_path=name, properties={k: v for k, v in facts.items() if v})

    def add_environment(self) -> Entity:
        """Add the packages of this job's environment; the logs of other jobs list their own packages."""
        packages = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions()}
        # The workflow has an entity of its own, with the version of the code that ran.
        packages.pop("shape-of-learning", None)
        return self.add_entity(
            "#environment",
            "SoftwareApplication",
            name="The environment that described the run",
            softwareVersion=f"Python {platform.python_version()}",
            operatingSystem=platform.platform(),
            softwareRequirements=[
                f"{name} {version}" for name, version in sorted(packages.items())
            ],
        )
