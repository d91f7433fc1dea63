"""Print results on the standard output, and messages, progress and errors on the standard error."""

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

WIDE = 10_000  # characters of a line if the output is not a terminal
STANDARD_INPUT, STANDARD_OUTPUT = Path("/dev/fd/0"), Path("/dev/fd/1")
# Advice in errors that needs a configuration -> the replacement in errors of commands.
CONFIGURATION_WORDS = {
    " (with `measurement.token_types: one` only one vector of each token type is measured, with "
    "`measurement.sequence` one of each window)": "",
    ", or set `embeddings.dump: true`": "",
    ", set `precision: bfloat16` in the model's entry or lower": ", or lower",
    "set `precision: bfloat16` in the model's entry, take": "take",
    ", or remove it from key `models`": "",
    ", or of a task leave out texts that are longer": "",
    ", or for a `repository` name the one that has it under `tokenizer` in the entry": "",
    "but its entry says": "but its config.json says",
}


class PlainConsole(Console):
    """A console that escapes control characters, such as those in the name of a revision."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Render a string with its control characters escaped."""
        return super().render_str(escape_controls(text), **options)

    def on_broken_pipe(self) -> None:
        """Exit without a message when the reader of a pipe has closed it."""
        _silence_standard_output()
        raise SystemExit(128 + signal.SIGPIPE)


def _silence_standard_output() -> None:
    """Discard further output, including that of Python at exit, since the reader of the pipe is gone."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# `sys.stdout` is None if a shell has closed the standard output.
stdout = PlainConsole(width=None if sys.stdout and sys.stdout.isatty() else WIDE, markup=False)
stderr = PlainConsole(stderr=True, markup=False)


def parse_output(name: str) -> Path:
    """Parse the path of an output file; ``-`` is the standard output."""
    if name == "-":
        return STANDARD_OUTPUT
    if not name or name.endswith(("/", os.sep)):
        raise typer.BadParameter(f"`{name}` is not the name of a file; give one")
    return expand_home(name)


def parse_input(name: str) -> Path:
    """Parse the path of an input file; ``-`` is the standard input."""
    return STANDARD_INPUT if name == "-" else expand_home(name)


def make_results_console(*outputs: Path | None) -> Console:
    """Return the console for tables: the standard error if an output file goes to the standard output."""
    return stderr if any(path and find_descriptor(path) == 1 for path in outputs) else stdout


@contextmanager
def exit_on_input_error(
    *outputs: Path | None,
    inputs: tuple[Path | None, ...] = (),
    options: Mapping[str, str] = MappingProxyType({}),
    code: int = 1,
) -> Iterator[None]:
    """Check that the output files can be written; exit with a message and `code` if the user has made an error.

    The command's `options` replace keys of the configuration in the message.
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
    except BrokenPipeError:  # the reader has closed the pipe, as `head` does
        _silence_standard_output()
        raise typer.Exit(128 + signal.SIGPIPE) from None
    except Exception as error:
        sentence = explain_failure(error)
        if isinstance(error, InputError) or (sentence is None and isinstance(error, OSError)):
            sentence = str(error) if isinstance(error, InputError) else shorten_error(error)
        if isinstance(error, ModuleNotFoundError):
            sentence = (
                f"the package `{error.name}` is missing; install the packages of the command: "
                "`pip install '.[models]'` in a clone of the repository"
            )
        if sentence is None:
            raise
        print_message(f"ERROR: {hide_secrets(name_options(sentence, options))}")
        raise typer.Exit(code) from None


def name_options(sentence: str, options: Mapping[str, str]) -> str:
    """Replace keys of the configuration in a sentence by the command's options."""
    for key, option in options.items():
        sentence = sentence.replace(f"`{key}`", option).replace(key, option)
    return sentence


def print_message(line: str) -> None:
    """Print a line on the standard error."""
    stderr.print(line, markup=False, highlight=False, soft_wrap=True)


def _configure_logging() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(RedactingFormatter("%(levelname)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    if threading.current_thread() is threading.main_thread():
        # The exception SystemExit lets `atomic_write` remove partial files.
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


def _require_outputs(outputs: list[Path], inputs: list[Path]) -> None:
    """Raise an error before the computation if outputs cannot be written or would replace each other or an input."""
    sources = {os.path.realpath(path) for path in inputs if not is_stream(path)}
    targets: set[int | str] = set()
    for path in outputs:
        descriptor = find_descriptor(path)
        target = os.path.realpath(path) if descriptor is None else descriptor
        if target in targets:
            name = "the standard output" if descriptor == 1 else path
            raise InputError(f"two outputs go to {name}; give each a file of its own")
        if target in sources:
            raise InputError(f"{path} is both an input and an output; write to another file")
        targets.add(target)
        _require_writable(path, descriptor)


def _require_writable(path: Path, descriptor: int | None) -> None:
    if descriptor is not None:
        os.fstat(descriptor)
        return
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file")
    if is_stream(path):
        if path.is_socket():
            raise InputError(f"{path} is a socket and cannot be written; name a file")
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return
    folder = follow_links(path).absolute().parent
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; create it, or correct the path")
    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        error.filename = str(path)
        raise


@contextmanager
def show_bar(name: str) -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar for each unit, such as windows and layers; show no bar without a terminal."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeRemainingColumn())
    is_hidden = not stderr.is_terminal
    with Progress(*columns, console=stderr, disable=is_hidden, transient=True) as progress:
        bars: dict[str, Any] = {}

        def update(unit: str, count: int, total: int) -> None:
            if unit not in bars:
                bars[unit] = progress.add_task(escape_controls(f"{name}: {unit}"), total=total)
            progress.update(bars[unit], completed=count)

        yield update
