"""How much memory there is, and whether an error says that it is exhausted."""

from contextlib import suppress
from pathlib import Path

from shape_of_learning.errors import InputError

# What PyTorch, CUDA and cuBLAS say when memory is exhausted, besides MemoryError.
PHRASES = ("out of memory", "can't allocate memory", "not enough memory", "STATUS_ALLOC_FAILED")
LESS_SAMPLE = "lower `sampling.windows`, or set `embeddings.dump: true`"


def memory_is_exhausted(error: BaseException) -> bool:
    """Whether less at a time could help: PyTorch has several exceptions for it."""
    if isinstance(error, MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(phrase in str(error) for phrase in PHRASES)


def require_memory(needed: int, what: str, remedy: str = LESS_SAMPLE) -> None:
    """Refuse to start what would fill the memory of the host.

    Parameters
    ----------
    needed : int
        Bytes.
    what : str
        Subject of the message.
    remedy : str
        Its end.

    Raises
    ------
    InputError
        If fewer are available, as far as the system says.
    """
    available = available_memory()
    if available is not None and needed > available:
        raise InputError(
            f"{what} take {needed / 1e6:,.0f} MB of memory, but {available / 1e6:,.0f} MB are "
            f"available; {remedy}"
        )


def available_memory(system: Path = Path("/")) -> int | None:
    """Return the bytes of host memory that this process may still take; None where Linux does not say.

    Limits of control groups count, by which schedulers and containers hold their jobs.
    """
    sizes = []
    with suppress(OSError):
        lines = (system / "proc/meminfo").read_text().splitlines()
        sizes = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    with suppress(OSError):
        for line in (system / "proc/self/cgroup").read_text().splitlines():
            if line.startswith("0::"):  # of the only version that has one hierarchy
                group = system / "sys/fs/cgroup" / line.removeprefix("0::/")
                sizes.extend(_left_in_groups(group, system / "sys/fs/cgroup"))
    return min(sizes, default=None)


def _left_in_groups(group: Path, top: Path) -> list[int]:
    """What each group with a limit leaves, from `group` up to `top`."""
    left = []
    for folder in (group, *group.parents):
        with suppress(OSError, ValueError):  # no limit is the word `max`
            limit = int((folder / "memory.max").read_text())
            taken = int((folder / "memory.current").read_text())
            lines = (folder / "memory.stat").read_text().splitlines()
            # Files that have been read stay in memory only while nobody needs it.
            cached = sum(
                int(line.split()[1]) for line in lines if line.startswith("inactive_file ")
            )
            left.append(limit - taken + cached)
        if folder == top:
            break
    return left
