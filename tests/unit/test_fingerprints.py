import pytest

from shape_of_learning.storage import fingerprints
from shape_of_learning.storage.fingerprints import fingerprint


@pytest.mark.parametrize("size", [0, 1, 1000, 100_000])
def test_any_copy_has_the_same(tmp_path, size):
    for name in ("one", "other"):
        (tmp_path / name).write_bytes(bytes(range(256)) * (size // 256 + 1))
    assert fingerprint(tmp_path / "one") == fingerprint(tmp_path / "other")


@pytest.mark.parametrize("place", [0, 50_000, 99_999])
def test_large_files_are_told_apart_by_any_block_that_is_read(tmp_path, place, monkeypatch):
    monkeypatch.setattr(fingerprints, "WHOLE_BYTES", 1000)
    monkeypatch.setattr(fingerprints, "BLOCK_BYTES", 2000)
    content = bytearray(100_000)
    (tmp_path / "one").write_bytes(content)
    content[place] = 1
    (tmp_path / "other").write_bytes(content)
    assert fingerprint(tmp_path / "one") != fingerprint(tmp_path / "other")


def test_a_longer_file_is_another(tmp_path):
    (tmp_path / "one").write_bytes(b"a")
    (tmp_path / "other").write_bytes(b"aa")
    assert fingerprint(tmp_path / "one") != fingerprint(tmp_path / "other")
