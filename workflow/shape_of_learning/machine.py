"""The machine that this runs on: its cores and its memory, on any system."""

import os


def count_cores() -> int:
    """Return the number of cores that this process may use; of all cores where the system does not say."""
    if hasattr(os, "sched_getaffinity"):  # on Linux alone
        return len(os.sched_getaffinity(0))
    # Of Python 3.13 on; others count all cores.
    count = getattr(os, "process_cpu_count", os.cpu_count)
    return count() or 1


def read_total_memory() -> int | None:
    """Return the bytes of memory of this machine; None where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
