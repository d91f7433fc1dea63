"""Which library modules a script uses, so that editing one reruns what depends on it."""

import ast
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


def modules_used(script: Path, *more: str) -> list[str]:
    """List the files of this package that `script` imports, directly or through other modules.

    Parameters
    ----------
    script : Path
        Python file; imports inside functions count.
    *more : str
        Modules that are chosen at run time, such as that of an estimator.

    Returns
    -------
    list of str
        Sorted paths. The package's ``__init__`` is left out: it re-exports for users of the library
        and is imported by everything.
    """
    found: set[Path] = set()
    waiting = [*_imports(script), *(PACKAGE.joinpath(*f"{module}.py".split(".")[:-1]).with_suffix(".py") for module in more)]
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting.extend(_imports(file))
    return sorted(map(str, found))


@cache
def _imports(file: Path) -> frozenset[Path]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
    files = (_file(name) for name in names if name.startswith(f"{PACKAGE.name}."))
    return frozenset(file for file in files if file is not None)


def _file(module: str) -> Path | None:
    path = PACKAGE.parent.joinpath(*module.split("."))
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    return next((candidate for candidate in candidates if candidate.exists()), None)
