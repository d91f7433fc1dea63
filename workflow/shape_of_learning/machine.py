"""Cores and memory of this machine, on any operating system."""

import os


def count_cores() -> int:
    """Return the number of cores that this process may use, or of all cores if the system does not tell."""
    if hasattr(os, "sched_getaffinity"):  # only on Linux
        return len(os.sched_getaffinity(0))
    # `process_cpu_count` exists since Python 3.13; `cpu_count` counts all cores.
    count = getattr(os, "process_cpu_count", os.cpu_count)
    return count() or 1


def read_total_memory() -> int | None:
    """Return the size of this machine's memory in bytes; None if the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
