"""The RO-Crate of a run, by the profile Workflow Run Crate (https://w3id.org/ro/wfrun/workflow/0.5).

Results are in it by links, so that it takes no space, and an archive that follows links is complete.
"""

import json
import mimetypes
import os
import shutil
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rocrate.model.contextentity import ContextEntity
from rocrate.model.entity import Entity
from rocrate.rocrate import ROCrate

from shape_of_learning.checkpoints.lock import read_lock
from shape_of_learning.provenance.described_run import DescribedRun
from shape_of_learning.provenance.job_list import (
    JOB_COLUMNS,
    RULE_COLUMNS,
    Job,
    environments,
    job_rows,
    rule_rows,
)
from shape_of_learning.storage.csv_table import write_table
from shape_of_learning.storage.digests import recorded_digests, sha256_of
from shape_of_learning.storage.files import atomic_write

REPOSITORY = "https://github.com/shape-of-learning/shape-of-learning"
LICENSE = "Whoever publishes this run says under which licence; the workflow's own is BSD-3-Clause."
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": "Workflow RO-Crate",
}
# The context of RO-Crate 1.1 lacks it.
TERMS = {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"}
JOBS, RULES, ENVIRONMENTS = "jobs.csv", "rules.csv", "environments.json"
DIGESTS = "outputs.sha256"
# Those that not every system's list of types has.
FORMATS = {".md": "text/markdown", ".csv": "text/csv", ".yaml": "application/yaml"}


@dataclass(frozen=True)
class WrittenFiles:
    """What a run has written.

    Attributes
    ----------
    results : Path
        Folder of its results.
    outputs : sequence of Path
        What it shows, below that folder.
    locks : sequence of Path
        Of its models from the Hub, ``{model}.yaml``.
    snakefile : Path
        The workflow's.
    """

    results: Path
    outputs: Sequence[Path]
    locks: Sequence[Path]
    snakefile: Path


def write_crate(final: Path, files: WrittenFiles, run: DescribedRun, jobs: Sequence[Job]) -> None:
    """Describe a run, in a folder of its own below its results.

    Parameters
    ----------
    final : Path
        The folder, which is replaced as a whole.
    files : WrittenFiles
        What belongs to it.
    run : DescribedRun
        What the plan says of it.
    jobs : sequence of Job
        What has computed it.
    """
    with atomic_write(final) as partial:
        partial.mkdir()
        _Crate(partial, files, run, jobs).write()


class _Crate:
    """One crate in the making, in a folder that has the parent of its final name."""

    def __init__(
        self, folder: Path, files: WrittenFiles, run: DescribedRun, jobs: Sequence[Job]
    ) -> None:
        self.folder, self.files, self.run, self.jobs = folder, files, run, jobs
        self.crate = ROCrate(version="1.1")
        self.crate.metadata.extra_terms.update(TERMS)

    def write(self) -> None:
        self._copy(self.files.snakefile, "workflow/Snakefile")
        workflow = self.crate.add_workflow(
            dest_path="workflow/Snakefile", main=True, lang="snakemake", properties=self._workflow()
        )
        results = [self._add_result(path) for path in self.files.outputs]
        self._add_folders()
        self._add_digests()
        inputs = [*self._add_corpus(), *self._add_checkpoints()]
        self._describe_root()
        times = _times(self.jobs)
        if times:
            self.crate.root_dataset["datePublished"] = times["endTime"]
        of_run = {"name": "The run", "instrument": workflow, "object": inputs, "result": results}
        actions = [self._add("#run", "CreateAction", **of_run, **times), *self._add_jobs()]
        self.crate.root_dataset["mentions"] = actions
        self.crate.metadata.write(self.folder)

    def _add(self, identifier: str, kind: str | list[str], **properties: Any) -> Entity:
        said = {key: value for key, value in properties.items() if value not in (None, "", [])}
        entity = ContextEntity(self.crate, identifier, properties={"@type": kind})
        self.crate.add(entity)
        for key, value in said.items():
            entity[key] = value
        return entity

    def _copy(self, path: Path, name: str) -> None:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, self.folder / name)

    def _add_file(self, where: str, **properties: Any) -> Entity:
        """Enter a file that is in the folder."""
        path = self.folder / where
        kind = FORMATS.get(path.suffix) or mimetypes.guess_type(where)[0]
        facts = {
            "name": where,
            "sha256": sha256_of(path),
            "contentSize": str(path.stat().st_size),
            **({"encodingFormat": kind} if kind else {}),
            **{key: value for key, value in properties.items() if value},
        }
        return self.crate.add_file(dest_path=where, properties=facts)

    def _add_link(self, path: Path, **properties: Any) -> Entity:
        """Enter a file of the results by a link, which holds wherever they are moved."""
        where = path.relative_to(self.files.results).as_posix()
        link = self.folder / where
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(path, link.parent))
        return self._add_file(where, **properties)

    def _add_result(self, path: Path) -> Entity:
        title = self.run.titles.get(str(path.relative_to(self.files.results).with_suffix("")))
        caption = path.with_suffix(".md")
        words = caption.read_text(encoding="utf-8").strip() if caption in self.files.outputs else ""
        return self._add_link(path, name=title, description=words)

    def _add_folders(self) -> None:
        """Enter the folders in which everything is a result: what else is there is none of this run's."""
        parents = {path.parent.relative_to(self.files.results) for path in self.files.outputs}
        for folder in sorted(parents - {Path()}):
            self.crate.add_dataset(
                dest_path=f"{folder.as_posix()}/", properties={"name": f"Results in {folder}"}
            )

    def _add_digests(self) -> None:
        """Enter the digests of all outputs but weights, as sha256sum checks them."""
        folder = self.files.results
        # A run with a name has a folder of its own there, with logs.
        others = {each.parent for each in folder.glob("*/logs")} | {self.folder}
        digests = {path: sha256_of(path) for path in self.files.outputs} | {
            path: digest
            for path, digest in recorded_digests(folder)
            if others.isdisjoint(path.parents)
        }
        lines = (
            f"{digest}  {path.relative_to(folder).as_posix()}\n"
            for path, digest in sorted(digests.items())
        )
        (self.folder / DIGESTS).write_text("".join(lines), encoding="utf-8")
        self._add_file(
            DIGESTS, name="SHA-256 of every output, named from the folder of the results"
        )

    def _add_corpus(self) -> list[Entity]:
        folder = self.files.results / "corpus" / self.run.source
        receipt = json.loads((folder / "source.json").read_text(encoding="utf-8"))
        text = json.loads((folder / "alphabet.json").read_text(encoding="utf-8"))["text"]
        raw = self._add(
            "#corpus",
            "CreativeWork",
            name=f"The corpus {self.run.source}, as it came",
            sha256=receipt["sha256"],
            subjectOf=self._add_link(folder / "source.json"),
        )
        cleaned = self._add(
            "#text",
            "CreativeWork",
            name=f"The corpus {self.run.source}, cleaned",
            sha256=text["sha256"],
            isBasedOn=raw,
            subjectOf=self._add_link(folder / "alphabet.json"),
        )
        return [raw, cleaned]

    def _add_checkpoints(self) -> Iterable[Entity]:
        pinned = {}
        for path in self.files.locks:
            self._copy(path, f"locks/{path.name}")
            self._add_file(f"locks/{path.name}")
            lock = read_lock(path)
            pinned[path.stem] = lock.revisions if lock else {}
        for model, (label, revisions) in self.run.models.items():
            for revision in revisions:
                tensors = self.files.results / "checkpoints" / model / f"{revision}.tensors.csv"
                if not tensors.exists():
                    continue  # it was planned for another target
                where = {}
                if locked := pinned.get(model, {}).get(revision):
                    commit = locked.commit
                    url = f"https://huggingface.co/{locked.repository}/tree/{commit}"
                    where = {"version": commit, "url": url}
                yield self._add(
                    f"#{quote(model)}@{quote(revision)}",
                    "CreativeWork",
                    name=f"Weights of {label}, {revision}",
                    subjectOf=self._add_link(tensors),
                    **where,
                )

    def _describe_root(self) -> None:
        root, titles = self.crate.root_dataset, [title for title, _ in self.run.papers]
        of_run = f" of the run `{self.run.name}`" if self.run.name else ""
        root["name"] = f"Results{of_run} of shape-of-learning"
        root["description"] = (
            f"Figures, tables and verdicts of {'; '.join(titles) or 'no paper'}, measured on "
            f"{self.run.source}; what they were computed from, and by what."
        )
        root["license"] = LICENSE
        root["conformsTo"] = [
            self._add(profile, "CreativeWork", name=name, version=profile.rpartition("/")[2])
            for profile, name in PROFILES.items()
        ]
        root["citation"] = [
            self._add(f"#paper-{n}", "ScholarlyArticle", name=title, description=citation)
            for n, (title, citation) in enumerate(self.run.papers, start=1)
        ]

    def _workflow(self) -> dict[str, Any]:
        """What is said of the workflow: its versions, commits and states, as jobs know them."""
        states = [each["workflow"] for each in environments(self.jobs) if each["workflow"]]
        versions = sorted({_version(state) for state in states})
        return {
            "name": "shape-of-learning",
            "url": REPOSITORY,
            "sha256": sha256_of(self.folder / "workflow/Snakefile"),
            "license": "https://spdx.org/licenses/BSD-3-Clause",
            **({"version": "; ".join(versions)} if versions else {}),
        }

    def _add_jobs(self) -> list[Entity]:
        """Tables of all jobs, and an action for each rule and environment that it was computed in."""
        write_table(self.folder / JOBS, JOB_COLUMNS, job_rows(self.jobs), digest=False)
        write_table(self.folder / RULES, RULE_COLUMNS, rule_rows(self.jobs), digest=False)
        found = environments(self.jobs)
        text = json.dumps(found, indent=1, ensure_ascii=False)
        (self.folder / ENVIRONMENTS).write_text(text, encoding="utf-8")
        self._add_file(JOBS, name="Jobs: what each took, and in which environment")
        self._add_file(RULES, name="Rules: time and memory of their jobs")
        self._add_file(
            ENVIRONMENTS, name="Environments: software, hardware and state of the workflow"
        )
        instruments = [self._add_environment(n, each) for n, each in enumerate(found, start=1)]
        groups = defaultdict(list)
        for job in self.jobs:
            if job.record:
                groups[job.rule, found.index(job.record["environment"])].append(job)
        return [
            self._add(
                f"#{rule}-{number + 1}",
                "CreateAction",
                name=f"{rule}: {len(jobs)} {'job' if len(jobs) == 1 else 'jobs'}",
                instrument=instruments[number],
                **_times(jobs),
            )
            for (rule, number), jobs in groups.items()
        ]

    def _add_environment(self, number: int, environment: dict[str, Any]) -> Entity:
        software, hardware = environment["software"], environment["hardware"]
        packages = [f"#{name}-{version}" for name, version in software.items()]
        for identifier, (name, version) in zip(packages, software.items(), strict=True):
            if not self.crate.dereference(identifier):
                self._add(identifier, "SoftwareApplication", name=name, softwareVersion=version)
        chips = [f"{hardware['processor']}, {hardware['cores']} cores", *hardware.get("gpus", ())]
        libraries = (f"{who}: {what}" for who, what in environment["linear_algebra"].items())
        return self._add(
            f"#environment-{number}",
            "SoftwareApplication",
            name=f"Environment {number}",
            softwareVersion=_version(environment["workflow"]),
            description=". ".join(libraries),
            operatingSystem=environment["system"],
            processorRequirements="; ".join(chips),
            memoryRequirements=f"{hardware['memory_gib']} GiB",
            softwareRequirements=[self.crate.dereference(each) for each in packages],
        )


def _times(jobs: Sequence[Job]) -> dict[str, str]:
    """When the first of these jobs began and the last one ended."""
    records = [job.record for job in jobs if job.record]
    if not records:
        return {}
    return {
        "startTime": min(record["started"] for record in records),
        "endTime": max(record["ended"] for record in records),
    }


def _version(state: dict[str, Any]) -> str:
    """A state of the workflow in words."""
    if not state:
        return "unknown"
    commit = f"commit {state['commit']}" if state["commit"] else "no commit"
    return f"{state['version']}, {commit}, {state['state']}, code {state['code']}"
