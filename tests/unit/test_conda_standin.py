"""The stand-in for conda refuses what conda would not do, and isolates what it makes."""

import subprocess
from pathlib import Path

import pytest

from conda_standin.base import lay_out

CHANNELS = "channels: [conda-forge, nodefaults]\n"


@pytest.fixture(scope="module")
def conda(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lay_out(tmp_path_factory.mktemp("base")) / "conda"


def create(conda: Path, folder: Path, content: str) -> subprocess.CompletedProcess:
    file = folder / "environment.yaml"
    file.write_text(content)
    return subprocess.run(
        [conda, "env", "create", "--quiet", "--file", file, "--prefix", folder / "made"],
        capture_output=True,
        text=True,
    )


def test_an_environment_holds_what_is_listed_and_nothing_of_its_host(conda, tmp_path):
    made = create(conda, tmp_path, f"{CHANNELS}dependencies: [python=3.11, tqdm=4.70]\n")
    assert made.returncode == 0, made.stderr
    python = tmp_path / "made" / "bin" / "python"
    subprocess.run([python, "-c", "import tqdm"], check=True)
    host = subprocess.run([python, "-c", "import yaml"], capture_output=True, text=True)
    assert "ModuleNotFoundError" in host.stderr


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("dependencies: [python=3.11]\n", "its keys must be"),
        ("name: x\n" + CHANNELS + "dependencies: [python=3.11]\n", "its keys must be"),
        ("channels: [defaults]\ndependencies: [python=3.11]\n", "its channels must be"),
        (CHANNELS + "dependencies: [numpy=2.4]\n", "python itself is not listed"),
        (CHANNELS + "dependencies: [python=3.11, numpy]\n", "'numpy' is not of the form"),
        (CHANNELS + "dependencies: [python=3.11, 'numpy>=2']\n", "'numpy>=2' is not of the form"),
        (CHANNELS + "dependencies: [python=3.11, pip: [numpy]]\n", "is not of the form"),
        (CHANNELS + "dependencies: [python=3.11, tqdm=4.70, tqdm=4.70]\n", "listed twice"),
        (CHANNELS + "dependencies: [python=3.11, samtools=1.21]\n", "`samtools` is not known"),
        (CHANNELS + "dependencies: [python=3.2]\n", "there is no Python 3.2"),
    ],
)
def test_a_file_that_is_not_as_ours_is_refused_in_one_sentence(conda, tmp_path, content, reason):
    made = create(conda, tmp_path, content)
    assert made.returncode == 1
    assert reason in made.stderr
    assert len(made.stderr.splitlines()) == 1
    assert not (tmp_path / "made").exists()


def test_a_version_that_contradicts_the_pip_lock_is_refused(conda, tmp_path):
    made = create(conda, tmp_path, f"{CHANNELS}dependencies: [python=3.11, tqdm=4.60]\n")
    assert made.returncode == 1
    assert not (tmp_path / "made" / "conda-meta").exists()


def test_a_question_that_is_not_snakemakes_is_refused(conda):
    answer = subprocess.run([conda, "install", "numpy"], capture_output=True, text=True)
    assert answer.returncode == 1
    assert "does not know: conda install numpy" in answer.stderr
