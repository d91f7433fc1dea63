"""YAML keeps what it always could: anchors, merged mappings, a mark at the beginning."""

import pytest

from shape_of_learning.errors import InputError
from shape_of_learning.storage.yaml_file import read_yaml

MERGED = """
base: &base {k: 1, l: 1}
deep:
  deeper: &deeper {<<: *base, k: 2}
use: {<<: *deeper, l: 3}
again: {<<: [*base, *deeper], m: 4}
"""


@pytest.fixture
def file(tmp_path):
    return tmp_path / "x.yaml"


def test_merged_mappings_may_change_what_they_merge(file):
    file.write_text(MERGED)
    read = read_yaml(file)
    assert read["deep"]["deeper"] == {"k": 2, "l": 1}
    assert read["use"] == {"k": 2, "l": 3}
    assert read["again"] == {"k": 1, "l": 1, "m": 4}


def test_a_mark_at_the_beginning_is_none_of_the_first_key(file):
    file.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read_yaml(file) == {"a": 1}


def test_what_is_named_again_and_again_is_counted_each_time(file):
    file.write_text(f"a: &a [{', '.join(['1'] * 500)}]\nb: [{', '.join(['*a'] * 300)}]")
    assert len(read_yaml(file)["b"]) == 300
    file.write_text(f"a: &a [{', '.join(['1'] * 500)}]\nb: [{', '.join(['*a'] * 500)}]")
    with pytest.raises(InputError, match=r"x\.yaml has more values than any configuration needs"):
        read_yaml(file)


def test_a_key_twice_is_found_in_a_merged_mapping(file):
    file.write_text(MERGED.replace("k: 2}", "k: 2, k: 2}"))
    with pytest.raises(InputError, match=r"x\.yaml, line 4: the key 'k' occurs twice"):
        read_yaml(file)
