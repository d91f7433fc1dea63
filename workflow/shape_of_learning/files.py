"""Files are whole or absent, tables keep all digits, and nothing in a YAML file is silently lost."""

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

LONGEST_NAME = 255  # bytes, of Linux and macOS
MOST_LINKS = 40  # to links, as Linux has it


@contextmanager
def atomic_write(final: Path) -> Iterator[Path]:
    """Yield a path to write a file or a folder to, and give it the name `final` if the block succeeds.

    The folder of `final` is made, and an older `final` is replaced at once; where it is a link, what the link
    leads to. A device, a pipe or another thing that is no regular file stays what it is, and gets the bytes. If
    the block raises, what it wrote is removed; no error names a temporary file.
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
                remove(target)  # no folder can be renamed onto one that holds anything
            partial.replace(target)
        except BaseException:
            remove(partial)
            raise


def follow_links(path: Path) -> Path:
    """Return where a file is that a link, or a link to a link, leads to; the path itself if it is no link.

    Raises
    ------
    OSError
        If links lead in a circle.
    """
    if not path.is_symlink():
        return path
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, "links lead in a circle", str(path))
    return target


def find_descriptor(path: Path) -> int | None:
    """Return the number of the open file that a path such as ``/dev/stdout`` stands for; None for other paths."""
    for _ in range(MOST_LINKS):
        folder = os.path.realpath(path.parent)
        if path.name.isdecimal() and folder == os.path.realpath("/dev/fd"):
            return int(path.name)
        if not path.is_symlink():
            return None
        path = Path(folder, path.readlink())
    return None


def is_stream(path: Path) -> bool:
    """Return whether a path is no name of a regular file or a folder, but an open file, a device or a pipe."""
    if find_descriptor(path) is not None:
        return True
    try:
        mode = path.stat().st_mode
    except OSError:  # nothing is there yet
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _copy_to_stream(file: Path, stream: Path) -> None:
    """Write the bytes of a file to what :func:`is_stream`; it is not truncated, so `>>` appends."""
    descriptor = find_descriptor(stream)
    for text in filter(None, (sys.stdout, sys.stderr)):
        text.flush()  # what was printed before stands before
    opened = os.dup(descriptor) if descriptor is not None else os.open(stream, os.O_WRONLY)
    with file.open("rb") as source, os.fdopen(opened, "wb") as sink:
        shutil.copyfileobj(source, sink)


def _name_partial_file(name: str) -> str:
    """Return the name of a file while it is written, which no file system finds too long."""
    suffix = f".{os.getpid()}.partial"
    kept = name.encode()[: LONGEST_NAME - len(suffix) - 1].decode(errors="ignore")
    return f".{kept}{suffix}"


@contextmanager
def _name_final_file_in_errors(partial: Path, final: Path) -> Iterator[None]:
    """Name the final file in errors of the operating system and of libraries, not the temporary one."""
    try:
        yield
    except OSError as error:
        temporary = os.fspath(partial)
        names = error.filename, error.filename2  # a copy names what it read first
        if any(isinstance(name, str) and name.startswith(temporary) for name in names):
            error.filename = os.fspath(final)
            error.filename2 = None
        elif error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT):
            error.filename = os.fspath(final)  # of a file that was open already
        error.args = tuple(
            each.replace(temporary, os.fspath(final)) if isinstance(each, str) else each
            for each in error.args
        )
        raise


def remove(path: Path) -> None:
    """Remove a file or a folder with all it holds, if there is one."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def link(target: Path, name: Path) -> None:
    """Make `name` a link to `target`; it is relative, so that both may move together."""
    remove(name)
    name.parent.mkdir(parents=True, exist_ok=True)
    name.symlink_to(os.path.relpath(target.absolute(), name.parent.resolve()))


def compute_sha256(path: Path) -> str:
    """Hexadecimal SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def compute_git_blob(path: Path) -> str:
    r"""Name that git gives to a file's content: SHA-1 of ``blob SIZE\0`` and the content."""
    # Not a matter of security: a collision would have to be in the authors' repository.
    digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: digest).hexdigest()


POINTER = re.compile(rb"version https://(git-lfs|hawser)\.github\.com/spec/")
POINTER_BYTES = 1024  # git-lfs makes no larger ones


def expand_home(path: str | Path) -> Path:
    """Put the home of the user that a path begins with in the place of ``~``; of a user that is not known, keep it."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def refuse_odd_file(file: Path) -> None:
    """Raise InputError where a pipe, a device, a folder or a pointer of git-lfs is in the place of a file.

    Whoever reads a pipe may wait without end. A clone without git-lfs has pointers in the place of large files.

    Raises
    ------
    PermissionError
        If the file must not be read, of which some libraries say that it is missing.
    """
    if not file.exists():
        return
    if not file.is_file():
        kind = "a folder" if file.is_dir() else "a pipe or a device"
        raise InputError(f"{file} is {kind} and not a file; put the file itself there")
    with file.open("rb") as stream:
        is_small = file.stat().st_size <= POINTER_BYTES
        if is_small and POINTER.match(stream.read(POINTER_BYTES)):
            raise InputError(
                f"{file} is a pointer of git-lfs and not the file itself; run `git lfs pull` in {file.parent}"
            )


def write_table(path: Path, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a CSV file; floats keep all their digits, None and NaN become empty cells."""
    with atomic_write(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_write_cell(value) for value in row] for row in rows)


def _write_cell(value: object) -> object:
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(float(value))
    return "" if value is None else value


def read_rows(path: Path, columns: tuple[str, ...]) -> list[list[str]]:
    """Read a table that :func:`write_table` wrote, as text; InputError if it has other columns."""
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    if tuple(header) != columns:
        raise InputError(f"{path} has the columns {header}, not {list(columns)}; delete it")
    return rows


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML that refuses what it would change: keys that occur twice, and numbers like 0100 and 1:30."""

    def flatten_mapping(self, node: Any) -> None:
        if not hasattr(node, "was_checked"):  # it comes back for each alias
            node.was_checked = True
            seen = set()
            for key, _ in node.value:
                if key.tag not in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"):
                    raise _refuse_node(
                        key, f"the key {key.value!r:.100} is not text; put it in quotes"
                    )
                if not isinstance(key.value, str) or key.value in seen:
                    raise _refuse_node(key, f"the key {key.value!r:.100} occurs twice; remove one")
                seen.add(key.value)
        super().flatten_mapping(node)

    def construct_number(self, node: Any) -> int | float:
        if re.match(r"[-+]?0\d|[^.]*:", node.value):
            what = "a number that begins with 0" if ":" not in node.value else "a number in base 60"
            said = f"YAML reads {node.value} as {what}; write it in quotes or in decimals"
            raise _refuse_node(node, said)
        if len(node.value) > LONGEST_NUMBER:
            line = node.start_mark.line + 1
            raise ValueError(f"line {line} has a number of {len(node.value)} digits")
        kind = node.tag.rpartition(":")[2]
        return getattr(self, f"construct_yaml_{kind}")(node)


for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _Loader.construct_number)


def _refuse_node(node: Any, problem: str) -> InputError:
    return InputError(f"line {node.start_mark.line + 1}: {problem}")


# What people write has a few levels, repeats little and counts nothing to a googol.
DEEPEST_LEVEL, MOST_REPEATED, LONGEST_NUMBER = 50, 10_000, 100


def _refuse_explosion(text: str) -> None:
    """Refuse, before anything is built, levels on which a parser overflows and aliases that multiply."""
    sizes: dict[str, int] = {}  # of what has an anchor, in values
    levels: list[
        tuple[str | None, int]
    ] = []  # anchors of what is not closed yet, and values so far
    values = repeated = 0
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in levels):
                raise _refuse_node(event, f"`*{event.anchor:.100}` repeats itself; write it out")
            size = sizes.get(event.anchor, 0)
            values, repeated = values + size, repeated + size
            if repeated > MOST_REPEATED:
                raise _refuse_node(
                    event,
                    f"with `*{event.anchor:.100}` aliases repeat more than {MOST_REPEATED} values; write out "
                    "what is meant",
                )
        elif isinstance(event, yaml.CollectionStartEvent):
            levels.append((event.anchor, values))
            values += 1
            if len(levels) > DEEPEST_LEVEL:
                line = event.start_mark.line + 1
                raise ValueError(f"line {line} is within more than {DEEPEST_LEVEL} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = levels.pop()
            sizes |= {anchor: values - before} if anchor else {}
        elif isinstance(event, yaml.ScalarEvent):
            values += 1
            sizes |= {event.anchor: 1} if event.anchor else {}


def read_yaml(file: Path) -> Any:
    """Read a YAML file; InputError if it cannot be read or says something that YAML would change or lose."""
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
