"""What a result is computed by: the syntax of a script and of every module of ours that it imports.

An edit of such a module makes the results anew that depend on it. Comments, docstrings and the layout of
the code are no part of its syntax. Snakemake's own trigger `code` would compare the time of the script alone.
"""

import ast
import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from shape_of_learning.errors import InputError

WORKFLOW = Path(__file__).resolve().parents[2]
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def digest_code(script: str, *modules: str) -> str:
    """Digest of all code that a script runs, wherever it lies.

    Parameters
    ----------
    script : str
        Name of a file in ``workflow/scripts`` without its suffix, or a module such as
        ``"papers.linear.edit_blocks"``.
    *modules : str
        What is chosen at run time, such as ``"shape_of_learning.estimators.dimension"`` or
        ``"papers.linear.figures"``. Of a module of another package, all that lies beside and below it counts.

    Returns
    -------
    str
        Sixteen hexadecimal digits.
    """
    digest = hashlib.sha256()
    own = [name for name in modules if _find_file(name)]
    for file in list_files(script if "." in script else f"scripts.{script}", *own):
        digest.update(f"{file.relative_to(WORKFLOW).as_posix()}\0{_dump_syntax(file)}\0".encode())
    for name in sorted(set(modules) - set(own)):
        digest.update("".join(map(_dump_syntax, _list_foreign_files(name))).encode())
    return digest.hexdigest()[:16]


def list_files(*named: str) -> list[Path]:
    """List these files and all modules of ours that they import, also in functions."""
    found: set[Path] = set()
    waiting = [_find_file(each) for each in named]
    while waiting:
        file = waiting.pop()
        if file is not None and file not in found:
            found.add(file)
            waiting.extend(map(_find_file, _list_imports(file)))
    return sorted(found)


def _find_file(name: str) -> Path | None:
    """The file of one of our modules; None for what is none, such as an imported function."""
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
            f"there is no Python module {name}, which a measure or a figure names; correct it"
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


@cache
def _list_imports(file: Path) -> list[str]:
    found: list[str] = []
    for node in ast.walk(_parse_file(file)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return found
