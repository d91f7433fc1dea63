"""Verdicts on simulated trainings with planted mistakes; docs/checkpoints.md shows ten times as many."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))

from benchmarks.results import RESULTS, Results  # noqa: E402
from benchmarks.simulated_curves import SHOWN_BY, alarms, judged, simulated  # noqa: E402
from benchmarks.tables.verdicts import CLEAN  # noqa: E402

CURVES = 100
SEEDS = range(10_000, 10_000 + CURVES)  # others than those of the page


def test_a_training_without_mistakes_raises_no_alarm():
    for seed in SEEDS:
        curve = simulated(seed, is_clean=True)
        assert not curve.faults
        assert set(judged(curve).values()) == {"ok"}, seed


@pytest.fixture(scope="module")
def mistakes() -> list[tuple[str, bool, int]]:
    """What was planted and whether it was found."""
    found = []
    for seed in SEEDS:
        curve = simulated(seed, is_clean=False)
        verdicts = judged(curve)
        planted = {step: kind for step, kind in curve.faults.items() if step in verdicts}
        found += [(kind, verdicts[step] != "ok", seed) for step, kind in planted.items()]
    return found


def test_every_mistake_that_hashes_tensors_or_reports_show_is_found(mistakes):
    certain = {kind for kind, shown_by in SHOWN_BY.items() if shown_by not in ("losses", "")}
    assert certain == {kind for kind, _, _ in mistakes} & certain, "some were not planted"
    assert not [(kind, seed) for kind, found, seed in mistakes if kind in certain and not found]


def test_nearly_every_mistake_that_losses_show_is_found(mistakes):
    shown = [found for kind, found, _ in mistakes if SHOWN_BY[kind] == "losses"]
    assert len(shown) > 20
    assert sum(shown) >= 0.9 * len(shown)


def test_alarms_beside_mistakes_are_rare():
    steps = false = 0
    for seed in SEEDS:
        curve = simulated(seed, is_clean=False)
        false += len(alarms(curve, judged(curve)))
        steps += len(curve.steps)
    assert false <= 0.005 * steps


def test_the_page_shows_the_table():
    page = (ROOT / "docs/checkpoints.md").read_text()
    written = subprocess.run(
        [sys.executable, ROOT / "docs/write_checkpoints.py"],
        env={"PYTHONPATH": f"{ROOT / 'workflow'}:{ROOT}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert page == written.stdout, "run `make docs/checkpoints.md`"


def test_the_page_claims_what_the_tests_demand():
    rows = {row.contender: row.values for row in Results.read(RESULTS / "verdicts.csv").rows}
    assert rows[CLEAN]["curves"] == 1000
    assert rows[CLEAN]["false alarms"] == 0
    for kind, shown_by in SHOWN_BY.items():
        if shown_by not in ("losses", ""):
            assert rows[kind]["found"] == rows[kind]["planted"] > 0
