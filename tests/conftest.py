"""What tests of more than one folder share."""

import os
import subprocess
from pathlib import Path

import pytest
from filelock import FileLock

from hub_server import OLAH, olah_environment


@pytest.fixture(scope="session")
def hub_program(pytestconfig: pytest.Config) -> Path:
    """The server program of a Hub on loopback, in an environment that is made once and kept."""
    kept = os.environ.get("OLAH_ENVIRONMENT")
    folder = Path(kept) if kept else Path(pytestconfig.cache.mkdir("olah"))
    try:
        with FileLock(folder.with_name(f".{folder.name}.lock")):
            return olah_environment(folder)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"pip cannot install {OLAH}, the Hub of these tests: {error.stderr[-300:]}")
