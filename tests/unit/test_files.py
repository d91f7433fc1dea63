"""Files are whole or absent, tables keep all digits, and YAML loses nothing."""

import math
import os
import re
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from shape_of_learning.errors import InputError
from shape_of_learning.files import atomic_write, read_rows, read_yaml, refuse_odd_file, write_table

NOBODY = 65534


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_an_atomic_write_appears_whole_and_a_failure_keeps_the_old_content(tmp_path, kind):
    final = tmp_path / "deep" / "result"
    for content in ("old", "new", "lost"):
        with suppress(RuntimeError), atomic_write(final) as partial:
            if kind == "folder":
                partial.mkdir()
            (partial / content if kind == "folder" else partial).write_text(content)
            assert final.exists() == (content != "old")
            if content == "lost":
                raise RuntimeError("the power fails")
    files = [*final.iterdir()] if kind == "folder" else [final]
    assert [file.read_text() for file in files] == ["new"]
    assert list(final.parent.iterdir()) == [final]


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_link_stays_and_its_target_is_replaced(tmp_path, kind):
    (tmp_path / "scratch").mkdir()
    target, link, second = tmp_path / "scratch/target", tmp_path / "link", tmp_path / "second"
    link.symlink_to("scratch/target")
    second.symlink_to(link)
    for content in ("first", "second"):  # the target is missing at first
        with atomic_write(second) as partial:
            if kind == "folder":
                partial.mkdir()
            (partial / "a" if kind == "folder" else partial).write_text(content)
        assert link.is_symlink()
        assert second.is_symlink()
        assert (target / "a" if kind == "folder" else target).read_text() == content
    assert list((tmp_path / "scratch").iterdir()) == [target]


def test_links_in_a_circle_are_refused_by_name(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match=r"circle.*/a"), atomic_write(tmp_path / "a"):
        pass


def test_a_pipe_and_a_terminal_get_the_bytes_and_stay(tmp_path):
    pipe = tmp_path / "pipe"
    texts = []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: texts.append(pipe.read_text()), daemon=True)
    reader.start()
    write_table(pipe, ("a",), [[1]])
    reader.join(10)
    assert texts == ["a\n1\n"]
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]
    master, terminal = os.openpty()
    device = Path(os.ttyname(terminal))
    write_table(device, ("b",), [[2]])
    assert os.read(master, 100).split() == [b"b", b"2"]
    assert device.is_char_device()


def test_a_table_is_written_at_the_position_of_the_standard_output(tmp_path):
    program = (
        "import sys; from pathlib import Path; from shape_of_learning.files import write_table\n"
        "print('before'); write_table(Path(sys.argv[1]), ('a',), [[1]]); print('after')"
    )
    workflow = Path(__file__).parents[2] / "workflow"
    log = tmp_path / "log"
    log.write_text("old\n")
    for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
        if not Path("/proc/self").exists() and name.startswith("/proc"):
            continue
        with log.open("a") as file:
            subprocess.run(
                [sys.executable, "-c", program, name],
                env={"PYTHONPATH": str(workflow)},
                stdout=file,
                check=True,
            )
        assert log.read_text() == "old\nbefore\na\n1\nafter\n"
        log.write_text("old\n")


def test_an_error_names_the_requested_file(tmp_path):
    with (
        pytest.raises(OSError, match="result") as failure,
        atomic_write(tmp_path / "result") as part,
    ):
        part.open()  # it does not exist
    assert failure.value.filename == str(tmp_path / "result")
    with (
        pytest.raises(OSError, match=r"at .*result") as failure,
        atomic_write(tmp_path / "result") as part,
    ):
        raise OSError(f"cannot write at {part}")
    assert "partial" not in str(failure.value)
    if Path("/dev/full").is_char_device():
        with pytest.raises(OSError, match="No space left") as failure:
            write_table(Path("/dev/full"), ("a",), [[1]])
        assert failure.value.filename == "/dev/full"
    name = "x" * 251 + ".csv"
    write_table(tmp_path / name, ("a",), [[1]])
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_an_unreadable_file_is_not_reported_as_missing():
    is_root = os.geteuid() == 0
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        (file := Path(folder, "model.safetensors")).touch(mode=0)
        try:
            if is_root:  # root may read all files
                os.seteuid(NOBODY)
            with pytest.raises(PermissionError, match=r"model\.safetensors"):
                refuse_odd_file(file)
        finally:
            if is_root:
                os.seteuid(0)


def test_a_table_keeps_all_digits_and_empty_cells(tmp_path):
    file, columns = tmp_path / "table.csv", ("a", "b", "c")
    write_table(file, columns, [[1 / 3, None, "x, y"], [math.nan, 5e-324, 10**20]])
    assert file.read_text().splitlines()[1] == '0.3333333333333333,,"x, y"'
    assert read_rows(file, columns) == [
        ["0.3333333333333333", "", "x, y"],
        ["", "5e-324", "1" + "0" * 20],
    ]
    with pytest.raises(InputError, match="delete it"):
        read_rows(file, ("a", "b"))
    file.write_text("")
    with pytest.raises(InputError, match="delete it"):
        read_rows(file, columns)


MERGED = """
base: &base {k: 1, l: 1}
deep:
  deeper: &deeper {<<: *base, k: 2}
use: {<<: *deeper, l: 3}
again: {<<: [*base, *deeper], m: 4}
"""


def read(folder: Path, content: str | bytes) -> object:
    file = folder / "x.yaml"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_yaml(file)


def test_yaml_mappings_override_merged_keys_and_a_byte_order_mark_is_ignored(tmp_path):
    content = read(tmp_path, b"\xef\xbb\xbf" + MERGED.strip().encode())
    assert content["base"] == {"k": 1, "l": 1}
    assert content["deep"]["deeper"] == {"k": 2, "l": 1}
    assert content["use"] == {"k": 2, "l": 3}
    assert content["again"] == {"k": 1, "l": 1, "m": 4}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("seed: 1\nseed: 2", "x.yaml, line 2: the key 'seed' occurs twice; remove one"),
        (MERGED.replace("k: 2}", "k: 2, k: 2}"), "line 4: the key 'k' occurs twice"),
        ("3: x", "the key '3' is not text; put it in quotes"),
        ("on: x", "is not text"),
        ("layers: 0100", "0100 as a number that begins with 0"),
        ("ratio: 1:30", "1:30 as a number in base 60"),
        ("a:\n\tb: 8\n", "is not valid YAML in UTF-8"),
        (b"mine: '\xff'", "is not valid YAML in UTF-8"),
        ("a: !!python/tuple [1]", "is not valid YAML"),
        ("a: " + "[" * 3000, "is not valid YAML"),
        ("a: " + "9" * 5000, "is not valid YAML"),
    ],
)
def test_yaml_that_would_change_or_lose_values_is_refused(tmp_path, content, sentence):
    with pytest.raises(InputError) as refusal:
        read(tmp_path, content)
    assert sentence in str(refusal.value)
    assert str(refusal.value).isprintable()
    with pytest.raises(InputError, match="cannot be read"):
        read_yaml(tmp_path / "nothing.yaml")


def multiply(first: str, template: str, times: int = 9) -> str:
    """Return nine levels of YAML, each with several aliases of the level before."""
    lines = [f"a0: &a0 {first}"]
    for level in range(1, 9):
        parts = (template.format(n=n, alias=f"*a{level - 1}") for n in range(times))
        opening, closing = first[0], first[-1]
        lines.append(f"a{level}: &a{level} {opening}{', '.join(parts)}{closing}")
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (multiply("[x, y]", "{alias}"), "line 5: with `*a3` aliases repeat more than 10000 values"),
        (multiply("{x: 1}", "k{n}: {alias}"), "aliases repeat more than 10000 values"),
        ("a: &a [b, *a]", "line 1: `*a`"),
        ("a: " + 100_000 * "[" + 100_000 * "]", "line 1 is within more than 50 levels"),
        (
            "\n".join(f"{level * ' '}a:" for level in range(3000)),
            "line 51 is within more than 50 levels",
        ),
        (f"a: {5000 * '9'}", "line 1 has a number of 5000 digits"),
        (f"a: 0x{5000 * 'f'}", "line 1 has a number of 5002 digits"),
    ],
)
def test_yaml_that_would_overload_the_parser_is_refused_at_once(tmp_path, text, sentence):
    began = time.monotonic()
    with pytest.raises(InputError, match=re.escape(sentence)):
        read(tmp_path, text)
    assert time.monotonic() - began < 10


def test_aliases_with_few_repetitions_are_read(tmp_path):
    assert read(tmp_path, multiply("[x, y]", "{alias}", times=2))["a2"] == [[["x", "y"]] * 2] * 2
