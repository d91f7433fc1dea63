"""What every script does around its `main`: a log, and errors as one sentence."""

import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shape_of_learning.errors import (
    InputError,
    escape_controls,
    explain_failure,
    hide_secrets,
    shorten_error,
)

logger = logging.getLogger("shape_of_learning")


@contextmanager
def run_job(log: str, *, console: int = logging.WARNING) -> Iterator[None]:
    """Run the work of a script: its log goes to the file `log`, and from level `console` on to the terminal.

    An :class:`InputError`, a full or read-only disk and exhausted memory, whatever library notices them, end the
    process with one sentence and exit status 1. Anything else is a defect and keeps its traceback.
    """
    # As an exception, a request to end removes what is half-written on its way out.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        _configure_logging(Path(log), console)
        hide_bars()
        yield
    except InputError as error:
        _fail(str(error))
    except Exception as error:
        if sentence := explain_failure(error):
            _fail(sentence)
        if not isinstance(error, OSError):
            raise
        logger.debug("where it happened", exc_info=True)
        _fail(shorten_error(error))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def read_parameters(snakemake: Any) -> dict[str, Any]:
    """What a rule tells the `main` of its script; digests of code and of weights are for Snakemake alone."""
    return {k: v for k, v in snakemake.params.items() if k not in ("code", "weights")}


def hide_bars() -> None:
    """Keep the bars of libraries, such as those of loading weights, out of what is no terminal."""
    if not (sys.stderr and sys.stderr.isatty()):
        os.environ.setdefault("TQDM_DISABLE", "1")  # which libraries read when they are imported
        if transformers := sys.modules.get("transformers"):
            transformers.utils.logging.disable_progress_bar()


def _fail(sentence: str) -> None:
    logger.error("%s", sentence)
    sys.exit(1)


class RedactingFormatter(logging.Formatter):
    """Formats messages and tracebacks without passwords, and so that no terminal obeys them."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record."""
        return escape_controls(hide_secrets(super().format(record)))


class _LogFile(logging.FileHandler):
    """A log that may find no room; what matters is on the terminal, too."""

    def handleError(self, record: logging.LogRecord) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)


def _configure_logging(log: Path, console: int) -> None:
    shown = logging.StreamHandler()
    shown.setLevel(console)
    shown.setFormatter(RedactingFormatter("%(levelname)s: %(message)s"))
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logger.handlers = [shown]
    log.parent.mkdir(parents=True, exist_ok=True)
    kept = _LogFile(log, mode="w", encoding="utf-8")
    kept.setFormatter(RedactingFormatter("%(asctime)s %(levelname)s %(message)s"))
    logger.addHandler(kept)
