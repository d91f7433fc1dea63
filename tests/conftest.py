"""Fixtures that tests of several folders share."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import settings

from checkouts import REPOSITORY, Checkout, check_out
from hub_server import OLAH, install_olah

# A slow or busy machine must not fail a test.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

REAL_TEXT = REPOSITORY.parent / "shared" / "data" / "enwik6.xz"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A fresh checkout, in a folder whose name is hard on careless scripts."""
    return check_out(tmp_path / "it's a checkout")


@pytest.fixture
def windows_at_once(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """A function that sets how many windows go through a model together on a CPU."""
    constant = "shape_of_learning.embeddings.run.WINDOWS_ON_A_CPU"
    return lambda number: monkeypatch.setattr(constant, number)


@pytest.fixture(scope="session")
def real_text() -> Path:
    """The first megabyte of enwik8."""
    if not REAL_TEXT.exists():
        pytest.skip(f"the real text {REAL_TEXT} is not on this machine")
    return REAL_TEXT


@pytest.fixture(scope="session")
def hub_program(pytestconfig: pytest.Config) -> Path:
    """The server program of a Hub on loopback, in an environment that is made once and kept."""
    path = os.environ.get("OLAH_ENVIRONMENT")
    folder = Path(path) if path else Path(pytestconfig.cache.mkdir("olah"))
    try:
        with FileLock(folder.with_name(f".{folder.name}.lock")):
            return install_olah(folder)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"pip cannot install {OLAH}, the Hub of these tests: {error.stderr[-300:]}")
