"""`run_job` writes a script's log and prints errors as one sentence."""

import subprocess
import sys
from pathlib import Path

import pytest

from shape_of_learning.errors import InputError, hide_secrets, hide_secrets_in_settings

WORKFLOW = Path(__file__).parents[2] / "workflow"


def run_script(log: Path, statement: str) -> subprocess.CompletedProcess:
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


def test_messages_are_logged(tmp_path):
    log = tmp_path / "logs/x.log"
    assert run_script(log, "logging.getLogger('shape_of_learning').debug('so')").returncode == 0
    assert log.read_text().endswith("DEBUG so\n")


@pytest.mark.parametrize(
    ("exception", "sentence"),
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
def test_an_error_that_a_user_can_act_on_is_one_sentence(tmp_path, exception, sentence):
    process = run_script(tmp_path / "x.log", f"raise {exception}")
    assert process.returncode == 1
    assert process.stderr.startswith(sentence)
    assert "Traceback" not in process.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_an_error_is_printed_though_the_log_has_no_room():
    process = run_script(Path("/dev/full"), "raise InputError('x is 3; lower it')")
    assert (process.returncode, process.stderr) == (1, "ERROR: x is 3; lower it\n")


def test_a_log_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    process = run_script(tmp_path / "file/x.log", "pass")
    assert process.returncode == 1
    assert process.stderr.startswith("ERROR: ")
    assert process.stderr.count("\n") == 1


def test_a_defect_keeps_its_traceback_and_passwords_are_hidden(tmp_path):
    assert "ZeroDivisionError" in run_script(tmp_path / "x.log", "1 / 0").stderr
    process = run_script(tmp_path / "x.log", "raise InputError('https://me:secret@host/x is gone')")
    assert "secret" not in process.stderr + (tmp_path / "x.log").read_text()


def test_a_query_with_quotes_is_hidden_and_the_words_around_it_stay():
    address = """https://me:pass@host/x?a="b"&c='d'&token=t0k3n"""
    sentence = hide_secrets(f"'{address}', which is gone: {address}.")
    assert sentence == "'https://***@host/x?***', which is gone: https://***@host/x?***."
    settings = {"sources": {"x": {"urls": [address], "first_bytes": 7, "member": None}}}
    hidden = {"x": {"urls": ["https://***@host/x?***"], "first_bytes": 7, "member": None}}
    assert hide_secrets_in_settings(settings) == {"sources": hidden}


def test_error_messages_contain_no_terminal_commands():
    error = InputError("no revision `step1\x1b[2J\u202e`; choose another one")
    assert str(error) == r"no revision `step1\x1b[2J\u202e`; choose another one"
