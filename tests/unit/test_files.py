"""Files are whole or absent, tables keep all digits, and YAML loses nothing."""

import math
from contextlib import suppress
from pathlib import Path

import pytest

from shape_of_learning.errors import InputError
from shape_of_learning.files import atomic_write, read_rows, read_yaml, write_table


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_appears_is_whole_and_a_failure_keeps_what_was_there(tmp_path, kind):
    final = tmp_path / "deep" / "result"
    for content in ("old", "new", "lost"):
        with suppress(RuntimeError), atomic_write(final) as partial:
            if kind == "folder":
                partial.mkdir()
            (partial / content if kind == "folder" else partial).write_text(content)
            assert final.exists() == (content != "old")
            if content == "lost":
                raise RuntimeError("the power fails")
    left = [*final.iterdir()] if kind == "folder" else [final]
    assert [file.read_text() for file in left] == ["new"]
    assert list(final.parent.iterdir()) == [final]


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


def test_mappings_may_change_what_they_merge_and_a_mark_is_part_of_no_key(tmp_path):
    found = read(tmp_path, b"\xef\xbb\xbf" + MERGED.strip().encode())
    assert found["base"] == {"k": 1, "l": 1}
    assert found["deep"]["deeper"] == {"k": 2, "l": 1}
    assert found["use"] == {"k": 2, "l": 3}
    assert found["again"] == {"k": 1, "l": 1, "m": 4}


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
def test_what_yaml_would_change_or_lose_is_refused(tmp_path, content, sentence):
    with pytest.raises(InputError) as refused:
        read(tmp_path, content)
    assert sentence in str(refused.value)
    assert str(refused.value).isprintable()
    with pytest.raises(InputError, match="cannot be read"):
        read_yaml(tmp_path / "nothing.yaml")
