"""A digest of the code that a job imports, so that edited code reruns the job, and an edited comment reruns nothing."""

import ast
import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import shape_of_learning
from shape_of_learning.errors import InputError

LIBRARY = "shape_of_learning"
# A public name of the library -> the module that defines it.
HOME: dict[str, str] = vars(shape_of_learning)["_HOME"]
WORKFLOW = Path(__file__).resolve().parents[1]
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def digest_code(script: str, *modules: str) -> str:
    """Return a digest of all code that a script runs.

    Parameters
    ----------
    script : str
        Name of a file in ``workflow/scripts`` without its suffix, or a module such as
        ``"papers.linear.edit_blocks"``.
    *modules : str
        Modules that the script chooses at run time, such as ``"shape_of_learning.estimators.dimension"`` or
        ``"papers.linear.figures"``. If a module belongs to another package, all Python files beside and below it
        count; if it is a file outside of a package, that file alone counts.

    Returns
    -------
    str
        Sixteen hexadecimal digits.
    """
    digest = hashlib.sha256()
    own_modules = [name for name in modules if find_file(name)]
    for file in list_files(script if "." in script else f"scripts.{script}", *own_modules):
        digest.update(f"{file.relative_to(WORKFLOW).as_posix()}\0{_dump_syntax(file)}\0".encode())
    for name in sorted(set(modules) - set(own_modules)):
        digest.update("".join(map(_dump_syntax, _list_foreign_files(name))).encode())
    return digest.hexdigest()[:16]


def list_files(*modules: str) -> list[Path]:
    """List the files of modules, and of all modules of this project that they import, also in functions."""
    files: set[Path] = set()
    queue = [find_file(name) for name in modules]
    while queue:
        file = queue.pop()
        if file is not None and file not in files:
            files.add(file)
            queue.extend(map(find_file, list_imports(file)))
    return sorted(files)


def find_file(name: str) -> Path | None:
    """Find the file of a module of this project; None for other names, such as an imported function."""
    path = WORKFLOW.joinpath(*name.split("."))
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    return next((candidate for candidate in candidates if candidate.exists()), None)


def _list_foreign_files(name: str) -> list[Path]:
    try:
        spec = find_spec(name)
    except ImportError:
        spec = None
    if spec is None or not str(spec.origin).endswith(".py"):
        raise InputError(
            f"a measure or a figure names the Python module {name}, which does not exist; correct the name"
        )
    file = Path(str(spec.origin))
    return sorted(file.parent.rglob("*.py")) if file.with_name("__init__.py").exists() else [file]


@cache
def _parse_file(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def _dump_syntax(file: Path) -> str:
    tree = _parse_file(file)
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return ast.dump(tree)


def _name_module(node: ast.ImportFrom, file: Path) -> str:
    """Return the absolute name of the module from which a statement imports."""
    if not node.level:
        return node.module or ""
    package = file.relative_to(WORKFLOW).parent.parts if file.is_relative_to(WORKFLOW) else ()
    above = package[: len(package) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])])


@cache
def list_imports(file: Path) -> list[str]:
    """List the names that a file imports: modules, and what it takes from them, which may be modules, too."""
    modules: list[str] = []
    for node in ast.walk(_parse_file(file)):
        if isinstance(node, ast.ImportFrom):
            module = _name_module(node, file)
            modules += [module, *(f"{module}.{alias.name}" for alias in node.names)]
            if module == LIBRARY:  # its public names are imported on first use
                modules += [f"{LIBRARY}.{HOME.get(alias.name, alias.name)}" for alias in node.names]
        elif isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
    return modules
