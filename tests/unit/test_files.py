import pytest

from shape_of_learning.files import written_beside


def test_a_file_appears_only_when_it_is_whole(tmp_path):
    final = tmp_path / "deep" / "result.csv"
    with written_beside(final) as partial:
        partial.write_text("all of it")
        assert not final.exists()
    assert final.read_text() == "all of it"
    assert list(final.parent.iterdir()) == [final]


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_failure_leaves_nothing_new_and_keeps_what_was_there(tmp_path, kind):
    final = tmp_path / "result"
    for content in ("old", "new"):
        try:
            with written_beside(final) as partial:
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
        with written_beside(final) as partial:
            partial.mkdir()
            (partial / name).touch()
    assert [path.name for path in final.iterdir()] == ["new"]


def test_what_a_killed_run_left_is_no_obstacle(tmp_path):
    (tmp_path / ".result.partial").mkdir()
    with written_beside(tmp_path / "result") as partial:
        partial.write_text("fresh")
    assert (tmp_path / "result").read_text() == "fresh"
