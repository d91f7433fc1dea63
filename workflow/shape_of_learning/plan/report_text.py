"""Text of a user's that a report shows as it is.

A report of Snakemake has the parameters of each job within a script of its page, where ``</script>`` in a label
would end it, and what follows would run.
"""

from dataclasses import fields, is_dataclass, replace
from typing import Any


class ReportText(str):
    """Text whose `repr` has no sign that begins a tag, and which is the same text in all else."""

    __slots__ = ()

    def __repr__(self) -> str:
        return super().__repr__().replace("<", r"\x3c")

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return str, (str(self),)  # to a job it travels as plain text


def escape_for_report(value: Any) -> Any:
    """Return an equal value, such as a job, with :class:`ReportText` where text of it could begin a tag."""
    if isinstance(value, str):
        return ReportText(value) if "<" in value else value
    if isinstance(value, dict):
        return {escape_for_report(key): escape_for_report(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [escape_for_report(inner) for inner in value]
    if isinstance(value, tuple):
        inner = map(escape_for_report, value)
        return type(value)(*inner) if hasattr(value, "_fields") else tuple(inner)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{f.name: escape_for_report(getattr(value, f.name)) for f in fields(value)}
        )
    return value
