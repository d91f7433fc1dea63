"""Functions that files of a paper name, looked up without importing their modules."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shape_of_learning.errors import InputError
from shape_of_learning.plan.refusals import unknown_name

SHARED = Path(__file__).resolve().parents[1] / "figures"  # functions that several papers draw with


@dataclass(frozen=True)
class Signature:
    """Arguments of a function but the first.

    Attributes
    ----------
    arguments : list of str
        Their names.
    needed : list of str
        Those of them that have no default.
    kinds : dict of str to str
        How those that say it are annotated, such as ``float``.
    """

    arguments: list[str]
    needed: list[str]
    kinds: dict[str, str]


@dataclass(frozen=True)
class Function:
    """A function that draws a figure or writes a table: ``module:name`` is what a job imports."""

    module: str
    name: str
    file: Path

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"


def named_function(name: str, folder: Path) -> Function:
    """Find ``function`` of a paper's figures.py, or ``module.function`` of its folder or of all papers."""
    module, _, name = name.rpartition(".")
    own = folder / f"{module or 'figures'}.py"
    if module and not own.exists():
        return Function(f"shape_of_learning.figures.{module}", name, SHARED / f"{module}.py")
    return Function(f"papers.{folder.name}.{own.stem}", name, own)


def public_functions(file: Path) -> dict[str, Signature]:
    """Public functions of a module, without importing it.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError) as error:
        raise InputError(
            f"{file} cannot be read ({error}); a paper's functions belong there"
        ) from error
    return {
        each.name: _signature(each.args)
        for each in tree.body
        if isinstance(each, ast.FunctionDef) and not each.name.startswith("_")
    }


def _signature(of: ast.arguments) -> Signature:
    places = [argument.arg for argument in of.args]
    optional = set(places[len(places) - len(of.defaults) :])
    optional |= {a.arg for a, d in zip(of.kwonlyargs, of.kw_defaults, strict=True) if d is not None}
    names = [*places, *(argument.arg for argument in of.kwonlyargs)][1:]
    said = {a.arg: ast.unparse(a.annotation) for a in (*of.args, *of.kwonlyargs) if a.annotation}
    return Signature(names, [name for name in names if name not in optional], said)


def check_function(
    name: str,
    given: Sequence[str],
    functions: Mapping[str, Signature],
    where: str,
    kind: str,
) -> None:
    """Refuse a function that there is not, or that takes no argument of a given name.

    Raises
    ------
    InputError
        One sentence that says `where` it is named, with the nearest name.
    """
    if name not in functions:
        raise unknown_name(name, functions, kind, where)
    for argument in given:
        if argument not in functions[name].arguments:
            raise unknown_name(argument, functions[name].arguments, f"argument of `{name}`", where)
