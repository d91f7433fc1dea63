"""A checkpoint and the verdict on it."""

from dataclasses import dataclass

OK = "ok"
NOT_YET_CONFIRMED = ", not yet confirmed"


@dataclass(frozen=True)
class JudgedCheckpoint:
    """A checkpoint of a model and the verdict on it.

    Attributes
    ----------
    name : str
        Within its model.
    step, tokens : int or None
        None where there are none.
    verdict : str
        ``ok`` or what is wrong.
    is_last : bool
        Whether it is the last step of training: it keeps its name where several steps hold its weights.
    same_as : int or None
        The step whose weights it is reported to hold.
    """

    name: str
    step: int | None
    tokens: int | None
    verdict: str = OK
    is_last: bool = False
    same_as: int | None = None

    @property
    def is_condemned(self) -> bool:
        """Whether it is known to be bad; a report that is not yet confirmed does not suffice."""
        return self.verdict != OK and not is_unconfirmed(self.verdict)


def is_unconfirmed(verdict: str) -> bool:
    """Whether a verdict is a report that the tensors, which are not there yet, decide."""
    return verdict.endswith(NOT_YET_CONFIRMED)
