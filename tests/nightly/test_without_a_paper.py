"""Without a paper types are sound, and all remaining tests can be imported."""

import pytest

from test_a_paper_can_be_removed import PAPERS, remove_paper, run_module


@pytest.mark.parametrize("name", PAPERS)
def test_types_are_sound_and_tests_are_collected(name, tmp_path):
    checkout = remove_paper(tmp_path / "clone", name)
    run_module(checkout, "mypy")
    run_module(checkout, "pytest", "--collect-only", "-q", "-p", "no:cacheprovider")
