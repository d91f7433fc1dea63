"""The frame of every script, which writes a log file and shows errors as one sentence."""

import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shape_of_learning.errors import (
    InputError,
    escape_controls,
    explain_failure,
    hide_secrets,
    shorten_error,
)

logger = logging.getLogger("shape_of_learning")

RESERVE = 2**20  # bytes, freed when memory is exhausted, so that a sentence can be written


@contextmanager
def run_job(log: str, *, console: int = logging.WARNING) -> Iterator[None]:
    """Run a script with its log in the file `log`; the terminal shows messages from level `console` upwards.

    An :class:`InputError`, an :class:`OSError` and exhausted memory end the process with one sentence and exit
    status 1, whichever library raises the error. Any other error is a defect and keeps its traceback.
    """
    # `sys.exit` raises an exception, during which `atomic_write` removes partial files.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    reserve = bytearray(RESERVE)
    try:
        _configure_logging(Path(log), console)
        hide_bars()
        yield
    except InputError as error:
        _fail(str(error))
    except Exception as error:
        reserve.clear()
        if sentence := explain_failure(error):
            _fail(sentence)
        if not isinstance(error, OSError):
            raise
        logger.debug("traceback", exc_info=True)
        _fail(shorten_error(error))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def hide_bars() -> None:
    """Hide the progress bars of libraries unless the standard error is a terminal."""
    if not (sys.stderr and sys.stderr.isatty()):
        os.environ.setdefault("TQDM_DISABLE", "1")  # for libraries that are imported later
        if transformers := sys.modules.get("transformers"):
            transformers.utils.logging.disable_progress_bar()


def _fail(sentence: str) -> None:
    logging.raiseExceptions = False  # if a handler fails for lack of memory, the others still write
    logger.error("%s", sentence)
    sys.exit(1)


class RedactingFormatter(logging.Formatter):
    """A formatter that hides passwords and escapes control characters in messages and tracebacks."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record."""
        return escape_controls(hide_secrets(super().format(record)))


class _LogFile(logging.FileHandler):
    """A log file that ignores a full disk, since the terminal also shows the important messages."""

    def handleError(self, record: logging.LogRecord) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)


def _configure_logging(log: Path, console: int) -> None:
    terminal = logging.StreamHandler()
    terminal.setLevel(console)
    terminal.setFormatter(RedactingFormatter("%(levelname)s: %(message)s"))
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logger.handlers = [terminal]
    log.parent.mkdir(parents=True, exist_ok=True)
    file = _LogFile(log, mode="w", encoding="utf-8")
    file.setFormatter(RedactingFormatter("%(asctime)s %(levelname)s %(message)s"))
    logger.addHandler(file)
