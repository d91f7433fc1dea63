"""Where this workflow's own files are: scripts, library, schemas, model list.

A module that is read from a repository, by github(...) or gitfile(...), is unpacked once per commit, since jobs
need more files than Snakemake fetches.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path


def git(repository, *arguments, **options):
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, **options).stdout


# Below the working directory: where revisions of a repository are unpacked, each by its commit.
UNPACKED = ".snakemake/shape-of-learning"


def unpacked(repository, revision):
    """The folder that holds all files of one revision of a repository."""
    commit = git(repository, "rev-parse", f"{revision}^{{commit}}", text=True).strip()
    folder = Path(UNPACKED, commit).absolute()
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
            files = git(repository, "archive", "--prefix=files/", commit)
            subprocess.run(["tar", "-x", "-C", temporary], input=files, check=True)
            try:
                Path(temporary, "files").rename(folder)
            except OSError:
                if not folder.exists():  # else another process was first
                    raise
    return folder


def workflow_folder():
    rules, repository, revision = folder_that_asks()
    return Path("" if repository is None else unpacked(repository, revision), rules).parents[1]


WORKFLOW = workflow_folder()
if os.pathsep in str(WORKFLOW):
    raise WorkflowError(
        f"{WORKFLOW}: Python imports nothing from a folder whose path holds a `{os.pathsep}`; move it"
    )
if str(WORKFLOW) not in sys.path:
    sys.path.insert(0, str(WORKFLOW))

# Jobs take over this process's variables. So no rule says where scripts lie, and no result depends on it.
os.environ.update(SCRIPTS=str(WORKFLOW / "scripts"))
# Arrays of up to 32 MiB that come and go stay with the process, up to 256 MiB: for glibc to give them back each time
# and to ask for them anew takes a twentieth of the time of small jobs.
os.environ.setdefault("MALLOC_MMAP_THRESHOLD_", str(2**25))
os.environ.setdefault("MALLOC_TRIM_THRESHOLD_", str(2**28))
# A conda environment drops PYTHONPATH, and Python may see the user's own packages.
shell.prefix('set -euo pipefail; export PYTHONPATH="${{SCRIPTS%/*}}" PYTHONNOUSERSITE=1; ')
