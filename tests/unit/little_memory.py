"""What a job says on a machine that is too small for its batches."""

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
# What it has beside its weights is limited.
LIMITED = """
import logging, resource, sys
from pathlib import Path
sys.path[:0] = {paths!r}
from dumps import dump
from shape_of_learning.errors import InputError
logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.INFO)
checkpoint, windows, widths = Path({checkpoint!r}), {windows!r}, [32] * 4
folder = checkpoint.parent
dump(checkpoint, folder / "small", widths, ["tokens"])  # loads the libraries
taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + {spare}, taken + {spare}))
try:
    {job}
except InputError as error:
    print("REFUSED:", error)
"""


def said_with_little_memory(job: str, checkpoint: Path, windows: list[str], spare: int) -> str:
    """Run one line of Python with `checkpoint`, its `folder`, `windows` and `widths`, and `spare` bytes."""
    program = LIMITED.format(
        paths=[str(TESTS), *sys.path],
        checkpoint=str(checkpoint),
        windows=windows,
        spare=spare,
        job=job,
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout
