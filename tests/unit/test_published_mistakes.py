"""Verdicts on published checkpoints with known faults, from the reported hashes."""

import hashlib
import math
import random
from pathlib import Path

import pytest
import yaml

from shape_of_learning.checkpoints.lock import Listing, Lock, LockedRevision, WeightFile, write_lock
from shape_of_learning.checkpoints.verdict import find_broken_losses, format_verdict
from shape_of_learning.checkpoints.weight_evidence import CrossEntropy
from shape_of_learning.plan.entries import Entry, read_entries, read_models
from shape_of_learning.plan.papers import read_papers
from shape_of_learning.plan.run import read_run
from shape_of_learning.plan.series import resolve_checkpoints

ROOT = Path(__file__).parents[2]
ENTRIES = read_entries(ROOT / "config/models")
# Every Pythia has these revisions.
PYTHIA = [0, *(2**i for i in range(10)), *range(1000, 144_000, 1000)]
# EleutherAI/pythia#205: steps with the file of main, and steps with a second file.
ROUND = [70_000, 80_000, 90_000, 100_000, 103_000, 110_000, 120_000, 130_000, 140_000]
OF_MAIN = {*PYTHIA[:11], *range(1000, 54_000, 1000), 55_000, 60_000, 65_000, *ROUND}
SECOND = {54_000, *range(56_000, 60_000, 1000), *range(61_000, 65_000, 1000), 143_000}
GENUINE = sorted(set(PYTHIA) - OF_MAIN - SECOND)
MAIN_2_8B = "ab496f1c3fd79e3c749a9d5414136a2c8e4224f94eecb261970315cdb0f813fe"
SECOND_2_8B = "462f2b960062159c"
# EleutherAI/pythia#206: the first shard of main, step143000, step50000 and step58000.
FIRST_12B = "9d21715462588073675eca9c65ba55a47d911da460a6083938d04acd4589f542"


def complete_hash(digest: str) -> str:
    """Return a digest of full length, made from a label or from digits that the report cuts off."""
    return digest if len(digest) == 64 else hashlib.sha256(digest.encode()).hexdigest()


def listing(*hashes: str) -> Listing:
    files = {
        f"pytorch_model-{number:05}-of-{len(hashes):05}.bin": WeightFile(
            bytes=5_684_548_184, hash=f"sha256:{complete_hash(digest)}"
        )
        for number, digest in enumerate(hashes, start=1)
    }
    return Listing(commit="c" * 40, files=files)


def pythia_2_8b(step: int) -> Listing:
    if step in OF_MAIN:
        return listing(MAIN_2_8B)
    return listing(SECOND_2_8B if step in SECOND else f"step {step}")


def pythia_12b(step: int) -> Listing:
    first = FIRST_12B if step in (50_000, 58_000, 143_000) else f"first of {step}"
    return listing(first, f"second of {step}", f"third of {step}")


def judge_plan(tmp_path: Path, name: str, steps, list_step, main: Listing) -> dict[int, str]:
    """Return the verdicts of a plan without the Hub on the steps of a model of the list."""
    file, entry = ENTRIES[name]
    changed_entry = {**entry, "training": {**entry["training"], "steps": list(steps)}}
    model: Entry = read_models({name: (file, changed_entry)}, [name])[name]
    repository = entry["repository"]
    revisions = {
        f"step{step}": LockedRevision(
            repository=repository, revision=f"step{step}", **dict(list_step(step))
        )
        for step in steps
    }
    lock = tmp_path / f"{name}.yaml"
    write_lock(lock, Lock(revisions=revisions, mains={repository: main}))
    series = resolve_checkpoints(model, lock, known_failure="no network")
    assert not series.hub_failure
    assert {
        checkpoint.name for checkpoint in series.list_measured_checkpoints(include_flagged=False)
    } == {name for name, checkpoint in series.judgements.items() if checkpoint.is_good}
    return {
        checkpoint.step: format_verdict(checkpoint.verdict)
        for checkpoint in series.judgements.values()
    }


def test_the_default_steps_of_pythia_2_8b_are_all_genuine(tmp_path):
    configuration = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    papers = read_papers(ROOT / "workflow/papers")
    paper = read_run(configuration, ROOT / "config/models", papers=papers)
    assert paper.shown_models["figure_3"] == ("pythia-2.8b", "pythia-1.4b")
    steps = [checkpoint.step for checkpoint in paper.models["pythia-2.8b"].checkpoints]
    verdicts = judge_plan(tmp_path, "pythia-2.8b", steps, pythia_2_8b, listing(MAIN_2_8B))
    assert set(verdicts.values()) == {"ok"}
    assert (len(steps), steps[0], steps[-1]) == (20, 66_000, 143_000)


def test_all_154_steps_of_pythia_2_8b_get_their_verdicts(tmp_path):
    assert (len(OF_MAIN), len(SECOND), len(GENUINE)) == (76, 10, 68)  # as reported
    verdicts = judge_plan(tmp_path, "pythia-2.8b", PYTHIA, pythia_2_8b, listing(MAIN_2_8B))
    assert {step for step, verdict in verdicts.items() if verdict == "ok"} == {*GENUINE, 143_000}
    assert {verdicts[step] for step in OF_MAIN} == {"same weights as main"}
    assert {verdicts[step] for step in SECOND - {143_000}} == {"same weights as step 143000"}


def test_verdicts_on_pythia_2_8b_do_not_depend_on_the_planned_steps(tmp_path):
    plans = [sorted(random.Random(seed).sample(PYTHIA, seed)) for seed in range(1, 21)]
    for steps in ([64_000], [100_000], [143_000], [0], *plans):
        verdicts = judge_plan(tmp_path, "pythia-2.8b", steps, pythia_2_8b, listing(MAIN_2_8B))
        ok = {step for step, verdict in verdicts.items() if verdict == "ok"}
        assert ok == set(steps) & {*GENUINE, 143_000}


def test_two_steps_of_pythia_12b_are_mixed_in_any_plan(tmp_path):
    main = pythia_12b(143_000)
    every = PYTHIA[:1] + PYTHIA[2:]
    for steps in (every, [50_000, 58_000, 143_000], [1000, 50_000, 58_000]):
        verdicts = judge_plan(tmp_path, "pythia-12b", steps, pythia_12b, main)
        bad = {step for step, verdict in verdicts.items() if verdict != "ok"}
        assert bad == {50_000, 58_000}


def test_three_equal_steps_of_olmo_2_are_all_called_bad(tmp_path):
    # allenai/OLMo#915: stage1-step101000, -step175000 and -step300000, all six shards alike.
    same = {101_000, 175_000, 300_000}
    entry = {
        "repository": "allenai/OLMo-2-1124-7B",
        **{"role": "decoder", "layers": 32, "hidden_size": 4096},
        "training": {"revision": "step{step}", "steps": [1]},
    }
    ENTRIES["olmo-2-7b"] = Path("olmo.yaml"), entry

    def list_step(step: int) -> Listing:
        return listing(*(f"{i} of {'same' if step in same else step}" for i in range(6)))

    steps = [100_000, 101_000, 102_000, 130_000, 175_000, 300_000, 301_000]
    for plan in (steps, sorted(same)):
        verdicts = judge_plan(tmp_path, "olmo-2-7b", plan, list_step, list_step(928_646))
        assert {step for step, verdict in verdicts.items() if verdict == "ok"} == {*plan} - same
        assert len({verdicts[step] for step in same}) == 1


def test_step_1_of_every_pythia_has_not_moved_yet(tmp_path):
    # EleutherAI/pythia#83 and #198: the first update is at learning rate 0.
    def list_step(step: int) -> Listing:
        return listing(f"step {step if step > 2 else 0}")

    verdicts = judge_plan(tmp_path, "pythia-1.4b", PYTHIA, list_step, list_step(143_000))
    bad = {step: verdict for step, verdict in verdicts.items() if verdict != "ok"}
    assert bad == dict.fromkeys((1, 2), "not yet moved")


@pytest.mark.parametrize(
    ("perplexities", "wrong"),
    [
        # bigscience/bloom-560m-intermediate, discussion 2; step 500000 has the weights of 10000.
        ([392, 71, 53, 51, 50, 50, 71, 320_322], [600_000]),
        # bigscience/bloom-1b1-intermediate, discussion 3
        ([299, 53.0, 34.3, 32.4, 30.9, 338_341, 28.4, 26.8], [400_000]),
    ],
)
def test_the_published_perplexities_of_bloom_show_the_broken_step(perplexities, wrong):
    steps = [1000, 10_000, 100_000, 200_000, 300_000, 400_000, 500_000, 600_000]
    losses = {
        step: CrossEntropy(math.log(perplexity), 1000, 250_880)
        for step, perplexity in zip(steps, perplexities, strict=True)
    }
    assert list(find_broken_losses(losses)) == wrong
