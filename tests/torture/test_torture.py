"""What is ended at the worst moments, one job of every kind of rule, and again and again, whole runs.

Of the runs the environment chooses: TORTURE_MOMENTS, how many; TORTURE_DEMO, the whole demo and not the small
chain; TORTURE_SEED, the moments, to repeat a failure (it is printed).
"""

import functools
import os
import random
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from shape_of_learning.script_arguments.settings import VARIABLE, export_plumbing_settings

from checkouts import Checkout
from jobs import (
    AS_ALL_IS_WRITTEN,
    AS_IT_BEGINS,
    Job,
    one_of_each_script,
    start,
    wait_until_it_waits,
    without_a_dump,
)
from shape_of_learning.plan.configuration import with_defaults
from torture_runs import WAYS, Run, Undisturbed, is_same, results

SCRIPTS = Path(__file__).parents[2] / "workflow" / "scripts"
KINDS = sorted(path.stem for path in SCRIPTS.glob("*.py"))
MOMENTS = int(os.environ.get("TORTURE_MOMENTS", "3"))
SEED = int(os.environ.get("TORTURE_SEED", time.time_ns() % 1_000_000))
# Removed as soon as they are measured, unless a run is ended before that.
TEMPORARY = [
    ("results", "embeddings"),
    ("results", "neighbours"),
    ("resources", "unkept_checkpoints"),
]


@pytest.fixture(scope="module")
def jobs(reference: Undisturbed) -> dict[str, Job]:
    return one_of_each_script(reference.checkout, reference.arguments)


def copy_of_results(reference: Undisturbed, copy: Path) -> Path:
    skipped = shutil.ignore_patterns(".snakemake", "workflow")
    return shutil.copytree(reference.checkout.folder, copy, symlinks=True, ignore=skipped)


@pytest.fixture(scope="module")
def whole(reference: Undisturbed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the undisturbed run has made; a copy, since other tests compare theirs with that run, too."""
    return copy_of_results(reference, tmp_path_factory.mktemp("whole") / "copy")


@pytest.fixture(scope="module")
def folder(reference: Undisturbed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same again, where jobs are ended."""
    return copy_of_results(reference, tmp_path_factory.mktemp("jobs") / "it's a copy")


@pytest.fixture
def environment(reference: Undisturbed, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in reference.checkout.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", str(SCRIPTS.parent))
    # As in a job, since last bits of sums depend on the threads. What forks the jobs starts with it.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    # As the workflow exports them, from the three files that a run of the small chain reads.
    monkeypatch.setenv(VARIABLE, "")
    defaults = [
        reference.checkout.folder / "config" / name for name in ("demo.yaml", "config.yaml")
    ]
    small = yaml.safe_load((reference.checkout.folder / "small.yaml").read_text())
    export_plumbing_settings(functools.reduce(with_defaults, defaults, small))


def files(path: Path) -> list[Path]:
    """A file, or the files of a folder but for what Snakemake adds."""
    inside = path.rglob("*") if path.is_dir() else [path]
    return sorted(file for file in inside if file.is_file() and ".snakemake" not in file.name)


def assert_equal(made: Path, expected: Path) -> None:
    assert [f.relative_to(made) for f in files(made)] == [
        f.relative_to(expected) for f in files(expected)
    ]
    for one, other in zip(files(made), files(expected), strict=True):
        assert is_same(one, other), f"{one} has other bytes"


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_that_is_ended_leaves_nothing_half_written_and_its_rerun_is_whole(
    kind: str, jobs: dict[str, Job], folder: Path, whole: Path, environment: None
):
    if kind == "measure_checkpoint":  # which the run has not needed
        job = without_a_dump(jobs["dump_embeddings"])
        process = start(job, whole)
        process.join(120)
        assert process.exitcode == 0
    else:
        job = jobs[kind]

    def remove_outputs() -> None:
        for output in job.outputs:
            path = folder / output
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    def unfinished() -> list[Path]:
        return [path for o in job.outputs for path in (folder / o).parent.glob(".*.partial")]

    for moment in (AS_IT_BEGINS, AS_ALL_IS_WRITTEN):
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
            remove_outputs()
            process = start(job, folder, waits_at=moment)
            wait_until_it_waits(process, folder)
            os.kill(process.pid, number)
            process.join(60)
            assert process.exitcode in (-number, 128 + number)
            for output in job.outputs:
                if (folder / output).exists():  # one of several that a job makes
                    assert_equal(folder / output, whole / output)
            if number != signal.SIGKILL:
                assert unfinished() == []
    remove_outputs()
    process = start(job, folder)
    process.join(120)
    assert process.exitcode == 0
    for output in job.outputs:
        assert_equal(folder / output, whole / output)
    assert unfinished() == []


def lasting(found: dict[Path, Path]) -> set[Path]:
    return {path for path in found if path.parts[:2] not in TEMPORARY}


def assert_whole(checkout: Checkout, expected: dict[Path, Path]) -> None:
    for inside, path in results(checkout.folder).items():
        with suppress(FileNotFoundError):  # a job that outlives its run has just replaced it
            assert is_same(path, expected[inside]), f"{inside} is not whole"


def test_a_run_that_is_ended_again_and_again_comes_to_the_same_end(
    reference: Undisturbed, tmp_path: Path
):
    chosen = random.Random(SEED)
    print(f"TORTURE_SEED={SEED}: {MOMENTS} moments in a run of {reference.seconds:.0f} s")
    expected = results(reference.checkout.folder)
    checkout, arguments = reference.pristine, reference.arguments
    ways = [*WAYS * (MOMENTS // len(WAYS)), *chosen.sample(WAYS, MOMENTS % len(WAYS))]
    chosen.shuffle(ways)
    runs = []
    for number, (way, moment) in enumerate(
        zip(ways, reference.moments(MOMENTS, chosen), strict=True), 1
    ):
        checkout.snakemake("--unlock", *arguments)
        runs.append(run := Run(checkout, arguments, tmp_path / f"{number}.log"))
        reached = run.reaches(moment)
        seconds = time.monotonic() - run.began
        print(f"{number}. {way} after {seconds:.0f} s, {moment.jobs_left} jobs left: ", end="")
        if not reached:  # what it had to do again took less time than before
            assert run.process.returncode == 0, run.log.read_text()[-5000:]
            print("it had ended", flush=True)
            break
        run.end(way)
        print(f"{run.process.returncode}, {len(results(checkout.folder))} files", flush=True)
        if way != "SIGKILL":  # else its jobs are still at work
            assert_whole(checkout, expected)
    assert any(run.process.returncode != 0 for run in runs)
    for run in runs:
        run.outlived(300)
    assert_whole(checkout, expected)
    checkout.snakemake("--unlock", *arguments)
    checkout.snakemake(*arguments)
    assert_whole(checkout, expected)
    assert lasting(results(checkout.folder)) == lasting(expected)
    assert not checkout.partial_files()
