"""Jobs inside the image of `envs/`, as far as it can be seen without a program that builds and runs images.

The image is a folder here, with a `conda` of its own that is the stand-in.
"""

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from checkouts import REPOSITORY, Checkout, check_out
from conda_standin.base import lay_out

IMAGE = "shape-of-learning.sif"
PROTOCOL = "results/tables/protocol.yaml"
# Called as `apptainer … exec … IMAGE SHELL -c COMMAND`; the root of the image is the folder IMAGE.
APPTAINER = """\
#!/bin/sh
if [ "$1" = --version ]; then
    echo "apptainer version 1.4.0"
    exit
fi
for command in "$@"; do :; done
image=$PWD/shape-of-learning.sif
inside=$(printf %s "$command" | sed "s|/conda-envs/|$image/conda-envs/|g")
PATH="$image/bin:$PATH" exec bash -c "$inside"
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A checkout whose path is plain, since Snakemake does not quote those of environments."""
    return check_out(tmp_path / "checkout")


def run(checkout: Checkout, *, succeeds: bool = True) -> str:
    programs = checkout.folder.parent / "programs"
    programs.mkdir()
    (programs / "apptainer").write_text(APPTAINER)
    (programs / "apptainer").chmod(0o755)
    return checkout.snakemake(
        *("--snakefile", "workflow/containerized.smk", "--configfile", "config/demo.yaml"),
        # Without the base path Snakemake asks the host's conda, of which nothing is used.
        *("--software-deployment-method", "conda", "apptainer", "--conda-base-path", "/opt/conda"),
        *("--cores", "1", "--", PROTOCOL),
        succeeds=succeeds,
        environment={"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
    )


def build(checkout: Checkout, environment: str) -> Path:
    """Do what both recipes do, for one environment, and return the folder of environments."""
    image, context = checkout.folder / IMAGE, checkout.folder.parent / "envs"
    conda = lay_out(image)
    context.mkdir()
    for name in ("make_all.sh", environment):
        shutil.copy(checkout.folder / "envs" / name, context)
    subprocess.run(
        ["sh", context / "make_all.sh", image / "conda-envs"],
        check=True,
        env={**os.environ, "PATH": f"{conda}{os.pathsep}{os.environ['PATH']}"},
    )
    return image / "conda-envs"


def test_a_job_finds_its_environment_where_the_recipe_makes_it(checkout):
    (made,) = build(checkout, "corpus.yaml").iterdir()
    said = run(checkout)
    assert f"conda-envs/{made.name}" in said
    assert (checkout.folder / PROTOCOL).exists()


def test_a_job_does_not_run_in_an_image_of_other_environments(checkout):
    file = checkout.folder / "envs" / "corpus.yaml"
    build(checkout, "corpus.yaml")
    file.write_text(file.read_text() + "# edited since the image was built\n")
    said = run(checkout, succeeds=False)
    assert f"conda-envs/{hashlib.md5(file.read_bytes()).hexdigest()}" in said
    assert not (checkout.folder / PROTOCOL).exists()


def test_both_recipes_make_the_same_image():
    docker = (REPOSITORY / "envs" / "Dockerfile").read_text()
    apptainer = (REPOSITORY / "envs" / "apptainer.def").read_text()
    (base,) = re.findall(r"^FROM (\S+)$", docker, re.MULTILINE)
    assert f"\nFrom: {base}\n" in apptainer
    command = "sh /envs/make_all.sh /conda-envs\n"
    assert f"\nRUN {command}" in docker
    assert f"\n    {command}" in apptainer
