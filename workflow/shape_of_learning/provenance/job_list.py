"""What each job of a run took, and what it was computed by: from records beside logs, and from benchmarks."""

import csv
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

JOB_COLUMNS = (
    "rule",
    "job",
    "environment",
    "started",
    "ended",
    "seconds",
    "cpu_seconds",
    "max_rss_mb",
)
RULE_COLUMNS = ("rule", "jobs", "seconds", "cpu_seconds", "longest_seconds", "max_rss_mb")


@dataclass(frozen=True)
class Job:
    """One job that has ended well.

    Attributes
    ----------
    name : str
        Path of its log below the folder of logs, without the suffix.
    record : dict
        What :mod:`.job_record` wrote of it; empty of a job of an earlier version, which wrote none.
    seconds, cpu_seconds, max_rss_mb : float or None
        Time on the clock and of the processor, and the most memory, in MiB, as Snakemake measured them; None
        where it did not.
    """

    name: str
    record: dict[str, Any]
    seconds: float | None
    cpu_seconds: float | None
    max_rss_mb: float | None

    @property
    def rule(self) -> str:
        """The rule that it was a job of; the first folder of its log where nothing says it."""
        return self.record.get("rule") or self.name.partition("/")[0]


def read_jobs(logs: Path, benchmarks: Path) -> list[Job]:
    """List the jobs that have left a record or a benchmark, by name.

    Parameters
    ----------
    logs, benchmarks : Path
        Folders, with one layout.

    Returns
    -------
    list of Job
    """
    records = {_name(path, logs): path for path in logs.rglob("*.json")}
    measured = {_name(path, benchmarks): path for path in benchmarks.rglob("*.tsv")}
    return [
        Job(name, _record(records.get(name)), **_benchmark(measured.get(name)))
        for name in sorted(records.keys() | measured.keys())
    ]


def environments(jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """The environments of jobs, each once, the most frequent first."""
    counted = Counter(_key(job) for job in jobs if job.record)
    return [
        json.loads(key) for key, _ in sorted(counted.items(), key=lambda each: (-each[1], each[0]))
    ]


def job_rows(jobs: Sequence[Job]) -> list[tuple[object, ...]]:
    """Rows of `JOB_COLUMNS`; ``environment`` counts from 1 in the order of :func:`environments`."""
    numbers = {_dumped(each): number for number, each in enumerate(environments(jobs), start=1)}
    return [
        (
            job.rule,
            job.name,
            numbers[_key(job)] if job.record else None,
            job.record.get("started"),
            job.record.get("ended"),
            job.seconds,
            job.cpu_seconds,
            job.max_rss_mb,
        )
        for job in jobs
    ]


def rule_rows(jobs: Sequence[Job]) -> list[tuple[Any, ...]]:
    """Rows of `RULE_COLUMNS`, the rule that took most time first: sums, and the largest memory of any job."""
    rules = {job.rule: [each for each in jobs if each.rule == job.rule] for job in jobs}
    rows: list[tuple[Any, ...]] = [
        (
            rule,
            len(own),
            _summary(sum, [each.seconds for each in own]),
            _summary(sum, [each.cpu_seconds for each in own]),
            _summary(max, [each.seconds for each in own]),
            _summary(max, [each.max_rss_mb for each in own]),
        )
        for rule, own in rules.items()
    ]
    return sorted(rows, key=lambda row: row[2] or 0.0, reverse=True)


def _summary(
    function: Callable[[list[float]], float], values: Sequence[float | None]
) -> float | None:
    known = [value for value in values if value is not None]
    return round(function(known), 2) if known else None


def _name(path: Path, folder: Path) -> str:
    return path.relative_to(folder).with_suffix("").as_posix()


def _dumped(environment: Any) -> str:
    return json.dumps(environment, sort_keys=True)


def _key(job: Job) -> str:
    return _dumped(job.record["environment"])


def _record(path: Path | None) -> dict[str, Any]:
    return {} if path is None else json.loads(path.read_text(encoding="utf-8"))


def _benchmark(path: Path | None) -> dict[str, float | None]:
    """The numbers of a benchmark, without memory and processor time of a job too short to be sampled."""
    columns = {"s": "seconds", "cpu_time": "cpu_seconds", "max_rss": "max_rss_mb"}
    found: dict[str, float | None] = dict.fromkeys(columns.values())
    if path is not None:
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                found.update({name: _number(row.get(column)) for column, name in columns.items()})
    if not found["max_rss_mb"]:
        found.update(max_rss_mb=None, cpu_seconds=None)
    return found


def _number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None
