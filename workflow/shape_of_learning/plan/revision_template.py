"""Names of training revisions, such as ``step{step}`` or ``step-{kilosteps}k-token-{gigatokens}B``."""

import re
from dataclasses import dataclass
from functools import cached_property

PLACEHOLDERS = {"step", "kilosteps", "gigatokens"}


@dataclass(frozen=True)
class RevisionTemplate:
    """A pattern that a step's revision, or its repository, follows.

    Attributes
    ----------
    pattern : str
        Text with ``{step}`` or ``{kilosteps}`` (thousands of steps), and ``{gigatokens}`` (billions of
        tokens seen, rounded as the publisher liked).
    """

    pattern: str

    @property
    def has_step(self) -> bool:
        """Whether the names differ from step to step at all."""
        return "{step}" in self.pattern or "{kilosteps}" in self.pattern

    @property
    def says_all(self) -> bool:
        """Whether a step alone decides the name."""
        return "{gigatokens}" not in self.pattern

    def name(self, step: int) -> str:
        """Write the name of a step; thousands of steps must be whole ones."""
        return self.pattern.replace("{step}", str(step)).replace("{kilosteps}", str(step // 1000))

    def read(self, name: str) -> tuple[int, int | None] | None:
        """Read step and tokens (None if the pattern has none) from a name; None if it does not fit."""
        found = self._expression.fullmatch(name)
        if found is None:
            return None
        values = {key: int(value) for key, value in found.groupdict().items()}
        step = values["step"] if "step" in values else 1000 * values["kilosteps"]
        return step, values["gigatokens"] * 10**9 if "gigatokens" in values else None

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        parts = re.split(r"\{(\w+)\}", self.pattern)
        return re.compile(
            "".join(
                rf"(?P<{part}>\d+)" if number % 2 else re.escape(part)
                for number, part in enumerate(parts)
            ),
            re.ASCII,
        )
