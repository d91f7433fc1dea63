"""A logger of Snakemake: one line per finished job with its results, and the time that is left.

Snakemake finds the logger by the name of this package. In dry runs, and with options that make Snakemake verbose,
Snakemake's own logger writes instead.
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

# Messages of Snakemake about itself while jobs run; all other messages are shown.
ASIDE = re.compile("Assuming|Building DAG|Using shell|Conda env|Select jobs|Removing|None$")


@dataclass
class LogHandlerSettings(LogHandlerSettingsBase):
    """The options `--logger-shape-...`."""

    json: bool = field(default=False, metadata={"help": "One JSON object per line, on stdout."})


class Job(NamedTuple):
    """A job that has begun."""

    rule: str
    words: str
    outputs: list[str]
    began: float


class LogHandler(LogHandlerBase):
    """Writes the results of jobs."""

    # It has a filter of its own, since Snakemake's filter would hide errors with `--quiet`.
    writes_to_stream = has_filter = True
    writes_to_file = has_formatter = needs_rulegraph = False

    def __post_init__(self) -> None:
        check_configfiles(sys.argv[1:])
        common = self.common_settings
        self.writes_to_stream = not (common.dryrun or common.verbose or common.debug_dag)
        self.is_json = bool(getattr(self.settings, "json", False))
        self.quiet = {option.name for option in common.quiet or []}
        self.stream = sys.stdout if self.is_json else sys.stderr
        self.total, self.began = 0, time.time()
        self.jobs: dict[int, Job] = {}
        self.remaining: Counter[str] = Counter()
        self.seconds: dict[str, list[float]] = {}
        self.failures: dict[int, str] = {}  # a job that is tried again may succeed

    def emit(self, record: LogRecord) -> None:
        """Show the message of a record, or note the state of its job."""
        event = getattr(record, "event", None)
        try:
            if not self.writes_to_stream:
                return
            if event == LogEvent.RUN_INFO:
                self.remaining = Counter(vars(record)["stats"])
                self.total, self.began = self.remaining.pop("total"), time.time()
                self._say("planned", f"jobs: {self.total}", jobs=dict(self.remaining))
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
        """Write at the end why a run has failed."""
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

    def _begin(self, info: dict[str, Any]) -> None:
        rule, wildcards = info["rule_name"], dict(info["wildcards"])
        job = Job(rule, describe_job(rule, wildcards), list(info["output"]), time.time())
        self.jobs[info["jobid"]] = job
        if self.is_json or strip_prefix(rule) in LONG:
            facts = {"rule": rule, "wildcards": wildcards, "log": list(info["log"])}
            self._say("begun", f"begins: {job.words}", job=info["jobid"], **facts)

    def _finish(self, number: int) -> None:
        job = self.jobs.pop(number)
        self.failures.pop(number, None)
        self.remaining[job.rule] -= 1
        seconds = time.time() - job.began
        self.seconds.setdefault(job.rule, []).append(seconds)
        done = self.total - self.remaining.total()
        text = f"[{done} of {self.total}] {describe_outputs(job.words, job.outputs)}, {format_duration(seconds)}"
        remaining, jobs, known_jobs = self._estimate_remaining()
        if remaining is not None and remaining >= 1:
            time_left = f"about {format_duration(remaining)}"
            is_all = known_jobs == jobs
            text += (
                f"; {time_left} left"
                if is_all
                else f"; {jobs} jobs left, {known_jobs} of them in {time_left}"
            )
        facts: dict[str, Any] = {"done": done, "total": self.total, "remaining": remaining}
        self._say("finished", text, job=number, rule=job.rule, seconds=round(seconds, 3), **facts)

    def _estimate_remaining(self) -> tuple[float | None, int, int]:
        """Estimate the seconds that remaining jobs take; return also the number of jobs, and of those in the estimate.

        The time of a rule is known once a job of it has ended. If it is known of less than half of the jobs, there is
        no estimate.
        """
        now, remaining = time.time(), +self.remaining
        means = {rule: mean(self.seconds[rule]) for rule in remaining if rule in self.seconds}
        known_jobs = sum(remaining[rule] for rule in means)
        # Targets, which take no time, have no words.
        timed_rules = [rule for rule in remaining if rule in means or strip_prefix(rule) in WORDS]
        jobs = sum(remaining[rule] for rule in timed_rules)
        if not means or 2 * known_jobs < remaining.total():
            return None, jobs, known_jobs
        running = [(job.rule, now - job.began) for job in self.jobs.values()]
        work = sum(remaining[rule] * seconds for rule, seconds in means.items())
        work -= sum(min(seconds, means.get(rule, 0)) for rule, seconds in running)
        spent = sum(map(sum, self.seconds.values())) + sum(seconds for _, seconds in running)
        jobs_at_once = max(1.0, spent / (now - self.began))
        return round(work / jobs_at_once, 3), jobs, known_jobs

    def _fail(self, info: dict[str, Any]) -> None:
        for error in info.get("job_error_info", [info]):
            job = self.jobs.pop(error["jobid"], None)
            cause = next(filter(None, map(find_last_error, error["log"])), "see the messages above")
            self.failures[error["jobid"]] = f"{job.words if job else error['rule_name']}: {cause}"


def find_last_error(log: str) -> str:
    """Return the last error in the log of a job; empty if there is none."""
    text = Path(log).read_text(encoding="utf-8", errors="replace") if Path(log).is_file() else ""
    return ["", *re.findall(r" ERROR (.*)", text)][-1]


def format_duration(seconds: float) -> str:
    """Write a time as people say it: 12 s, 3 min, 2 h 5 min."""
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 1 else "under 1 s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
