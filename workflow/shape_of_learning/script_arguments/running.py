"""What every script under ``workflow/scripts`` does around its `main`."""

import argparse
import logging
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from shape_of_learning.errors import InputError, without_secrets
from shape_of_learning.script_arguments.job_record import now, write_job_record
from shape_of_learning.storage.files import disk_is_full_or_read_only

logger = logging.getLogger("shape_of_learning")


def named_path(argument: str) -> tuple[str, Path]:
    """Read ``NAME=PATH`` of a command line."""
    name, _, path = argument.partition("=")
    return name, Path(path)


def run(
    main: Callable[..., None], parser: argparse.ArgumentParser, *, console: int = logging.WARNING
) -> None:
    """Parse the command line, call ``main(**arguments)`` and turn errors into an exit status.

    Parameters
    ----------
    main : callable
        Takes the parsed arguments by name, without ``log``.
    parser : argparse.ArgumentParser
        The script's own arguments; ``--log`` is added here.
    console : int
        Lowest level that is shown on standard error. The log file holds everything; where there is
        nothing, there is no file.

    Notes
    -----
    Beside the log of a job that ends well lies a record of what computed it.

    An :class:`InputError` becomes one sentence and exit status 1. So does an `OSError`, since a full
    disk or a read-only folder is no defect of the program; its traceback is only logged. Anything
    else is a defect: its traceback is shown and logged.
    """
    parser.add_argument("--log", type=Path, help="file that receives the log")
    arguments, started = vars(parser.parse_args()), now()
    log = arguments.pop("log")
    # As an exception, a request to end removes what is half-written on its way out.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        _configure_logging(log, console)
        main(**arguments)
        if log is not None:
            write_job_record(log, started)
    except InputError as error:
        logger.error("%s", error)
        sys.exit(1)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        reason = f"{where}{error.strerror or ' '.join(str(error).split())}"
        logger.error("%s", disk_is_full_or_read_only(error, error.filename or "a file") or reason)
        logger.debug("where it happened", exc_info=True)
        sys.exit(1)
    except MemoryError:
        logger.error(
            "memory is exhausted; give the job more, or lower what it is asked to do at a time"
        )
        logger.debug("where it happened", exc_info=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except Exception:
        logger.exception("unexpected error")
        sys.exit(1)


class _DiscreetFormatter(logging.Formatter):
    """Formats messages and tracebacks without passwords."""

    def format(self, record: logging.LogRecord) -> str:
        return without_secrets(super().format(record))


def _configure_logging(log: Path | None, console: int) -> None:
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logging.raiseExceptions = False  # a log that a full disk cuts short is no reason to print pages
    shown = logging.StreamHandler(sys.stderr)
    shown.setLevel(console)
    shown.setFormatter(_DiscreetFormatter("%(levelname)s: %(message)s"))
    logger.addHandler(shown)
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.unlink(missing_ok=True)
        # Made when there is something to log: thousands of jobs have nothing to say.
        kept = logging.FileHandler(log, mode="w", encoding="utf-8", delay=True)
        kept.setFormatter(_DiscreetFormatter("%(asctime)s %(levelname)s %(message)s"))
        logger.addHandler(kept)
