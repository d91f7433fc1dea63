"""What a job was computed by: software by name and version, hardware, and the state of this workflow.

Jobs of one run may be computed on several machines, so each says it itself: once it has ended well,
``{job}.json`` lies beside its log. No result depends on that.
"""

import json
import os
import platform
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

from shape_of_learning.storage.files import atomic_write

# What the process that plans knows of this workflow, as JSON; jobs take over its variables.
VARIABLE = "SHAPE_OF_LEARNING_WORKFLOW"
_LINEAR_ALGEBRA = re.compile(r"lib[^/]*(?:blas|blis|lapack|mkl_(?:rt|core))[^/]*$", re.IGNORECASE)

# Lines of what PyTorch says it is built with.
_TORCH_LIBRARY = re.compile(
    r"^ *- (.*(?:Library|MKL-DNN|oneDNN|CPU capability|CuDNN|CUDA Runtime).*)$", re.MULTILINE
)


def now() -> str:
    """Return the time as ISO 8601 has it, in UTC and whole seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def write_job_record(log: Path, started: str) -> None:
    """Write the record of a job that has done its work, beside its log.

    Parameters
    ----------
    log : Path
        Its log, ``{job}.log``, which need not exist.
    started : str
        What :func:`now` said as it began.
    """
    record = {
        "rule": Path(sys.argv[0]).stem,
        "started": started,
        "ended": now(),
        "environment": environment(),
    }
    with atomic_write(log.with_suffix(".json")) as partial:
        partial.write_text(json.dumps(record, indent=1), encoding="utf-8")


def environment() -> dict[str, Any]:
    """Say by what this process has computed so far; a package counts if it was imported.

    Returns
    -------
    dict
        ``software``: versions by name; ``linear_algebra``: what NumPy and PyTorch say of the libraries that
        multiply their matrices; ``hardware``; ``system``; ``workflow``, as the
        process that planned has said it.
    """
    return {
        "workflow": json.loads(os.environ.get(VARIABLE, "{}")),
        "software": {"python": platform.python_version(), **_packages(sys.modules)},
        "linear_algebra": _linear_algebra(sys.modules),
        "hardware": _hardware(sys.modules),
        "system": platform.platform(),
    }


def _packages(modules: Mapping[str, ModuleType]) -> dict[str, str]:
    """Versions of what was imported from outside Python, by the names of modules."""
    versions = {}
    for name, module in sorted(modules.items()):
        if name.isidentifier() and name not in sys.stdlib_module_names and name[0] != "_":
            with suppress(Exception):  # of modules that load their names when they are asked for
                versions[name] = module.__version__
    return {name: version for name, version in versions.items() if isinstance(version, str)}


def _linear_algebra(modules: Mapping[str, ModuleType]) -> dict[str, str]:
    found = {}
    if numpy := modules.get("numpy"):
        built = numpy.show_config(mode="dicts")["Build Dependencies"]
        found["numpy"] = "; ".join(
            f"{kind.upper()} {built[kind].get('name')} {built[kind].get('version')}"
            for kind in ("blas", "lapack")
            if kind in built
        )
    if torch := modules.get("torch"):
        said = torch.__config__.show()
        blas = [f"BLAS {name}" for name in re.findall(r"BLAS_INFO=(\w+)", said)[:1]]
        found["torch"] = "; ".join(blas + _TORCH_LIBRARY.findall(said))
    if loaded := _loaded_libraries():
        found["loaded"] = " ".join(loaded)
    return found


def _loaded_libraries() -> list[str]:
    """Names of the files that such libraries were loaded from, where the system says it."""
    try:
        mapped = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return sorted(
        {found[0] for line in mapped.splitlines() if (found := _LINEAR_ALGEBRA.search(line))}
    )


def _hardware(modules: Mapping[str, ModuleType]) -> dict[str, Any]:
    hardware: dict[str, Any] = {
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
    }
    torch = modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        hardware["gpus"] = [
            torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())
        ]
    return hardware


def _processor() -> str:
    try:
        said = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor()
    named = re.search(r"^(?:model name|Model)\s*:\s*(.+)$", said, re.MULTILINE)
    return named[1].strip() if named else platform.processor()
