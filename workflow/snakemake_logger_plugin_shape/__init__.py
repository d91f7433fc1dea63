"""A logger of Snakemake: one line per finished job that says what was made, and how much is left.

Snakemake finds it by the name of this package. It steps aside for dry runs, and for options that ask Snakemake itself
to say more.
"""

import json
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from logging import ERROR, WARNING, LogRecord
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.settings import LogHandlerSettingsBase

from snakemake_logger_plugin_shape.configuration import check_configfiles
from snakemake_logger_plugin_shape.words import (
    LONG,
    WORDS,
    describe_job,
    describe_outputs,
    strip_prefix,
)

# What Snakemake says of itself while jobs run; all else that it says is shown.
ASIDE = re.compile("Assuming|Building DAG|Using shell|Conda env|Select jobs|Removing|None$")


@dataclass
class LogHandlerSettings(LogHandlerSettingsBase):
    """What `--logger-shape-...` says."""

    json: bool = field(default=False, metadata={"help": "One JSON object per line, on stdout."})


class Job(NamedTuple):
    """A job that has begun."""

    rule: str
    words: str
    outputs: list[str]
    began: float


class LogHandler(LogHandlerBase):
    """Says what jobs make."""

    # A filter, since Snakemake's own would hide errors where it is told to be quiet.
    writes_to_stream = has_filter = True
    writes_to_file = has_formatter = needs_rulegraph = False

    def __post_init__(self) -> None:
        check_configfiles(sys.argv[1:])
        asked = self.common_settings
        # Otherwise Snakemake speaks for itself.
        self.writes_to_stream = not (asked.dryrun or asked.verbose or asked.debug_dag)
        self.is_json = bool(getattr(self.settings, "json", False))
        self.quiet = {each.name for each in asked.quiet or []}
        self.stream = sys.stdout if self.is_json else sys.stderr
        self.total, self.began = 0, time.time()
        self.jobs: dict[int, Job] = {}
        self.left: Counter[str] = Counter()
        self.took: dict[str, list[float]] = {}
        self.failures: dict[int, str] = {}  # a job that is tried again may succeed

    def emit(self, record: LogRecord) -> None:
        """Show a record, or note what it says of a job."""
        event = getattr(record, "event", None)
        try:
            if not self.writes_to_stream:
                return
            if event == LogEvent.RUN_INFO:
                self.left = Counter(vars(record)["stats"])
                self.total, self.began = self.left.pop("total"), time.time()
                self._say("planned", f"jobs: {self.total}", jobs=dict(self.left))
            elif event == LogEvent.JOB_INFO:
                self._begin(vars(record))
            elif event == LogEvent.JOB_FINISHED:
                self._finish(vars(record)["job_id"])
            elif event is None or record.levelno >= WARNING:
                if event in (LogEvent.JOB_ERROR, LogEvent.GROUP_ERROR):
                    self._fail(vars(record))
                if record.levelno >= WARNING or not ASIDE.match(self.format(record)):
                    self._say("message", self.format(record), record.levelno)
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        """Say last why a run has failed."""
        if self.failures:
            first, *others = self.failures.values()
            also = f" ({len(others)} more failed)" if others else ""
            again = "Finished jobs are kept; give the same command again to continue."
            self._say("failed", f"Failed: {first}{also}\n{again}", ERROR)
            self.failures.clear()
        super().close()

    def _say(self, event: str, text: str, level: int = 0, **facts: Any) -> None:
        if level < WARNING and self.quiet & {"ALL", "" if event == "message" else "PROGRESS"}:
            return
        if self.is_json:
            known = {"time": round(time.time(), 3), "event": event, **facts}
            text = json.dumps({**known, "text": text})
        print(text, file=self.stream, flush=True)

    def _begin(self, said: dict[str, Any]) -> None:
        rule, wildcards = said["rule_name"], dict(said["wildcards"])
        job = Job(rule, describe_job(rule, wildcards), list(said["output"]), time.time())
        self.jobs[said["jobid"]] = job
        if self.is_json or strip_prefix(rule) in LONG:
            facts = {"rule": rule, "wildcards": wildcards, "log": list(said["log"])}
            self._say("begun", f"begins: {job.words}", job=said["jobid"], **facts)

    def _finish(self, number: int) -> None:
        job = self.jobs.pop(number)
        self.failures.pop(number, None)
        self.left[job.rule] -= 1
        seconds = time.time() - job.began
        self.took.setdefault(job.rule, []).append(seconds)
        done = self.total - self.left.total()
        text = f"[{done} of {self.total}] {describe_outputs(job.words, job.outputs)}, {format_duration(seconds)}"
        remaining, is_all = self._estimate_remaining()
        if remaining is not None and remaining >= 1:
            text += f"; {'about' if is_all else 'more than'} {format_duration(remaining)} left"
        facts: dict[str, Any] = {"done": done, "total": self.total, "remaining": remaining}
        self._say("finished", text, job=number, rule=job.rule, seconds=round(seconds, 3), **facts)

    def _estimate_remaining(self) -> tuple[float | None, bool]:
        """Seconds for the jobs left whose rule has been seen, None if they are few, and whether these are all."""
        now, left = time.time(), +self.left
        known = {rule: mean(self.took[rule]) for rule in left if rule in self.took}
        # A target is no job of a listed rule, and takes no time.
        is_all = not any(rule not in known and strip_prefix(rule) in WORDS for rule in left)
        if not known or 2 * sum(left[rule] for rule in known) < left.total():
            return None, is_all
        running = [(job.rule, now - job.began) for job in self.jobs.values()]
        work = sum(left[rule] * seconds for rule, seconds in known.items())
        work -= sum(min(seconds, known.get(rule, 0)) for rule, seconds in running)
        spent = sum(map(sum, self.took.values())) + sum(seconds for _, seconds in running)
        at_once = max(1.0, spent / (now - self.began))
        return round(work / at_once, 3), is_all

    def _fail(self, said: dict[str, Any]) -> None:
        for each in said.get("job_error_info", [said]):
            job = self.jobs.pop(each["jobid"], None)
            cause = next(filter(None, map(find_last_error, each["log"])), "see the messages above")
            self.failures[each["jobid"]] = f"{job.words if job else each['rule_name']}: {cause}"


def find_last_error(log: str) -> str:
    """The last sentence of a log that says why its job ended."""
    text = Path(log).read_text(encoding="utf-8", errors="replace") if Path(log).is_file() else ""
    return ["", *re.findall(r" ERROR (.*)", text)][-1]


def format_duration(seconds: float) -> str:
    """A time as people say it: 12 s, 3 min, 2 h 5 min."""
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 1 else "under 1 s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
