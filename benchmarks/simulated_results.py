"""Simulate published results of trainings by step, with planted copies, to measure the audit of results.

Each question of a task is answered rightly where its margin is above zero. Margins follow the training and walk at
random, together and each by itself, as fast as the learning rate says; weights differ at any two steps of an honest
training, however little. ``python -m benchmarks.simulated_results`` prints the tables of docs/how_to/audit.md.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from shape_of_learning.audit.judge_results import judge_results
from shape_of_learning.audit.results import PublishedResults
from shape_of_learning.checkpoints.verdict import Kind

SUITE = "a suite of tasks and losses"
KINDS = (
    SUITE,
    "tasks and losses",
    "tasks",
    "tasks, rounded to 1 %",
    "1 to 3 tasks",
    "1 to 3 losses",
)
SHORTEST, LONGEST = 5, 30
SCHEDULES = ("constant", "linear to 0", "cosine to 0", "constant, then 0.001 of it")


@dataclass(frozen=True)
class Training:
    """A training's results, and the steps whose results are copies of others."""

    kind: str
    results: PublishedResults
    copies: tuple[tuple[int, int], ...] = ()  # the step of the copy, and that of the original


def simulate(seed: int, kind: str, copies: int = 0) -> Training:
    """Simulate the results of a training; copies replace those of randomly drawn steps."""
    random = np.random.default_rng([seed, KINDS.index(kind), copies])
    number = int(random.integers(SHORTEST, LONGEST + 1))
    if random.random() < 0.5:
        steps = np.arange(number) * 1000
    else:
        steps = np.unique(np.round(np.geomspace(1, 143_000, number)).astype(int)) - 1
    rates = draw_rates(random, len(steps))
    movement = rates * np.diff(steps, prepend=steps[0]) / np.diff(steps).max()
    distance = np.cumsum(movement)
    ability = 2 * np.sqrt(distance / distance[-1]) - random.uniform(0.5, 1.5)
    common = np.cumsum(random.normal(size=len(steps)) * movement) * random.uniform(0, 1)
    columns = {}
    if "tasks" in kind:
        few, many = (40, 51) if kind == SUITE else (1, 4) if "1 to 3" in kind else (10, 21)
        for task in range(int(random.integers(few, many))):
            questions = int(np.exp(random.uniform(np.log(50), np.log(600))))
            walk = np.cumsum(
                random.normal(size=(len(steps), questions)) * movement[:, None], axis=0
            )
            margin = ability[:, None] + common[:, None] + 0.5 * walk
            margin = margin + random.normal(size=questions) * random.uniform(0.5, 2)
            columns[f"task{task}/acc"] = (margin > 0).mean(axis=1)
            second = margin + 0.2 * random.normal(
                size=questions
            )  # another score of the same answers
            columns[f"task{task}/acc_norm"] = (second > 0).mean(axis=1)
    if "losses" in kind:
        for task in range(10 if kind == SUITE else int(random.integers(1, 4))):
            walk = np.cumsum(random.normal(size=len(steps)) * movement) * 0.02
            fall = random.uniform(2, 12)
            loss = (
                3
                + fall * np.exp(-random.uniform(3, 30) * distance / distance[-1])
                + 0.05 * common
                + walk
            )
            columns[f"text{task}/loss"] = np.round(loss, int(random.integers(3, 12)))
    values = np.stack(list(columns.values()), axis=1)
    if "rounded" in kind:
        values = np.round(values, 2)
    planted_rows = []
    if copies:
        for row in random.choice(np.arange(1, len(steps)), copies, replace=False):
            original = int(random.choice([other for other in range(len(steps)) if other != row]))
            if {int(row), original}.isdisjoint(place for pair in planted_rows for place in pair):
                values[row] = values[original]
                planted_rows.append((int(row), original))
    names = tuple(columns)
    tasks = tuple(name.partition("/")[0] for name in names)
    results = PublishedResults(kind, tuple(map(int, steps)), names, tasks, values)
    pairs = tuple((results.steps[row], results.steps[original]) for row, original in planted_rows)
    return Training(kind, results, pairs)


def draw_rates(random: np.random.Generator, number: int) -> np.ndarray:
    """Draw a schedule of learning rates, with a warm-up."""
    x = (np.arange(number) + 0.5) / number
    rates = {
        "constant": np.ones(number),
        "linear to 0": 1 - x,
        "cosine to 0": (1 + np.cos(np.pi * x)) / 2,
        "constant, then 0.001 of it": np.where(x < random.uniform(0.3, 0.95), 1.0, 0.001),
    }[str(random.choice(SCHEDULES))]
    return rates * np.minimum(1, (np.arange(number) + 1) / random.integers(1, 4))


def count_alarms(training: Training) -> Counter[str]:
    """Count the verdicts on the steps of a training that are no copies, nor those that were copied."""
    steps_of_copies = {step for pair in training.copies for step in pair}
    return Counter(
        judged_step.checkpoint.verdict.kind.value
        for judged_step in judge_results(training.results)
        if judged_step.checkpoint.step not in steps_of_copies
    )


def judge_copies(training: Training) -> Counter[str]:
    """Count the outcomes of the planted copies: found, unknown or missed."""
    kinds = {
        step.checkpoint.step: step.checkpoint.verdict.kind
        for step in judge_results(training.results)
    }
    words = {
        Kind.SAME_RESULTS: "found",
        Kind.NOT_YET_MOVED: "not yet moved",
        Kind.UNKNOWN: "unknown",
    }
    return Counter(words.get(kinds[copy], "missed") for copy, _ in training.copies)


def main(number: int = 1000) -> None:
    """Print the tables of false alarms and of planted copies."""
    print("| results | honest trainings | steps | same as another | apart | unknown | ok |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for kind in KINDS:
        counts: Counter[str] = Counter()
        for seed in range(-(-number // len(KINDS))):
            counts += count_alarms(simulate(seed, kind))
        kinds = (Kind.SAME_RESULTS, Kind.APART, Kind.UNKNOWN)
        cells = [counts[name.value] for name in kinds]
        right = counts[Kind.OK.value] + counts[Kind.NOT_YET_MOVED.value]
        print(f"| {kind} | {-(-number // len(KINDS))} | {counts.total():,} | ", end="")
        print(" | ".join(f"{cell:,}" for cell in [*cells, right]), "|")
    print("\n| results | copies planted | found | unknown | at the start | missed |")
    print("|---|---:|---:|---:|---:|---:|")
    for kind in KINDS:
        counts = Counter()
        for seed in range(-(-number // len(KINDS))):
            counts += judge_copies(simulate(seed, kind, copies=1 + seed % 3))
        cells = [counts[name] for name in ("found", "unknown", "not yet moved", "missed")]
        print(f"| {kind} | {counts.total():,} | " + " | ".join(f"{c:,}" for c in cells), "|")


if __name__ == "__main__":
    main()
