"""What a run was computed from and by: an RO-Crate of its results.

The crate follows the profile Workflow Run Crate (https://w3id.org/ro/wfrun/workflow/0.5). Its root is the
folder of the results, so that this folder, packed as it is, is a valid crate.
"""

import csv
import importlib.metadata
import json
import mimetypes
import platform
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rocrate.model.contextentity import ContextEntity
from rocrate.model.entity import Entity
from rocrate.rocrate import ROCrate

from shape_of_learning.files import sha256_of, write_table

REPOSITORY = "https://github.com/shape-of-learning/shape-of-learning"
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


def write_digests(path: Path, results: Path, outputs: Sequence[Path]) -> dict[Path, str]:
    """Write the SHA-256 of all outputs as ``sha256sum --check`` reads them in the folder `results`."""
    digests = {output: sha256_of(output) for output in outputs}
    lines = (
        f"{digests[each]}  {each.relative_to(results).as_posix()}\n" for each in sorted(digests)
    )
    path.write_text("".join(lines), encoding="utf-8")
    return digests


def write_jobs(path: Path, benchmarks: Path) -> None:
    """List time and memory of each job, as Snakemake measured them; empty where a job was too short."""
    rows = []
    for file in sorted(benchmarks.rglob("*.tsv")):
        with file.open(newline="", encoding="utf-8") as lines:
            last = list(csv.DictReader(lines, delimiter="\t"))[-1]
        job = file.relative_to(benchmarks).with_suffix("").as_posix()
        rows.append([job, *(last[key].strip("NA-") for key in ("s", "cpu_time", "max_rss"))])
    write_table(path, JOB_COLUMNS, rows)


def workflow_version(workflow: Path) -> str:
    """Version, commit and state of the checkout that holds the folder `workflow`, in words."""
    from shape_of_learning import __version__

    options = ("--always", "--dirty", "--abbrev=40", "--exclude=*")
    git = ("git", "-C", str(workflow), "describe", *options)
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    return f"{__version__}, commit {commit}" if commit else __version__


def write_crate(
    crate_file: Path,
    run: Mapping[str, Any],
    digests: Mapping[Path, str],
    described_by: Sequence[Path],
) -> None:
    """Describe a run.

    Parameters
    ----------
    crate_file : Path
        ``ro-crate-metadata.json`` in the folder of the results.
    run : mapping
        What the plan says: ``name`` (empty for a run without one), ``source`` (the corpus), ``version``
        (of the workflow), ``papers`` (title and citation of each), ``titles`` (of results, by their paths
        without suffix) and ``models``: by name the ``label``, ``repository`` and ``revisions`` (name to
        commit; both are empty for a model that is not from the Hub).
    digests : mapping of Path to str
        SHA-256 of each result, from :func:`write_digests`.
    described_by : sequence of Path
        Files of the description itself, below the results.
    """
    about = _Crate(crate_file.parent, run)
    crate, snakefile = about.crate, "provenance/Snakefile"
    workflow = crate.add_workflow(
        dest_path=snakefile,
        main=True,
        lang="snakemake",
        properties={
            "name": "shape-of-learning",
            "url": REPOSITORY,
            "sha256": sha256_of(crate_file.parent / snakefile),
            "license": "https://spdx.org/licenses/BSD-3-Clause",
            "version": run["version"],
        },
    )
    results = [about.file(path, digest) for path, digest in digests.items()]
    for path in described_by:
        about.file(path)
    ended = datetime.now(UTC).isoformat(timespec="seconds")
    action = about.entity(
        "#run",
        "CreateAction",
        name="The run",
        endTime=ended,
        instrument=workflow,
        object=[*about.corpus(), *about.checkpoints()],
        result=results,
        agent=about.environment(),
    )
    of_run = f" of the run `{run['name']}`" if run["name"] else ""
    titles = [title for title, _ in run["papers"]]
    facts = {
        "name": f"Results{of_run} of shape-of-learning",
        "description": f"Figures, tables and verdicts of {'; '.join(titles) or 'no paper'}, measured on "
        f"{run['source']}; what they were computed from, and by what.",
        "license": LICENSE,
        "datePublished": ended,
        "mentions": [action],
        "conformsTo": [
            about.entity(profile, "CreativeWork", name=name, version=profile.rpartition("/")[2])
            for profile, name in PROFILES.items()
        ],
        "citation": [
            about.entity(f"#paper-{n}", "ScholarlyArticle", name=title, description=citation)
            for n, (title, citation) in enumerate(run["papers"], start=1)
        ],
    }
    for key, value in facts.items():
        crate.root_dataset[key] = value
    crate.metadata.write(crate_file.parent)


class _Crate:
    """A crate, and what goes into it."""

    def __init__(self, results: Path, run: Mapping[str, Any]) -> None:
        self.results, self.run = results, run
        self.crate = ROCrate(version="1.1")
        self.crate.metadata.extra_terms.update(TERMS)

    def entity(self, identifier: str, kind: str, **properties: Any) -> Entity:
        entity = self.crate.add(ContextEntity(self.crate, identifier, properties={"@type": kind}))
        for key, value in properties.items():
            if value not in (None, "", []):
                entity[key] = value
        return entity

    def file(self, path: Path, digest: str = "") -> Entity:
        where = path.relative_to(self.results).as_posix()
        caption = path.with_suffix(".md")
        facts = {
            "name": self.run["titles"].get(where.removesuffix(path.suffix), where),
            "description": caption.read_text(encoding="utf-8").strip() if caption.exists() else "",
            "sha256": digest or sha256_of(path),
            "contentSize": str(path.stat().st_size),
            "encodingFormat": FORMATS.get(path.suffix) or mimetypes.guess_type(where)[0],
        }
        return self.crate.add_file(
            dest_path=where, properties={k: v for k, v in facts.items() if v}
        )

    def corpus(self) -> Iterator[Entity]:
        source = self.run["source"]
        file = self.results / "corpus" / source / "alphabet.json"
        digests = json.loads(file.read_text(encoding="utf-8"))
        raw, text = (digests[each]["sha256"] for each in ("source", "text"))
        name = f"The corpus {source}, as it came"
        came = self.entity("#corpus", "CreativeWork", name=name, sha256=raw)
        yield came
        yield self.entity(
            "#text",
            "CreativeWork",
            name=f"The corpus {source}, cleaned",
            sha256=text,
            isBasedOn=came,
            subjectOf=self.file(file),
        )

    def checkpoints(self) -> Iterator[Entity]:
        for name, model in self.run["models"].items():
            for revision, commit in model["revisions"].items():
                tensors = self.results / "checkpoints" / name / f"{revision}.tensors.csv"
                if tensors.exists():  # else it was planned for another target
                    url = f"https://huggingface.co/{model['repository']}/tree/{commit}"
                    yield self.entity(
                        f"#{quote(name)}@{quote(revision)}",
                        "CreativeWork",
                        name=f"Weights of {model['label']}, {revision}",
                        version=commit,
                        url=url if commit else "",
                        subjectOf=self.file(tensors),
                    )

    def environment(self) -> Entity:
        """The packages that this job sees; other jobs say theirs in their logs."""
        packages = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions()}
        return self.entity(
            "#environment",
            "SoftwareApplication",
            name="The environment that described the run",
            softwareVersion=f"Python {platform.python_version()}",
            operatingSystem=platform.platform(),
            softwareRequirements=[f"{name} {of}" for name, of in sorted(packages.items())],
        )
