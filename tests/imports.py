"""What a file of this project imports, read from its syntax.

An import counts wherever it stands, in a function too, but not under ``if TYPE_CHECKING``.
"""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

WORKFLOW = Path(__file__).parents[1] / "workflow"
PACKAGE = WORKFLOW / "shape_of_learning"


def parsed(file: Path) -> ast.Module:
    """A file's syntax tree."""
    return ast.parse(file.read_text(encoding="utf-8"))


def at_run_time(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below one, without what only a type checker reads."""
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)):
            yield child
            yield from at_run_time(child)


def imported_names(file: Path) -> set[str]:
    """Dotted names that a file imports; `from a import b` may mean the module a.b, so it gives both."""
    names: set[str] = set()
    for node in at_run_time(parsed(file)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: a relative import"
            names.add(str(node.module))
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def imported_files(file: Path, package: Path = PACKAGE) -> set[Path]:
    """Files of a package that a file imports: of `from a.b import c` just b, if c is no module."""
    found: set[Path] = set()
    for name in imported_names(file):
        first, *rest = name.split(".")
        if first == package.name:
            path = package.joinpath(*rest)
            found.update((path.with_suffix(".py"), path / "__init__.py"))
    # The folders' own files hold no more than a docstring, but for the root's.
    return {
        each
        for each in found
        if each.exists() and (each.stem != "__init__" or each.parent == package)
    }


def all_imported_files(files: Iterable[Path]) -> set[Path]:
    """These files, and all of the package that they import, also through others."""
    found: set[Path] = set()
    waiting = list(files)
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting.extend(imported_files(file))
    return found
