"""What the tests here share: one run that nobody disturbs."""

import os

import pytest

from chains import demo, small
from runs import Undisturbed, undisturbed


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    chain = demo if "TORTURE_DEMO" in os.environ else small
    return undisturbed(tmp_path_factory.mktemp("torture"), chain)
