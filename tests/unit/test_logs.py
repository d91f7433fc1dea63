"""What a script's `job` does: a log, and errors as one sentence."""

import subprocess
import sys
from pathlib import Path

import pytest

from shape_of_learning.errors import InputError, hide_secrets, hide_secrets_in_settings

WORKFLOW = Path(__file__).parents[2] / "workflow"


def script(log: Path, statement: str) -> subprocess.CompletedProcess:
    program = (
        "import logging\nfrom shape_of_learning.errors import InputError\n"
        f"from shape_of_learning.job import run_job\nwith run_job({str(log)!r}):\n    {statement}\n"
    )
    return subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(WORKFLOW)},
        capture_output=True,
        text=True,
    )


def test_what_is_said_is_logged(tmp_path):
    log = tmp_path / "logs/x.log"
    assert script(log, "logging.getLogger('shape_of_learning').debug('so')").returncode == 0
    assert log.read_text().endswith("DEBUG so\n")


@pytest.mark.parametrize(
    ("raised", "sentence"),
    [
        ("InputError('x is 3; lower it')", "ERROR: x is 3; lower it"),
        ("OSError(28, 'No space left on device', 'a.csv')", "ERROR: the disk is full: a.csv could"),
        ("OSError(30, 'Read-only file system', 'a.csv')", "ERROR: a.csv is on a read-only disk"),
        ("OSError('unable to write, errno = 28, of HDF5')", "ERROR: the disk is full"),
        ("RuntimeError('I/O error: No space left on device (os error 28)')", "ERROR: the disk"),
        (
            "RuntimeError('[enforce fail at inline_container.cc:672] . unexpected pos 704 vs 598')",
            "ERROR: the disk is full",
        ),
        ("MemoryError()", "ERROR: memory is exhausted"),
        ("ImportError('x.so: failed to map segment from shared object')", "ERROR: memory is exh"),
        ('RuntimeError("DefaultCPUAllocator: can\'t allocate memory")', "ERROR: memory is exh"),
        ("KeyError('x') from OSError(28, 'No space left on device')", "ERROR: the disk is full"),
        ("InputError('step\\x1b[31m1 is missing')", r"ERROR: step\x1b[31m1 is missing"),
    ],
)
def test_what_a_user_can_act_on_is_one_sentence(tmp_path, raised, sentence):
    done = script(tmp_path / "x.log", f"raise {raised}")
    assert done.returncode == 1
    assert done.stderr.startswith(sentence)
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_a_log_without_room_hides_no_sentence():
    done = script(Path("/dev/full"), "raise InputError('x is 3; lower it')")
    assert (done.returncode, done.stderr) == (1, "ERROR: x is 3; lower it\n")


def test_a_log_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    done = script(tmp_path / "file/x.log", "pass")
    assert done.returncode == 1
    assert done.stderr.startswith("ERROR: ")
    assert done.stderr.count("\n") == 1


def test_a_defect_keeps_its_traceback_and_passwords_are_hidden(tmp_path):
    assert "ZeroDivisionError" in script(tmp_path / "x.log", "1 / 0").stderr
    said = script(tmp_path / "x.log", "raise InputError('https://me:secret@host/x is gone')")
    assert "secret" not in said.stderr + (tmp_path / "x.log").read_text()


def test_a_query_is_hidden_to_its_end_whatever_quotes_it_holds_and_words_around_it_stay():
    address = """https://me:pass@host/x?a="b"&c='d'&token=t0k3n"""
    said = hide_secrets(f"'{address}', which is gone: {address}.")
    assert said == "'https://***@host/x?***', which is gone: https://***@host/x?***."
    settings = {"sources": {"x": {"urls": [address], "first_bytes": 7, "member": None}}}
    hidden = {"x": {"urls": ["https://***@host/x?***"], "first_bytes": 7, "member": None}}
    assert hide_secrets_in_settings(settings) == {"sources": hidden}


def test_no_sentence_of_ours_commands_a_terminal():
    error = InputError("no revision `step1\x1b[2J\u202e`; choose another one")
    assert str(error) == r"no revision `step1\x1b[2J\u202e`; choose another one"
