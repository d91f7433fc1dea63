"""A process that has imported what takes long, and forks for each command that it is given.

So hundreds of commands run as a shell would run them, each in a process of its own, in a second or less.
"""

import contextlib
import importlib
import json
import os
import pkgutil
import runpy
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LIBRARY = Path(__file__).parents[1] / "workflow"


class Forks:
    """Runs commands, one at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, folder: Path, arguments: list[str], **variables: str) -> tuple[int, str]:
        """Run ``snakemake ...``, or a script of Python's, in a folder; exit status and all that it prints."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        told = {"folder": str(folder), "arguments": arguments, "variables": variables}
        self._process.stdin.write(f"{json.dumps(told)}\n")
        self._process.stdin.flush()
        status, output = json.loads(self._process.stdout.readline())
        return status, output


@contextmanager
def forks() -> Iterator[Forks]:
    """Start the process, with nothing of the user's own Hugging Face settings."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
    own = {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, __file__],
        env={**inherited, **own, "PYTHONPATH": str(LIBRARY)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Forks(process)
        assert process.stdin is not None
        process.stdin.close()


def _serve() -> None:
    import jsonschema
    import smart_open
    import snakemake.cli
    import snakemake.dag
    import snakemake.workflow
    import torch
    import transformers

    import shape_of_learning

    assert jsonschema
    assert smart_open
    assert torch
    for module in pkgutil.walk_packages(shape_of_learning.__path__, "shape_of_learning."):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)
    snakemake.cli.get_argument_parser()  # which imports the plugins
    assert transformers.AutoModelForCausalLM
    assert transformers.GPTNeoXForCausalLM
    assert transformers.AutoTokenizer
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        told = json.loads(line)
        output = Path(told["folder"], ".output")
        child = os.fork()
        if child == 0:
            _become(told, output)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said = output.read_text(errors="backslashreplace")
        output.unlink()
        print(json.dumps([status, said]), file=answers, flush=True)


def _become(told: dict, output: Path) -> None:
    """Run as the interpreter would, and end."""
    shown = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(shown, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(told["folder"])
    os.environ.update(told["variables"])
    program, *arguments = told["arguments"]
    status = 0
    try:
        sys.argv = [program, *arguments]
        if program == "snakemake":
            runpy.run_module("snakemake", run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(program, run_name="__main__")
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        status = 1
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(status)


if __name__ == "__main__":
    _serve()
