"""What the tests here share: one run that nobody disturbs."""

import os
import signal

import pytest

from chains import demo, small
from torture_runs import Undisturbed, undisturbed

# Shells have what they start in the background ignore Ctrl-C. What is tested here must not inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    chain = demo if "TORTURE_DEMO" in os.environ else small
    return undisturbed(tmp_path_factory.mktemp("torture"), chain)
