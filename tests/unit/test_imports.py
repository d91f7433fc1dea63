"""What is read from the syntax of scripts is what Python loads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from imports import PACKAGE, all_imported_files
from shape_of_learning.plan.science import PLUMBING, science_modules

SCRIPTS = sorted((PACKAGE.parent / "scripts").glob("*.py"))


def loaded_by(script: Path) -> dict[str, str]:
    """Modules that a script loads as it starts, and their files."""
    # The package's own __init__ imports nothing until an estimator is asked for.
    program = (
        f"import sys, {script.stem}\n"
        "for name, module in list(sys.modules.items()): print(name, getattr(module, '__file__', None))"
    )
    paths = os.pathsep.join([str(PACKAGE.parent), str(script.parent)])
    said = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return dict(line.split(" ", 1) for line in said.stdout.splitlines())


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_what_is_loaded_is_found_by_reading(script):
    own = {
        name.removeprefix(f"{PACKAGE.name}."): Path(file)
        for name, file in loaded_by(script).items()
        if name.startswith(f"{PACKAGE.name}.") and Path(file).stem != "__init__"
    }
    assert own
    assert set(own.values()) <= all_imported_files([script])
    counted = {
        file
        for name, file in own.items()
        if not any(name == plumbing or name.startswith(f"{plumbing}.") for plumbing in PLUMBING)
    }
    assert counted <= set(science_modules(script))
