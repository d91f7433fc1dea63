"""The terminal: what is shown, what is told beside it, bars, and one sentence for what is wrong."""

import errno
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from types import MappingProxyType
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from shape_of_learning.errors import (
    InputError,
    escape_controls,
    explain_failure,
    hide_secrets,
    shorten_error,
)
from shape_of_learning.files import expand_home, find_descriptor, follow_links, is_stream
from shape_of_learning.job import RedactingFormatter, hide_bars

WIDE = 10_000  # characters of a line, where no terminal breaks it
STANDARD_INPUT, STANDARD_OUTPUT = Path("/dev/fd/0"), Path("/dev/fd/1")
# What only who has a configuration can do.
CONFIGURATION_WORDS = {
    " (with `measurement.token_types: one` only one vector of each token type is measured)": "",
    ", or set `embeddings.dump: true`": "",
    ", set `precision: bfloat16` in the model's entry or lower": ", or lower",
    "set `precision: bfloat16` in the model's entry, take": "take",
    ", or remove it from key `models`": "",
    ", or of a task leave out texts that are longer": "",
    ", or for a `repository` name the one that has it under `tokenizer` in the entry": "",
    "but its entry says": "but its config.json says",
}


class PlainConsole(Console):
    """A terminal that takes no command from a text that is printed, such as the name of a revision."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Make a text of a string, in which control characters are escapes."""
        return super().render_str(escape_controls(text), **options)

    def on_broken_pipe(self) -> None:
        """End quietly, as other programs do whose reader has seen enough."""
        _silence_standard_output()
        raise SystemExit(128 + signal.SIGPIPE)


def _silence_standard_output() -> None:
    """Let nothing more be written to a pipe that nobody reads, not even when Python ends."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# Python has no standard output where a shell has closed it.
shown = PlainConsole(width=None if sys.stdout and sys.stdout.isatty() else WIDE, markup=False)
told = PlainConsole(stderr=True, markup=False)


def parse_output(name: str) -> Path:
    """Read the name of a file to write, of which ``-`` is the standard output."""
    if name == "-":
        return STANDARD_OUTPUT
    if not name or name.endswith(("/", os.sep)):
        raise typer.BadParameter(f"`{name}` is no name of a file; give one")
    return expand_home(name)


def parse_input(name: str) -> Path:
    """Read the name of a file to read, of which ``-`` is the standard input."""
    return STANDARD_INPUT if name == "-" else expand_home(name)


def make_results_console(*outputs: Path | None) -> Console:
    """Return where tables are printed: on the standard output, unless a file's content goes there."""
    return told if any(path and find_descriptor(path) == 1 for path in outputs) else shown


@contextmanager
def exit_on_input_error(
    *outputs: Path | None,
    inputs: tuple[Path | None, ...] = (),
    options: Mapping[str, str] = MappingProxyType({}),
    code: int = 1,
) -> Iterator[None]:
    """Refuse files that cannot be written, and end with one sentence on what was given, and an exit code.

    In it keys of the configuration are called by the `options` that stand for them.
    """
    _configure_logging()
    hide_bars()
    try:
        _require_outputs([path for path in outputs if path], [path for path in inputs if path])
        yield
    except (typer.Exit, typer.Abort):
        raise
    except KeyboardInterrupt:
        raise typer.Exit(128 + signal.SIGINT) from None
    except BrokenPipeError:  # whoever read it has seen enough, as `head` has
        _silence_standard_output()
        raise typer.Exit(128 + signal.SIGPIPE) from None
    except Exception as error:
        sentence = explain_failure(error)
        if isinstance(error, InputError) or (sentence is None and isinstance(error, OSError)):
            sentence = str(error) if isinstance(error, InputError) else shorten_error(error)
        if isinstance(error, ModuleNotFoundError):
            sentence = (
                f"the package `{error.name}` is missing; install what the command needs: "
                "`pip install '.[models]'` in a clone of the repository"
            )
        if sentence is None:
            raise
        tell(f"ERROR: {hide_secrets(name_options(sentence, options))}")
        raise typer.Exit(code) from None


def name_options(sentence: str, options: Mapping[str, str]) -> str:
    """Name in a sentence what `options` give for keys of the configuration, and other words of its files."""
    for key, option in options.items():
        sentence = sentence.replace(f"`{key}`", option).replace(key, option)
    return sentence


def tell(line: str) -> None:
    """Print a line beside the results."""
    told.print(line, markup=False, highlight=False, soft_wrap=True)


def _configure_logging() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(RedactingFormatter("%(levelname)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    if threading.current_thread() is threading.main_thread():
        # As an exception, a request to end removes what is half-written on its way out.
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


def _require_outputs(outputs: list[Path], inputs: list[Path]) -> None:
    """Refuse, before anything is computed, files that cannot be written, or that would replace each other."""
    read = {os.path.realpath(path) for path in inputs if not is_stream(path)}
    written: set[int | str] = set()
    for path in outputs:
        descriptor = find_descriptor(path)
        place = os.path.realpath(path) if descriptor is None else descriptor
        if place in written:
            name = "the standard output" if descriptor == 1 else path
            raise InputError(f"two files are to be written to {name}; give each a place of its own")
        if place in read:
            raise InputError(f"{path} is to be read and to be written; write to another file")
        written.add(place)
        _require_writable(path, descriptor)


def _require_writable(path: Path, descriptor: int | None) -> None:
    if descriptor is not None:
        os.fstat(descriptor)
        return
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file")
    if is_stream(path):
        if path.is_socket():
            raise InputError(f"{path} is a socket, which no file can be written to; name a file")
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return
    folder = follow_links(path).absolute().parent
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder; make it, or correct the path")
    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        error.filename = str(path)
        raise


@contextmanager
def show_bar(name: str) -> Iterator[Callable[[str, int, int], None]]:
    """A bar for each kind of what is done; nothing where there is no terminal."""
    described = TextColumn("{task.description}", markup=False)
    columns = (described, BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=told, disable=not told.is_terminal, transient=True) as progress:
        bars: dict[str, Any] = {}

        def update(what: str, done: int, number: int) -> None:
            if what not in bars:
                bars[what] = progress.add_task(escape_controls(f"{name}: {what}"), total=number)
            progress.update(bars[what], completed=done)

        yield update
