"""A logger of Snakemake, which writes one line per finished job with its results and its time.

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
from typing import Any, NamedTuple

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.settings import LogHandlerSettingsBase

from snakemake_logger_plugin_shape.configuration import check_configfiles
from snakemake_logger_plugin_shape.words import LONG, describe_job, describe_outputs, strip_prefix

# Messages of Snakemake about itself while jobs run; all other messages are shown.
ASIDE = re.compile("Assuming|Building DAG|Using shell|Conda env|Select jobs|Removing|None$")


@dataclass
class LogHandlerSettings(LogHandlerSettingsBase):
    """The options of the logger on the command line, `--logger-shape-...`."""

    json: bool = field(default=False, metadata={"help": "One JSON object per line, on stdout."})


class Job(NamedTuple):
    """A job that has begun."""

    rule: str
    words: str
    outputs: list[str]
    began: float


class LogHandler(LogHandlerBase):
    """Writes the results of jobs."""

    # The logger filters messages itself, since Snakemake's filter would hide errors with `--quiet`.
    writes_to_stream = has_filter = True
    writes_to_file = has_formatter = needs_rulegraph = False

    def __post_init__(self) -> None:
        check_configfiles(sys.argv[1:])
        common = self.common_settings
        self.writes_to_stream = not (common.dryrun or common.verbose or common.debug_dag)
        self.is_json = bool(getattr(self.settings, "json", False))
        self.quiet = {option.name for option in common.quiet or []}
        self.stream = sys.stdout if self.is_json else sys.stderr
        self.total = 0
        self.jobs: dict[int, Job] = {}
        self.remaining: Counter[str] = Counter()
        # The message of each failed job; a job that is tried again may succeed and leaves the failures.
        self.failures: dict[int, str] = {}

    def emit(self, record: LogRecord) -> None:
        """Write the message of a record, or note the state of its job."""
        event = getattr(record, "event", None)
        try:
            if not self.writes_to_stream:
                return
            if event == LogEvent.RUN_INFO:
                self.remaining = Counter(vars(record)["stats"])
                self.total = self.remaining.pop("total")
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
        """Write at the end the error of a failed run."""
        if self.failures:
            first, *other_failures = self.failures.values()
            suffix = f" ({len(other_failures)} more failed)" if other_failures else ""
            remedy = "Finished jobs are kept; give the same command again to continue."
            self._say("failed", f"Failed: {first}{suffix}\n{remedy}", ERROR)
            self.failures.clear()
        super().close()

    def _say(self, event: str, text: str, level: int = 0, **facts: Any) -> None:
        if level < WARNING and self.quiet & {"ALL", "" if event == "message" else "PROGRESS"}:
            return
        if self.is_json:
            content = {"time": round(time.time(), 3), "event": event, **facts, "text": text}
            text = json.dumps(content)
        print(text, file=self.stream, flush=True)

    def _begin(self, info: dict[str, Any]) -> None:
        rule = info["rule_name"]
        wildcards = dict(info["wildcards"])
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
        finished_jobs = self.total - self.remaining.total()
        results = describe_outputs(job.words, job.outputs)
        text = f"[{finished_jobs} of {self.total}] {results}, {format_duration(seconds)}"
        facts: dict[str, Any] = {"done": finished_jobs, "total": self.total}
        self._say("finished", text, job=number, rule=job.rule, seconds=round(seconds, 3), **facts)

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
    """Write a duration as people say it: 12 s, 3 min, 2 h 5 min."""
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 1 else "under 1 s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
