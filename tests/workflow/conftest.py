"""A checkout of its own for each run, and the real inputs that are at hand."""

from pathlib import Path

import pytest

from checkouts import REPOSITORY, Checkout, check_out

REAL_TEXT = REPOSITORY.parent / "shared" / "data" / "enwik6.xz"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A fresh checkout, in a folder whose name is hard on careless scripts."""
    return check_out(tmp_path / "it's a checkout")


@pytest.fixture(scope="session")
def real_text() -> Path:
    """The first megabyte of enwik8."""
    if not REAL_TEXT.exists():
        pytest.skip(f"the real text {REAL_TEXT} is not on this machine")
    return REAL_TEXT


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many bad inputs were refused as they should be."""
    reports = terminalreporter.stats.get("passed", [])
    refused = [each for each in reports if "test_it_is_refused_in_one_sentence[" in each.nodeid]
    if refused:
        terminalreporter.write_line(f"{len(refused)} bad inputs end in one sentence")
