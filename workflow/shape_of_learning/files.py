"""Atomic writes, digests, CSV tables with all digits, and YAML read without silent losses."""

import csv
import errno
import hashlib
import math
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from shape_of_learning.errors import InputError

MAX_NAME_BYTES = 255  # bytes, on Linux and macOS
MAX_LINKS = 40  # in a chain, the limit of Linux


@contextmanager
def atomic_write(final: Path) -> Iterator[Path]:
    """Yield a temporary path for a file or a folder, and rename it to `final` if the block succeeds.

    The folder of `final` is created. The renaming replaces an older `final`, or the target if `final` is a link. A
    device or a pipe gets the bytes. If the block raises, the temporary file is removed, and the error names `final`.
    """
    final = Path(final)
    if is_stream(final):
        with TemporaryDirectory() as folder, _name_final_file_in_errors(Path(folder), final):
            partial = Path(folder, final.name)
            yield partial
            _copy_to_stream(partial, final)
        return
    target = follow_links(final)
    partial = target.with_name(_name_partial_file(target.name))
    with _name_final_file_in_errors(partial, final):
        target.parent.mkdir(parents=True, exist_ok=True)
        remove(partial)
        try:
            yield partial
            if partial.is_dir():
                remove(target)  # a folder cannot be renamed onto one that is not empty
            partial.replace(target)
        except BaseException:
            remove(partial)
            raise


def follow_links(path: Path) -> Path:
    """Return the target of a link or of a chain of links; the path itself if it is not a link.

    Raises
    ------
    OSError
        If the links form a circle.
    """
    if not path.is_symlink():
        return path
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, "links lead in a circle", str(path))
    return target


def find_descriptor(path: Path) -> int | None:
    """Return the descriptor of the open file that a path such as ``/dev/stdout`` names; None for other paths."""
    for _ in range(MAX_LINKS):
        folder = os.path.realpath(path.parent)
        if path.name.isdecimal() and folder == os.path.realpath("/dev/fd"):
            return int(path.name)
        if not path.is_symlink():
            return None
        path = Path(folder, path.readlink())
    return None


def is_stream(path: Path) -> bool:
    """Return whether a path names an open file, a device or a pipe, rather than a regular file or a folder."""
    if find_descriptor(path) is not None:
        return True
    try:
        mode = path.stat().st_mode
    except OSError:  # there is no file yet
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _copy_to_stream(file: Path, stream: Path) -> None:
    """Write the bytes of a file to a stream without truncating it, so that `>>` appends."""
    descriptor = find_descriptor(stream)
    for text in filter(None, (sys.stdout, sys.stderr)):
        text.flush()  # earlier output comes first
    target = os.dup(descriptor) if descriptor is not None else os.open(stream, os.O_WRONLY)
    with file.open("rb") as source, os.fdopen(target, "wb") as sink:
        shutil.copyfileobj(source, sink)


def _name_partial_file(name: str) -> str:
    """Return the temporary name of a file, cut to a length that every file system allows."""
    suffix = f".{os.getpid()}.partial"
    stem = os.fsencode(name)[: MAX_NAME_BYTES - len(suffix) - 1].decode(errors="ignore")
    return f".{stem}{suffix}"


@contextmanager
def _name_final_file_in_errors(partial: Path, final: Path) -> Iterator[None]:
    """Replace the temporary name by the final one in errors of the operating system and of libraries."""
    try:
        yield
    except OSError as error:
        temporary = os.fspath(partial)
        names = error.filename, error.filename2  # a failed copy names its source first
        if any(isinstance(name, str) and name.startswith(temporary) for name in names):
            error.filename = os.fspath(final)
            error.filename2 = None
        elif error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT):
            error.filename = os.fspath(final)  # an error of a write to an open file has no name
        error.args = tuple(
            part.replace(temporary, os.fspath(final)) if isinstance(part, str) else part
            for part in error.args
        )
        raise


def remove(path: Path) -> None:
    """Remove a file or a folder with its content, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def link(target: Path, name: Path) -> None:
    """Make `name` a relative link to `target`, so that both can be moved together."""
    remove(name)
    name.parent.mkdir(parents=True, exist_ok=True)
    name.symlink_to(os.path.relpath(target.absolute(), name.parent.resolve()))


def compute_sha256(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def compute_git_blob(path: Path) -> str:
    r"""Return the name that git gives to a file's content: SHA-1 of ``blob SIZE\0`` and the content."""
    # Not used for security: a collision would have to be in the authors' repository.
    digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: digest).hexdigest()


POINTER = re.compile(rb"version https://(git-lfs|hawser)\.github\.com/spec/")
POINTER_BYTES = 1024  # the largest pointer of git-lfs


def expand_home(path: str | Path) -> Path:
    """Replace ``~`` at the beginning of a path by the user's home; keep the path if the user is unknown."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def refuse_odd_file(file: Path) -> None:
    """Raise InputError for a pipe, a device, a folder or a pointer of git-lfs instead of a file.

    Reading a pipe may never end. A clone without git-lfs has pointers instead of large files.

    Raises
    ------
    PermissionError
        If the file cannot be read; some libraries would report it as missing.
    """
    if not file.exists():
        return
    if not file.is_file():
        kind = "a folder" if file.is_dir() else "a pipe or a device"
        raise InputError(f"{file} is {kind} and not a file; replace it by a file")
    with file.open("rb") as stream:
        is_small = file.stat().st_size <= POINTER_BYTES
        if is_small and POINTER.match(stream.read(POINTER_BYTES)):
            raise InputError(
                f"{file} is a pointer of git-lfs and not the file itself; run `git lfs pull` in {file.parent}"
            )


def write_table(path: Path, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a CSV file; floats keep all digits, and None and NaN become empty cells."""
    with atomic_write(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(map(format_row, rows))


def format_row(row: Iterable[object]) -> list[str]:
    """Format the cells of a row as :func:`write_table` writes them."""
    cells = []
    for value in row:
        if value is None or (isinstance(value, float) and math.isnan(value)):
            cells.append("")
        else:
            # NumPy's floats have another repr.
            cells.append(repr(float(value)) if isinstance(value, float) else str(value))
    return cells


def parse_cell(cell: Any) -> float:
    """Return the number of a cell; NaN if the cell is empty."""
    if cell is None or cell == "":
        return math.nan
    try:
        return float(cell)
    except TypeError:  # the missing value of pandas
        return math.nan


def read_rows(path: Path, columns: tuple[str, ...]) -> list[list[str]]:
    """Read the cells of a table of :func:`write_table` as text; InputError if the columns differ."""
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = [*csv.reader(file)] or [[]]
    if tuple(header) != columns:
        raise InputError(
            f"{path} has the columns {header}, not {list(columns)}; delete it, so that it is made again"
        )
    return rows


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """A YAML loader that refuses repeated keys, and numbers such as 0100 and 1:30, which YAML would change."""

    def flatten_mapping(self, node: Any) -> None:
        if not hasattr(node, "was_checked"):  # an alias brings its node here again
            node.was_checked = True
            keys = set()
            for key, _ in node.value:
                if key.tag not in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"):
                    raise _refuse_node(
                        key, f"the key {key.value!r:.100} is not text; put it in quotes"
                    )
                if not isinstance(key.value, str) or key.value in keys:
                    raise _refuse_node(key, f"the key {key.value!r:.100} occurs twice; remove one")
                keys.add(key.value)
        super().flatten_mapping(node)

    def construct_number(self, node: Any) -> int | float:
        if re.match(r"[-+]?0\d|[^.]*:", node.value):
            kind = "a number that begins with 0" if ":" not in node.value else "a number in base 60"
            problem = f"YAML reads {node.value} as {kind}; write it in quotes or in decimals"
            raise _refuse_node(node, problem)
        if len(node.value) > MAX_NUMBER_LENGTH:
            line = node.start_mark.line + 1
            raise ValueError(f"line {line} has a number of {len(node.value)} digits")
        kind = node.tag.rpartition(":")[2]
        return getattr(self, f"construct_yaml_{kind}")(node)


for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _Loader.construct_number)


def _refuse_node(node: Any, problem: str) -> InputError:
    return InputError(f"line {node.start_mark.line + 1}: {problem}")


# Limits far above files that people write, but below those that exhaust memory or the stack.
MAX_LEVELS = 50
MAX_REPETITIONS = 10_000  # of values by aliases
MAX_NUMBER_LENGTH = 100  # characters


def _refuse_explosion(text: str) -> None:
    """Refuse very many levels or repetitions by aliases, before the parser builds a value."""
    sizes: dict[str, int] = {}  # number of values under an anchor
    # Anchors of the levels that are still open, and the number of values before them.
    levels: list[tuple[str | None, int]] = []
    values = repetitions = 0
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in levels):
                raise _refuse_node(
                    event, f"`*{event.anchor:.100}` is within its own value; write the value out"
                )
            size = sizes.get(event.anchor, 0)
            values += size
            repetitions += size
            if repetitions > MAX_REPETITIONS:
                raise _refuse_node(
                    event,
                    f"with `*{event.anchor:.100}` aliases repeat more than {MAX_REPETITIONS} values; write the "
                    "values out",
                )
        elif isinstance(event, yaml.CollectionStartEvent):
            levels.append((event.anchor, values))
            values += 1
            if len(levels) > MAX_LEVELS:
                line = event.start_mark.line + 1
                raise ValueError(f"line {line} is within more than {MAX_LEVELS} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, start = levels.pop()
            if anchor:
                sizes[anchor] = values - start
        elif isinstance(event, yaml.ScalarEvent):
            values += 1
            if event.anchor:
                sizes[event.anchor] = 1


def read_yaml(file: Path) -> Any:
    """Read a YAML file; InputError if it cannot be read, or if YAML would change or lose a value."""
    try:
        text = file.read_text(encoding="utf-8-sig")
        _refuse_explosion(text)
        return yaml.load(text, _Loader)
    except InputError as error:
        raise InputError(f"{file}, {error}") from None
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror}); correct it") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:300]
        raise InputError(f"{file} is not valid YAML in UTF-8: {reason}; correct it") from error
