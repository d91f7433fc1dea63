"""Files are whole or absent, tables keep all digits, and YAML loses nothing."""

import math
from pathlib import Path

import pytest

from shape_of_learning.errors import InputError
from shape_of_learning.files import atomic_write, read_rows, read_yaml, write_table


def test_a_file_appears_only_when_it_is_whole(tmp_path):
    final = tmp_path / "deep" / "result.csv"
    with atomic_write(final) as partial:
        partial.write_text("all of it")
        assert not final.exists()
    assert final.read_text() == "all of it"
    assert list(final.parent.iterdir()) == [final]


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_failure_leaves_nothing_new_and_keeps_what_was_there(tmp_path, kind):
    final = tmp_path / "result"
    for content in ("old", "new"):
        try:
            with atomic_write(final) as partial:
                target = partial if kind == "file" else partial / "inside"
                target.parent.mkdir(exist_ok=True)
                target.write_text(content)
                if content == "new":
                    raise RuntimeError("the power fails")
        except RuntimeError:
            pass
    kept = final if kind == "file" else final / "inside"
    assert kept.read_text() == "old"
    assert list(tmp_path.iterdir()) == [final]


def test_a_folder_replaces_an_older_one_entirely(tmp_path):
    final = tmp_path / "folder"
    for name in ("old", "new"):
        with atomic_write(final) as partial:
            partial.mkdir()
            (partial / name).touch()
    assert [path.name for path in final.iterdir()] == ["new"]


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


def test_merged_mappings_may_change_what_they_merge(tmp_path):
    found = read(tmp_path, MERGED)
    assert found["deep"]["deeper"] == {"k": 2, "l": 1}
    assert found["use"] == {"k": 2, "l": 3}
    assert found["again"] == {"k": 1, "l": 1, "m": 4}


def test_a_mark_at_the_beginning_is_none_of_the_first_key(tmp_path):
    assert read(tmp_path, b"\xef\xbb\xbfa: 1\n") == {"a": 1}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("seed: 1\nseed: 2", "x.yaml, line 2: the key 'seed' occurs twice; remove one"),
        (MERGED.replace("k: 2}", "k: 2, k: 2}"), "line 4: the key 'k' occurs twice"),
        ('{"seed": 1, "seed": 2}', "the key 'seed' occurs twice"),
        ("3: x", "the key '3' is not text; put it in quotes"),
        ("on: x", "is not text"),
        ("2024-01-01: x", "is not text"),
        ("layers: 0100", "0100 as a number that begins with 0"),
        ("ratio: 1:30", "1:30 as a number in base 60"),
        ("a:\n\tb: 8\n", "is not valid YAML in UTF-8"),
        (b"\x00\x01\x02", "is not valid YAML in UTF-8"),
        (b"mine: '\xff'", "is not valid YAML in UTF-8"),
        ("a: !!python/tuple [1]", "is not valid YAML"),
        ("a: *other", "is not valid YAML"),
        ("a: " + "[" * 3000, "is not valid YAML"),
        ("a: " + "9" * 5000, "is not valid YAML"),
    ],
)
def test_what_yaml_would_change_or_lose_is_refused(tmp_path, content, sentence):
    with pytest.raises(InputError) as refused:
        read(tmp_path, content)
    assert sentence in str(refused.value)
    assert str(refused.value).isprintable()


def test_a_file_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_yaml(tmp_path / "nothing.yaml")
