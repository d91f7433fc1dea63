"""The table of bad inputs: what is given, when it is refused, and what the sentence says.

Configurations and models are refused as they are read, plans while the run is planned, all of them by
``snakemake``; jobs by the script of a rule. Each kind has a file of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bad_configurations import CONFIGURATIONS
from bad_jobs import ENDPOINTS, FETCH, FETCHED, JOBS
from bad_models import MODELS
from bad_plans import PLANS
from refusals import WANTED

READING, PLANNING, JOB = "at reading", "at planning", "in a job"


@dataclass(frozen=True)
class Case:
    """One bad input.

    Attributes
    ----------
    name : str
        What is wrong with it.
    sentence : str
        What the refusal must say.
    when : str
    files : mapping of str to bytes or object
        What lies in the folder: bytes as they are, anything else as YAML.
    arguments : tuple of str
        What follows ``snakemake``, or the script and its arguments.
    """

    name: str
    sentence: str
    when: str
    files: Mapping[str, object] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()


def cases() -> list[Case]:
    """All rows of all tables."""
    demo = {"case.yaml": WANTED}
    rows = [
        Case(f"configuration: {name}", said, READING, {"case.yaml": _bytes(content)})
        for name, (content, said) in CONFIGURATIONS.items()
    ]
    rows += [
        Case(f"model: {name}", said, READING, {**demo, "config/models/mine.yaml": _bytes(content)})
        for name, (content, said) in MODELS.items()
    ]
    rows += [
        Case(name, said, PLANNING, files, arguments)
        for name, (files, arguments, said) in PLANS.items()
    ]
    rows += [Case(name, "the variable HF_ENDPOINT is no address", READING) for name in ENDPOINTS]
    rows += [
        Case(name, said, JOB, changes, arguments)
        for name, (changes, arguments, said) in JOBS.items()
    ]
    return rows + [Case(name, said, JOB, {}, FETCH) for name, (_, said) in FETCHED.items()]


def _bytes(content: bytes | str) -> bytes:
    return content.encode() if isinstance(content, str) else content
