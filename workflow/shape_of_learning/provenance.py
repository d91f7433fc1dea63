"""What a run was computed from and by: an RO-Crate of its results.

The crate follows the profile Workflow Run Crate (https://w3id.org/ro/wfrun/workflow/0.5). Its root is the
folder of the results, so that this folder, packed as it is, is a valid crate.
"""

import csv
import importlib.metadata
import mimetypes
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from rocrate.model.contextentity import ContextEntity
from rocrate.model.entity import Entity
from rocrate.rocrate import ROCrate

from shape_of_learning.corpus.changes import read_losses
from shape_of_learning.files import compute_sha256, write_table

WORKFLOW = Path(__file__).parents[1]
LICENSE = "Whoever publishes this run says under which licence; the workflow's own is BSD-3-Clause."
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": "Workflow RO-Crate",
}
# The context of RO-Crate 1.1 lacks it.
TERMS = {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"}
# Those that not every system's list of types has.
FORMATS = {".md": "text/markdown", ".csv": "text/csv", ".yaml": "application/yaml"}
JOB_COLUMNS = ("job", "seconds", "cpu_seconds", "max_rss_mb")


def describe_run(
    outputs: Sequence[Path],
    locks: Sequence[Path],
    benchmarks: Path,
    run: Mapping[str, Any],
    configuration: Mapping[str, Any],
    crate_file: Path,
) -> None:
    """Write the description of a run into the folder of its results, and what it refers to into ``provenance/``.

    Parameters
    ----------
    outputs : sequence of Path
        All results, which get a digest each.
    locks : sequence of Path
        Locks of the models; those that there are, are copied.
    benchmarks : Path
        Folder of what Snakemake measured of the jobs.
    run : mapping
        What the plan says: ``name`` (empty for a run without one), ``source`` (the corpus), ``inputs`` (files
        that say by digests what it was computed from; those that there are, are listed), ``papers`` (title and
        citation of each) and ``titles`` (of results, by their paths without suffix).
    configuration : mapping
        All settings, as ``--configfile`` takes them.
    crate_file : Path
        ``ro-crate-metadata.json`` in the folder of the results.
    """
    folder = crate_file.parent / "provenance"
    (folder / "locks").mkdir(parents=True, exist_ok=True)
    snakefile = Path(shutil.copyfile(WORKFLOW / "Snakefile", folder / "Snakefile"))
    digests = write_digests(folder / "outputs.sha256", crate_file.parent, outputs)
    write_jobs(folder / "jobs.csv", benchmarks)
    settings = folder / "configuration.yaml"
    settings.write_text(yaml.safe_dump(dict(configuration), sort_keys=False), encoding="utf-8")
    inputs = [crate_file.parent / each for each in run["inputs"]]
    for lock in filter(Path.exists, locks):
        inputs.append(Path(shutil.copyfile(lock, folder / "locks" / lock.name)))
    crate = _Crate(crate_file.parent, run)
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
    results = [crate.add_listed_file(path, digest) for path, digest in digests.items()]
    for path in (folder / "outputs.sha256", folder / "jobs.csv", settings):
        crate.add_listed_file(path)
    ended = datetime.now(UTC).isoformat(timespec="seconds")
    action = crate.add_entity(
        "#run",
        "CreateAction",
        name="The run",
        endTime=ended,
        instrument=workflow,
        # A checkpoint without a table was planned for another target.
        object=[crate.add_listed_file(path) for path in inputs if path.exists()],
        result=results,
        agent=crate.add_environment(),
    )
    crate.describe_root(datePublished=ended, mentions=[action])
    crate.metadata.write(crate_file.parent)


def write_digests(path: Path, results: Path, outputs: Sequence[Path]) -> dict[Path, str]:
    """Write the SHA-256 of all outputs as ``sha256sum --check`` reads them in the folder `results`."""
    digests = {output: compute_sha256(output) for output in outputs}
    lines = [
        f"{digests[digest]}  {digest.relative_to(results).as_posix()}\n"
        for digest in sorted(digests)
    ]
    path.write_text("".join(lines), encoding="utf-8")
    return digests


def write_jobs(path: Path, benchmarks: Path) -> None:
    """List time and memory of each job, as Snakemake measured them; empty where a job was too short."""
    rows = []
    for file in sorted(benchmarks.rglob("*.tsv")):
        *_, last = csv.DictReader(file.read_text(encoding="utf-8").splitlines(), delimiter="\t")
        job = file.relative_to(benchmarks).with_suffix("").as_posix()
        rows.append([job, *(last[key].strip("NA-") for key in ("s", "cpu_time", "max_rss"))])
    write_table(path, JOB_COLUMNS, rows)


def describe_workflow() -> str:
    """Version, commit and state of this checkout, in words."""
    from shape_of_learning import __version__

    options = ("--always", "--dirty", "--abbrev=40", "--exclude=*")
    git = ("git", "-C", str(WORKFLOW), "describe", *options)
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    return f"{__version__}, commit {commit}" if commit else __version__


class _Crate(ROCrate):
    """A crate that knows the run, and the folder of its results."""

    def __init__(self, results: Path, run: Mapping[str, Any]) -> None:
        super().__init__(version="1.1")
        self.metadata.extra_terms.update(TERMS)
        self.results, self.run = results, run

    def add_entity(self, identifier: str, kind: str, **properties: Any) -> Entity:
        given = {key: value for key, value in properties.items() if value not in (None, "", [])}
        return self.add(ContextEntity(self, identifier, properties={"@type": kind, **given}))

    def describe_root(self, **properties: Any) -> None:
        """Say of the results what they are, by which papers and to which profiles."""
        of_run = f" of the run `{self.run['name']}`" if self.run["name"] else ""
        papers = self.run["papers"]
        properties |= {
            "name": f"Results{of_run} of shape-of-learning",
            "description": "Figures, tables and verdicts of "
            f"{'; '.join(title for title, _ in papers) or 'no paper'}, measured on {self.run['source']}; "
            "what they were computed from, and by what.",
            "license": LICENSE,
            "conformsTo": [
                self.add_entity(url, "CreativeWork", name=name, version=url.rpartition("/")[2])
                for url, name in PROFILES.items()
            ],
            "citation": [
                self.add_entity(f"#paper-{n}", "ScholarlyArticle", name=title, description=citation)
                for n, (title, citation) in enumerate(papers, start=1)
            ],
        }
        for key, value in properties.items():
            self.root_dataset[key] = value

    def add_listed_file(self, path: Path, digest: str = "") -> Entity:
        where = path.relative_to(self.results).as_posix()
        caption = path.with_suffix(".md")
        description = read_losses(path) if path.name == "alphabet.json" else ""
        if caption.exists():
            description = caption.read_text(encoding="utf-8").strip()
        facts = {
            "name": self.run["titles"].get(where.removesuffix(path.suffix), where),
            "description": description,
            "sha256": digest or compute_sha256(path),
            "contentSize": str(path.stat().st_size),
            "encodingFormat": FORMATS.get(path.suffix) or mimetypes.guess_type(where)[0],
        }
        return self.add_file(dest_path=where, properties={k: v for k, v in facts.items() if v})

    def add_environment(self) -> Entity:
        """The packages that this job sees; other jobs say theirs in their logs."""
        packages = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions()}
        return self.add_entity(
            "#environment",
            "SoftwareApplication",
            name="The environment that described the run",
            softwareVersion=f"Python {platform.python_version()}",
            operatingSystem=platform.platform(),
            softwareRequirements=[f"{name} {of}" for name, of in sorted(packages.items())],
        )
