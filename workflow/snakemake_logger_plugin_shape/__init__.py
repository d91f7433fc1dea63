"""A logger of Snakemake: one line per finished job that says what was made, and how much is left.

Snakemake finds it by the name of this package. It steps aside for dry runs, and for options that ask Snakemake itself
to say more.
"""

import json
import re
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from logging import ERROR, WARNING, LogRecord
from pathlib import Path
from statistics import mean
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.settings import LogHandlerSettingsBase

from snakemake_logger_plugin_shape.words import LONG, WORDS, listed_rule, measured, words_of

# What Snakemake says of itself while jobs run; all else that it says is shown.
ASIDE = re.compile(
    r"(Assuming|Building DAG|Using shell|Conda env|Singularity|Group jobs|Select jobs|Removing|"
    r"Touching|Elapsed time|None$)"
)
OF_ITSELF = {
    *(LogEvent.WORKFLOW_STARTED, LogEvent.RESOURCES_INFO, LogEvent.PROGRESS, LogEvent.SHELLCMD),
    *(LogEvent.JOB_STARTED, LogEvent.GROUP_INFO, LogEvent.DEBUG_DAG, LogEvent.RULEGRAPH),
}


@dataclass
class LogHandlerSettings(LogHandlerSettingsBase):
    """What `--logger-shape-...` says."""

    json: bool = field(
        default=False, metadata={"help": "One JSON object a line on the standard output."}
    )


@dataclass
class Job:
    """A job that has begun."""

    rule: str
    words: str
    outputs: list[str]
    began: float


class LogHandler(LogHandlerBase):
    """Says what jobs make."""

    def __post_init__(self) -> None:
        asked = self.common_settings
        self.is_aside = bool(asked.dryrun or asked.verbose or asked.debug_dag)
        self.is_json = bool(getattr(self.settings, "json", False))
        self.quiet = {each.name for each in asked.quiet or []}
        self.stream = sys.stdout if self.is_json else sys.stderr
        self.is_coloured = self.stream.isatty() and not (asked.nocolor or self.is_json)
        self.total, self.began = 0, time.time()
        self.jobs: dict[int, Job] = {}
        self.left: Counter[str] = Counter()
        self.took: defaultdict[str, list[float]] = defaultdict(list)
        self.failures: dict[int, str] = {}  # a job that is tried again may succeed

    @property
    def writes_to_stream(self) -> bool:
        """Whether Snakemake's own lines are not wanted."""
        return not self.is_aside

    @property
    def writes_to_file(self) -> bool:
        """Never."""
        return False

    @property
    def has_filter(self) -> bool:
        """As Snakemake's own would hide errors where it is told to be quiet."""
        return True

    @property
    def has_formatter(self) -> bool:
        """Snakemake's own formats what is shown as it comes."""
        return False

    @property
    def needs_rulegraph(self) -> bool:
        """Not here."""
        return False

    def emit(self, record: LogRecord) -> None:
        """Show a record, or note what it says of a job."""
        event = getattr(record, "event", None)
        if self.is_aside or event in OF_ITSELF:
            return
        try:
            if event == LogEvent.RUN_INFO:
                self._plan(vars(record)["stats"])
            elif event == LogEvent.JOB_INFO:
                self._begin(vars(record))
            elif event == LogEvent.JOB_FINISHED:
                self._finish(vars(record)["job_id"])
            else:
                if event in (LogEvent.JOB_ERROR, LogEvent.GROUP_ERROR):
                    self._fail(vars(record))
                text = self.format(record)
                if record.levelno >= WARNING or not ASIDE.match(text):
                    self._say("message", text, record.levelno)
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        """Say last why a run has failed."""
        if self.failures:
            first, *others = self.failures.values()
            also = f" ({len(others)} more failed)" if others else ""
            again = "Finished jobs are kept: put this right and run the same command again."
            self._say("failed", f"Failed: {first}{also}\n{again}", ERROR)
            self.failures = {}
        super().close()

    def _say(self, event: str, text: str, level: int = 0, **facts: Any) -> None:
        silent = {"ALL"} if event == "message" else {"ALL", "PROGRESS"}
        if level < WARNING and silent & self.quiet:
            return
        if self.is_json:
            now = datetime.now().astimezone().isoformat(timespec="milliseconds")
            text = json.dumps({"time": now, "event": event, **facts, "text": text})
        elif self.is_coloured and level >= WARNING:
            text = f"\033[{31 if level >= ERROR else 33}m{text}\033[0m"
        print(text, file=self.stream, flush=True)

    def _plan(self, stats: dict[str, int]) -> None:
        self.left = Counter(stats)
        self.total, self.began = self.left.pop("total"), time.time()
        self._say("planned", f"{self.total} jobs", jobs=dict(self.left))

    def _begin(self, said: dict[str, Any]) -> None:
        rule, wildcards = said["rule_name"], dict(said["wildcards"])
        job = Job(rule, words_of(rule, wildcards), list(said["output"]), time.time())
        self.jobs[said["jobid"]] = job
        if self.is_json or listed_rule(rule) in LONG:
            facts = {"job": said["jobid"], "rule": rule, **wildcards, "log": list(said["log"])}
            self._say("begun", f"begins: {job.words}", **facts)

    def _finish(self, number: int) -> None:
        job = self.jobs.pop(number)
        self.failures.pop(number, None)
        self.left[job.rule] -= 1
        seconds = time.time() - job.began
        self.took[job.rule].append(seconds)
        done, remaining, more = self.total - self.left.total(), *self._remaining()
        words = measured(job.words, job.outputs)
        text = f"[{done} of {self.total}] {words}, {duration(seconds)}"
        if remaining is not None and remaining >= 1:
            text += f"; {'more than' if more else 'about'} {duration(remaining)} left"
        facts: dict[str, Any] = {
            "done": done,
            "total": self.total,
            "seconds": seconds,
            "remaining": remaining,
        }
        self._say("finished", text, job=number, rule=job.rule, **facts)

    def _remaining(self) -> tuple[float | None, bool]:
        """Seconds for the jobs of rules of which one has finished, None if there are none; whether there are others."""
        now = time.time()
        known = {rule: mean(took) for rule, took in self.took.items() if self.left[rule]}
        running = self.jobs.values()
        work = sum(self.left[rule] * seconds for rule, seconds in known.items())
        work -= sum(min(now - job.began, known.get(job.rule, 0)) for job in running)
        spent = sum(map(sum, self.took.values())) + sum(now - job.began for job in running)
        at_once = max(1.0, spent / (now - self.began))
        unknown = any(
            number and rule not in known and listed_rule(rule) in WORDS
            for rule, number in self.left.items()
        )
        return (work / at_once if known else None), unknown

    def _fail(self, said: dict[str, Any]) -> None:
        for each in said.get("job_error_info", [said]):
            job = self.jobs.pop(each["jobid"], None)
            words = job.words if job else each["rule_name"]
            see = " and ".join(["the messages above", *each["log"]])
            cause = next(filter(None, map(last_error, each["log"])), f"see {see}")
            self.failures[each["jobid"]] = f"{words}: {cause}"


def last_error(log: str) -> str:
    """The last sentence of a log that says why its job ended."""
    try:
        lines = Path(log).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.split(" ERROR ", 1)[1] for line in lines[::-1] if " ERROR " in line), "")


def duration(seconds: float) -> str:
    """A time as people say it: 12 s, 3 min, 2 h 5 min."""
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 1 else "under 1 s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
