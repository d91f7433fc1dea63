"""Runs that are ended at random moments, again and again, and what they leave.

The environment chooses: TORTURE_MOMENTS, how many; TORTURE_DEMO, the whole demo and not the small chain;
TORTURE_SEED, the moments, to repeat a failure (it is printed).
"""

import os
import random
import time
from contextlib import suppress
from pathlib import Path

from checkouts import Checkout
from runs import WAYS, Run, Undisturbed, is_same, results

MOMENTS = int(os.environ.get("TORTURE_MOMENTS", "3"))
SEED = int(os.environ.get("TORTURE_SEED", time.time_ns() % 1_000_000))
# Removed as soon as they are measured, unless a run is ended before that.
TEMPORARY = [
    ("results", "embeddings"),
    ("results", "neighbours"),
    ("resources", "unkept_checkpoints"),
]


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
