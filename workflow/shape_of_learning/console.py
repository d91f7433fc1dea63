"""The terminal: what is shown, what is told beside it, bars, and one sentence for what is wrong."""

import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from shape_of_learning.errors import InputError, without_secrets

WIDE = 10_000  # characters of a line, where no terminal breaks it
shown = Console(width=None if sys.stdout.isatty() else WIDE, markup=False)
told = Console(stderr=True, markup=False)


@contextmanager
def explained(
    *outputs: Path | None, options: Mapping[str, str] = MappingProxyType({}), code: int = 1
) -> Iterator[None]:
    """Refuse files that cannot be written, and end with one sentence on what was given, and an exit code.

    In it keys of the configuration are called by the `options` that stand for them.
    """
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    try:
        for path in filter(None, outputs):
            if path.is_dir():
                raise InputError(f"{path} is a folder; name a file")
            if not path.absolute().parent.is_dir():
                raise InputError(f"{path.parent} is no folder; make it, or correct the path")
        yield
    except (InputError, OSError) as error:
        said = without_secrets(str(error))
        for key, option in options.items():
            said = said.replace(f"`{key}`", option).replace(key, option)
        told.print(f"ERROR: {said}", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(code) from None


@contextmanager
def bar(name: str) -> Iterator[Callable[[str, int, int], None]]:
    """A bar for each kind of what is done; nothing where there is no terminal."""
    described = TextColumn("{task.description}", markup=False)
    columns = (described, BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=told, disable=not told.is_terminal, transient=True) as progress:
        bars: dict[str, Any] = {}

        def update(what: str, done: int, number: int) -> None:
            if what not in bars:
                bars[what] = progress.add_task(f"{name}: {what}", total=number)
            progress.update(bars[what], completed=done)

        yield update
