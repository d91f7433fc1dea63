"""The layout of the code, read from its syntax: imports between rooms, and names of files."""

import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

from shape_of_learning.code_digest import WORKFLOW, find_file, list_imports

PACKAGE = WORKFLOW / "shape_of_learning"
SCRIPTS, PAPERS = WORKFLOW / "scripts", WORKFLOW / "papers"

# A room imports from lower floors only, so not from another one of its floor.
FLOORS = (
    ("errors", "machine", "random_streams"),
    ("code_digest", "files", "job", "validation", "words", "estimators"),
    ("file_hashes",),
    ("metrics", "corpus", "checkpoints", "console"),
    ("tasks", "findings"),
    ("claims",),
    ("embeddings", "figures", "explorer", "provenance"),
    ("one_model",),
    ("training",),
    ("plan", "scripts"),
    ("audit", "papers", "results"),
    ("verification",),
    ("command_line",),
    ("__main__",),
)
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
# Every job reads the Snakefile, which must not wait for these.
SLOW_TO_IMPORT = {"h5py", "matplotlib", "numpy", "pandas", "scipy", "torch", "transformers"}

FILES = sorted([*PACKAGE.rglob("*.py"), *SCRIPTS.rglob("*.py"), *PAPERS.rglob("*.py")])


def list_imported_files(file: Path) -> set[Path]:
    """List files of ours that a file imports, without the `__init__.py` of rooms, which are empty."""
    files = {find_file(name) for name in list_imports(file)} - {None}
    return {path for path in files if path.stem != "__init__" or path.parent == PACKAGE}


def find_room(file: Path) -> str:
    """Return the room of a file of the package, a script or a paper's module."""
    inside = file.relative_to(PACKAGE if file.is_relative_to(PACKAGE) else WORKFLOW)
    return inside.with_suffix("").parts[0]


def name_file(file: Path) -> str:
    return str(file.relative_to(WORKFLOW))


def test_a_room_imports_from_lower_floors_only():
    wrong = [
        f"{name_file(file)} imports {name_file(other)}"
        for file in FILES
        if file != PACKAGE / "__init__.py"
        for other in list_imported_files(file)
        if other != PACKAGE / "__init__.py"
        and find_room(other) != find_room(file)
        and not FLOOR_OF[find_room(other)] < FLOOR_OF[find_room(file)]
    ]
    assert not wrong


def test_no_files_import_each_other_in_a_circle():
    graph = {file: list_imported_files(file) for file in PACKAGE.rglob("*.py")}
    TopologicalSorter(graph).prepare()  # raises a CycleError


def test_no_code_imports_scripts_and_no_paper_imports_another():
    private = {file.stem for file in SCRIPTS.glob("*.py")} | {"scripts", "papers", "workflow"}
    wrong = [
        f"{name_file(file)} imports {name}"
        for file in FILES
        for name in list_imports(file)
        if name.split(".")[0] in private
        and not f"{name}.".startswith(".".join(file.relative_to(WORKFLOW).parts[:2]) + ".")
    ]
    assert not wrong


def test_the_plan_imports_no_numerical_libraries():
    modules = [f"shape_of_learning.plan.{file.stem}" for file in (PACKAGE / "plan").glob("*.py")]
    program = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    process = subprocess.run(
        [sys.executable, "-c", program.replace(".__init__", "")],
        env={"PYTHONPATH": str(WORKFLOW)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert SLOW_TO_IMPORT & set(process.stdout.split()) == set()


def test_no_file_is_called_common_helpers_misc_or_utils():
    assert {file.stem for file in FILES} & {"common", "helpers", "misc", "utils"} == set()
