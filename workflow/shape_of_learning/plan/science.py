"""What a result is computed by: the syntax of the modules that a script uses, without the plumbing.

An edit of such a module makes the results anew that depend on it. Comments, docstrings and the layout of the
code are no part of its syntax, and the words of errors and logs do not count. Neither does plumbing: how
files are written, bytes fetched and command lines read decides no number.
"""

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
SCRIPTS = PACKAGE.parent / "scripts"
# Modules and packages that no number depends on. What only they import does not count either. The registry
# is among them since each of its entries is a parameter of the jobs that it decides.
PLUMBING = (
    *("errors", "storage", "script_arguments", "hub"),
    *("metrics.registry", "metrics.measure_entry"),
    *(f"checkpoints.{name}" for name in ("checkpoint_record", "tensor_digests", "tensor_hashing")),
)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def science(script: str, *modules: str | Path) -> str:
    """Digest of the modules that a script computes with.

    Parameters
    ----------
    script : str
        Name of a file in ``workflow/scripts``, without its suffix. Its own code adapts a command line and
        does not count; what it imports does, also inside functions.
    *modules : str or Path
        What is chosen at run time: modules of this package, such as ``"estimators.mada"``, or a file.

    Returns
    -------
    str
        Sixteen hexadecimal digits.
    """
    content = hashlib.sha256()
    for file in science_modules(SCRIPTS / f"{script}.py", *modules):
        _, syntax = _module(file)
        content.update(f"{file.relative_to(PACKAGE.parent).as_posix()}\0{syntax}\0".encode())
    return content.hexdigest()[:16]


def science_modules(script: Path, *modules: str | Path) -> list[Path]:
    """List the files that a script computes with; parameters as above, `script` as a path."""
    found: set[Path] = set()
    waiting = [*_imports(_parsed(script)), *map(_chosen, modules)]
    while waiting:
        file = waiting.pop()
        if file is not None and file not in found and not _is_plumbing(file):
            found.add(file)
            imports, _ = _module(file)
            waiting.extend(imports)
    return sorted(found)


def _is_plumbing(file: Path) -> bool:
    module = ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts)
    module = module.removeprefix(f"{PACKAGE.name}.")
    return any(module == name or module.startswith(f"{name}.") for name in PLUMBING)


@cache
def _module(file: Path) -> tuple[frozenset[Path], str]:
    """What a file imports of this package, and its syntax."""
    tree = _parsed(file)
    imports = _imports(tree)
    for node, block in _blocks(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            del block[0]
        block[:] = map(_without_words, block)
    return imports, ast.dump(tree)


def _blocks(tree: ast.Module) -> Iterator[tuple[ast.AST, list[ast.stmt]]]:
    """Yield each list of statements with what it belongs to; most of a tree are expressions."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        waiting += [*getattr(node, "handlers", ()), *getattr(node, "cases", ())]
        names = {"body", "orelse", "finalbody"}.intersection(node._fields)
        for block in (getattr(node, name) for name in names):
            yield node, block
            waiting += block


def _without_words(statement: ast.stmt) -> ast.stmt:
    """Take out what is said in logs and errors."""
    match statement:
        case ast.Expr(ast.Call(func=ast.Attribute(value=ast.Name(id="logger")))):
            return ast.Pass()
        case ast.Raise(ast.Call(func=function)):
            return ast.Raise(function)
    return statement


def digest_of_package(module: Path) -> str:
    """Digest of the syntax of all modules beside and below one of another package."""
    files = (
        sorted(module.parent.rglob("*.py"))
        if module.with_name("__init__.py").exists()
        else [module]
    )
    return hashlib.sha256("".join(_module(file)[1] for file in files).encode()).hexdigest()[:16]


def _imports(tree: ast.Module) -> frozenset[Path]:
    names: set[str] = set()
    for node in (statement for _, block in _blocks(tree) for statement in block):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
    files = (_file(name) for name in names if name.startswith(f"{PACKAGE.name}."))
    return frozenset(file for file in files if file is not None)


def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def _chosen(module: str | Path) -> Path | None:
    return module.resolve() if isinstance(module, Path) else _file(f"{PACKAGE.name}.{module}")


def _file(module: str) -> Path | None:
    path = PACKAGE.parent.joinpath(*module.split("."))
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    return next((candidate for candidate in candidates if candidate.exists()), None)
