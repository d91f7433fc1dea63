import subprocess
import sys
from pathlib import Path

import pytest
from shape_of_learning.plan.source_files import PACKAGE, modules_used

from shape_of_learning.metrics.registry import ESTIMATORS

SCRIPTS = sorted((PACKAGE.parent / "scripts").glob("*.py"))


def names(files: list[str]) -> set[str]:
    return {Path(file).relative_to(PACKAGE).with_suffix("").as_posix() for file in files}


def test_modules_are_found_through_other_modules():
    assert {"embeddings/dump", "embeddings/forward_pass", "files", "errors"} <= names(
        modules_used(PACKAGE.parent / "scripts" / "dump_embeddings.py")
    )


def test_the_module_of_an_estimator_counts():
    script = PACKAGE.parent / "scripts" / "measure_isotropy.py"
    assert "spectrum" not in names(modules_used(script))
    assert "spectrum" in names(modules_used(script, ESTIMATORS["anisotropy"].module))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_what_is_loaded_at_the_start_is_listed(script):
    """Compare with what Python itself loads: nothing may be missing from the list."""
    program = (
        "import importlib, sys, types\n"
        # The package's own __init__ re-exports the estimators, for users of the library only.
        f"package = types.ModuleType('shape_of_learning'); package.__path__ = [{str(PACKAGE)!r}]\n"
        "sys.modules['shape_of_learning'] = package\n"
        f"sys.path[:0] = [{str(PACKAGE.parent)!r}, {str(script.parent)!r}]\n"
        f"importlib.import_module({script.stem!r})\n"
        "print(*(m.__file__ for n, m in sys.modules.items() if n.startswith('shape_of_learning.')))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert loaded
    listed = modules_used(script)
    assert {file for file in loaded if not file.endswith("__init__.py")} <= set(listed)


@pytest.mark.parametrize(
    "script",
    ["measure_isotropy", "measure_intrinsic_dimension", "find_neighbours", "gather_layers"],
)
def test_a_metric_job_imports_no_deep_learning_library(script):
    program = (
        f"import sys; sys.path[:0] = [{str(PACKAGE.parent)!r}, {str(SCRIPTS[0].parent)!r}]\n"
        f"import {script}, shape_of_learning\n"
        "from shape_of_learning.metrics.registry import ESTIMATORS\n"
        "[estimator.load() for estimator in ESTIMATORS.values()]\n"
        "assert not {'torch', 'transformers', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
