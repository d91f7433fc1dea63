"""Simulate published training curves with planted mistakes, to measure the verdicts.

A checkpoint is its loss and the digests of its tensors, which stand for themselves: no two are equal by
chance. Files are digests of the tensors in them and of how they were written.

``python -m benchmarks.simulated_curves`` prints the tables of docs/explanation/checkpoints.md.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from shape_of_learning.checkpoints.lock import Checkpoint, Listing, WeightFile
from shape_of_learning.checkpoints.verdict import (
    NOT_YET_MOVED,
    OK,
    Kind,
    Mistake,
    Verdict,
    judge_listing,
    judge_measurements,
)
from shape_of_learning.checkpoints.weight_evidence import (
    CrossEntropy,
    TensorDigests,
    WeightEvidence,
)

SHORTEST, LONGEST = 5, 160
LAYERS = 12
VOCABULARIES = (32_000, 50_257, 250_880)
REPOSITORY = "simulated/model"
GOOD = (OK, NOT_YET_MOVED)
LONG_ENOUGH = 10  # checkpoints, for layers that freeze late
TOKENS = 14_000
HIGHEST_SPIKE = 5.0
SAMPLE_SIZE = 256  # values of a matrix
TURNING_STEPS = 50_000  # steps after which nothing is left of where it began
EARLY = 512  # steps, of which the first ones tell whether a training began with its step 0
# These bounds describe the simulated mistakes; they are not constants of the tested code.
FAR = 5.52  # nats, a perplexity 250 times as high
IN_A_ROW = 3
# Kinds of mistakes, and the evidence that shows them.
COPY = "copy of another step, the same files"
REWRITTEN = "copy of another step, files written anew"
WIDENED = "copy of another step in a wider type"
NARROWED = "copy of another step in a narrower type"
OF_THE_END = "copy of the end of training, which is not asked for"
MIXED = "one shard of another step"
MIXED_REWRITTEN = "a third of the tensors of another step, files written anew"
MISSING = "missing, or without weights"
CONFIRMED = "reported copy, files written anew"
UNCONFIRMED = "reported copy of a step that is not asked for"
BROKEN = "broken, more than ln 250 above the curve"
BROKEN_LITTLE = "broken, less than that above the curve"
MIXED_LATE = "a part of the steps after it, up to the last one"
SWAPPED = "exchanged, each a nat or more from its neighbours, three steps or more between"
SWAPPED_NEAR = "exchanged, closer than that"
NEIGHBOUR = "weights of a neighbouring step that is not asked for"
OTHER_START = "step 0 of another training"
OTHER_START_ALONE = "step 0 of another training, where the next ones stand still or are wrong"
SHOWN_BY = {
    COPY: "hashes",
    OF_THE_END: "hashes",
    MIXED: "hashes",
    MISSING: "hashes",
    UNCONFIRMED: "report",
    REWRITTEN: "tensors",
    CONFIRMED: "report, tensors",
    MIXED_REWRITTEN: "tensors",
    OTHER_START: "tensors",
    WIDENED: "losses",
    BROKEN: "losses",
    SWAPPED: "",
    MIXED_LATE: "",
    BROKEN_LITTLE: "",
    SWAPPED_NEAR: "",
    NARROWED: "",
    NEIGHBOUR: "",
    OTHER_START_ALONE: "",
}
PLANTED_KINDS = (
    *(COPY, REWRITTEN, WIDENED, NARROWED, OF_THE_END, MIXED, MIXED_REWRITTEN, MISSING, CONFIRMED),
    *(UNCONFIRMED, BROKEN, SWAPPED, NEIGHBOUR, OTHER_START),
)


@dataclass(frozen=True)
class Step:
    """A checkpoint of a simulated training.

    Attributes
    ----------
    tensors : mapping of str to (str, str, str)
        Type, shape and digest.
    loss : float
        Nats.
    writing : str
        The way of writing its files: equal tensors written in the same way give equal files.
    problem : str
        The problem in its listing.
    sample : tuple of float
        Some values of its largest matrix.
    """

    tensors: Mapping[str, tuple[str, str, str]]
    loss: float
    writing: str = ""
    problem: str = ""
    sample: tuple[float, ...] = ()


@dataclass
class Curve:
    """A curve, the mistakes in it, and the facts in its entry.

    Attributes
    ----------
    steps : dict of int to Step
        As published, ascending.
    main : Step or None
        The published model.
    shards : int
        Files of a checkpoint.
    frozen : int
        Layers that are not trained.
    mixed_tensors : dict of int to list of str
        Step -> its tensors that belong to another step.
    vocabulary : int
    last_step : int or None
        As in the entry.
    faults : dict of int to str
        Step -> kind of its mistake.
    sources : set of int
        Steps whose weights were copied to other steps.
    reports : list of Mistake
    """

    steps: dict[int, Step]
    main: Step | None
    shards: int
    frozen: int
    vocabulary: int
    last_step: int | None
    faults: dict[int, str] = field(default_factory=dict)
    mixed_tensors: dict[int, list[str]] = field(default_factory=dict)
    sources: set[int] = field(default_factory=set)
    reports: list[Mistake] = field(default_factory=list)


def simulate_curve(seed: int, *, is_clean: bool) -> Curve:
    """Train a model and publish it, with mistakes unless it `is_clean`."""
    random = np.random.default_rng([seed, int(is_clean)])
    curve = _train(random)
    if is_clean:
        return curve
    for _ in range(random.integers(1, 1 + max(1, len(curve.steps) // 10))):
        _plant(curve, PLANTED_KINDS[random.integers(len(PLANTED_KINDS))], random)
    early = [step for step in curve.steps if step <= EARLY]
    if curve.faults.get(0) == OTHER_START:
        sound = [curve.steps[step].tensors for step in early if step not in curve.faults]
        last = f"layers.{LAYERS // 2 - 1}.weight"  # of those that stand still at first
        if len(sound) < 2 or sound[0][last] == sound[1][last]:
            curve.faults[0] = OTHER_START_ALONE
    for step, names in curve.mixed_tensors.items():
        if _seems_frozen(curve, step, names):
            curve.faults[step] = MIXED_LATE
    return curve


def judge_curve(curve: Curve) -> dict[int, Verdict]:
    """Judge the files, measure the checkpoints that are ok, and return the verdicts by step."""
    names = {step: f"step{step}" for step in curve.steps}
    points = [Checkpoint(name, name, REPOSITORY, step=step) for step, name in names.items()]
    listings = {names[number]: _list_files(curve, step) for number, step in curve.steps.items()}
    mains = {} if curve.main is None else {REPOSITORY: _list_files(curve, curve.main)}
    judgements_by_files = judge_listing(points, listings, mains, curve.reports, curve.last_step)
    evidence = {
        file.name: WeightEvidence(
            CrossEntropy(curve.steps[file.step or 0].loss, TOKENS, curve.vocabulary),
            TensorDigests(
                curve.steps[file.step or 0].tensors, "W", curve.steps[file.step or 0].sample
            ),
        )
        for file in judgements_by_files
        if not file.is_bad
    }
    judgements = judge_measurements(judgements_by_files, evidence)
    return {judgement.step or 0: judgement.verdict for judgement in judgements}


def is_doubted(verdict: Verdict) -> bool:
    """Return whether a checkpoint is suspicious: drawn hollow, and not called wrong."""
    return verdict.kind is Kind.SUSPICIOUS


def list_alarms(curve: Curve, verdicts: Mapping[int, Verdict]) -> set[int]:
    """List bad steps without a mistake whose weights were not copied."""
    bad = {
        step
        for step, verdict in verdicts.items()
        if verdict not in GOOD and not is_doubted(verdict)
    }
    return bad - curve.faults.keys() - curve.sources


def _train(random: np.random.Generator) -> Curve:
    length = round(math.exp(random.uniform(math.log(SHORTEST), math.log(LONGEST))))
    steps = _draw_steps(length, random)
    shards = int(random.choice([1, 1, 2, 3, 4, 6]))
    frozen = LAYERS // shards if shards > 1 and random.random() < 0.2 else 0
    vocabulary = int(random.choice(VOCABULARIES))
    losses = _draw_losses(steps, math.log(vocabulary), random)
    still = int(random.integers(0, 3)) if random.random() < 0.3 else 0  # steps of a rounded warm-up
    # Some layers move no more at the end: frozen there, or by steps that 16 bits do not show.
    late = len(steps) - int(random.integers(3, 6)) if random.random() < 0.3 else len(steps)
    if len(steps) < LONG_ENOUGH:  # few steps do not tell parts that stand still from misplaced ones
        late = len(steps)
    run = f"{random.integers(2**62)}"
    published_steps = {}
    begin, end = random.normal(size=(2, SAMPLE_SIZE))
    for place, (step, loss) in enumerate(zip(steps, losses, strict=True)):
        tensors = {}
        for layer in range(LAYERS):
            step_of_weights = (
                0 if layer < frozen or (place <= still and layer < LAYERS // 2) else step
            )
            if place > late and layer >= LAYERS // 2:
                step_of_weights = steps[late]
            tensors[f"layers.{layer}.weight"] = (
                "F16",
                "64x64",
                f"{run} {layer} at {step_of_weights}",
            )
            # Few numbers, rounded to 16 bits: they may stay as they were at first, or return.
            stays = layer < frozen or place <= still or random.random() < 0.01
            norm = f"{run} {layer} norm at {0 if stays else step}"
            tensors[f"layers.{layer}.norm"] = "F16", "64", norm
        # From where it begins a matrix turns towards another one, by a tenth in the first 512 steps.
        angle = math.pi / 2 * min(1.0, (step / TURNING_STEPS) ** 0.5)
        sample = math.cos(angle) * begin + math.sin(angle) * end
        published_steps[step] = Step(tensors, float(loss), sample=tuple(sample.tolist()))
    last = published_steps[steps[-1]]
    main = replace(last, writing="again" if random.random() < 0.2 else "")
    has_last_step = bool(random.random() < 0.7)
    return Curve(
        published_steps,
        main if random.random() < 0.8 or not has_last_step else None,
        shards,
        frozen,
        vocabulary,
        steps[-1] if has_last_step else None,
    )


def _draw_steps(length: int, random: np.random.Generator) -> list[int]:
    """Draw steps, evenly spaced or by a power, as publishers save them; the first may be 0."""
    last = int(random.integers(10 * length, 200_000))
    places = np.linspace(0, 1, length) ** random.choice([1.0, 2.0, 4.0])
    steps = sorted({round(float(place) * last) for place in places} | {0})
    first = int(random.integers(0, 2))
    return steps[first:] if len(steps) - first >= SHORTEST else list(range(SHORTEST))


def _draw_losses(steps: list[int], guessing: float, random: np.random.Generator) -> np.ndarray:
    """Draw a power law with ripples, and sometimes a slow or high start, an overshoot and spikes."""
    time = np.asarray(steps, float)
    start, end = guessing + random.uniform(-0.1, 0.3), random.uniform(1.8, 3.5)
    begins = time[-1] * random.uniform(0.001, 0.1) if random.random() < 0.3 else 0.0
    pace = time[-1] * 10 ** random.uniform(-4, -1) + 1
    learned_share = 1 - (1 + np.maximum(time - begins, 0) / pace) ** -random.uniform(0.3, 0.9)
    losses = start - (start - end) * learned_share
    if random.random() < 0.2:  # large logits
        losses += random.uniform(1, 4) * np.exp(-time / (pace + 1))
    elif random.random() < 0.2:
        losses[1 : 1 + int(random.integers(1, 3))] += random.uniform(0.5, 2.5)
    losses += random.normal(0, random.uniform(0.005, 0.08), len(steps))
    spikes = np.zeros(len(steps))
    for place in range(len(steps) // 4, len(steps)):
        if random.random() < 0.03:
            recovery = np.exp(-np.arange(len(steps) - place) / random.uniform(0.2, 2))
            height = random.uniform(0.3, HIGHEST_SPIKE)
            spikes[place:] = np.maximum(spikes[place:], height * recovery)
    return losses + spikes


def _list_files(curve: Curve, step: Step) -> Listing:
    if step.problem:
        return Listing(problem=step.problem)
    names = list(step.tensors)
    size = len(names) // curve.shards
    files = {}
    for shard in range(curve.shards):
        part = names[shard * size : (shard + 1) * size if shard + 1 < curve.shards else None]
        content = repr([(name, step.tensors[name]) for name in part]) + step.writing
        digest = hashlib.sha256(content.encode()).hexdigest()
        name = f"model-{shard + 1:05}-of-{curve.shards:05}.safetensors"
        files[name] = WeightFile(bytes=1, hash=f"sha256:{digest}")
    return Listing(commit="c" * 40, files=files)


def _plant(curve: Curve, kind: str, random: np.random.Generator) -> None:
    """Make one mistake at steps without one, if there are such steps."""
    steps = list(curve.steps)
    free = [step for step in steps[:-1] if step not in curve.faults and step not in curve.sources]
    if len(free) < 3 or 5 * len(curve.faults) >= len(steps):
        return
    # Tensors of the first steps may not have moved yet; to mix those would be no mistake.
    wrong = int(random.choice(free[1:] if len(free) > 3 else free))
    other = int(random.choice([step for step in [*free[1:], steps[-1]] if step != wrong]))
    theirs = curve.steps[other]
    if kind == MISSING:
        curve.steps[wrong] = replace(
            curve.steps[wrong], problem=str(random.choice(["missing", "no weights"]))
        )
    elif kind in (BROKEN, NEIGHBOUR):
        _replace_weights(curve, kind, wrong, random)
        return
    elif kind == SWAPPED:
        _exchange(curve, wrong, other)
        return
    elif kind == OTHER_START:
        early = [step for step in steps if step <= EARLY]
        if (
            early[:1] != [0]
            or len(early) < 3
            or {*early[:3]} & (curve.faults.keys() | curve.sources)
        ):
            return
        sample = tuple(random.normal(size=SAMPLE_SIZE).tolist())
        wrong = 0
        curve.steps[0] = replace(_rename_tensors(curve.steps[0], "other start"), sample=sample)
    elif kind == OF_THE_END:
        if (
            curve.main is None
            or curve.last_step is None
            or steps[-1] in curve.sources | set(curve.faults)
        ):
            return
        del curve.steps[steps[-1]]
        curve.steps[wrong] = curve.main
    elif kind == UNCONFIRMED:
        curve.reports.append(Mistake(steps=[wrong], source="there", same_as=steps[-1] + 1000))
        curve.steps[wrong] = _rename_tensors(curve.steps[wrong], "unknown")
    elif kind in (MIXED, MIXED_REWRITTEN):
        if not _mix(curve, kind, wrong, other):
            return
        curve.sources.add(other)
    else:
        curve.sources.add(other)
        curve.steps[wrong] = {
            COPY: lambda: theirs,
            REWRITTEN: lambda: replace(theirs, writing="anew"),
            CONFIRMED: lambda: replace(theirs, writing="anew"),
            WIDENED: lambda: replace(_rename_tensors(theirs, "wide", "F32"), loss=theirs.loss),
            NARROWED: lambda: replace(
                _rename_tensors(theirs, "narrow", "BF16"), loss=theirs.loss + 1e-4
            ),
        }[kind]()
        if kind == CONFIRMED:
            curve.reports.append(Mistake(steps=[wrong], source="there", same_as=other))
    curve.faults[wrong] = kind


def _rename_tensors(step: Step, label: str, dtype: str = "F16") -> Step:
    """Return the step with other digests of all tensors."""
    tensors = {
        n: (dtype, shape, f"{label} {digest}") for n, (_, shape, digest) in step.tensors.items()
    }
    return replace(step, tensors=tensors)


def _mix(curve: Curve, kind: str, wrong: int, other: int) -> bool:
    """Put some trained tensors of another step into a step."""
    if kind == MIXED and curve.shards == 1:
        return False
    mine, theirs = curve.steps[wrong].tensors, curve.steps[other].tensors
    names = list(mine)
    size = len(names) // (curve.shards if kind == MIXED else 3)
    names_of_other = names[-size:]  # the last ones: never frozen
    tensors = {name: theirs[name] if name in names_of_other else mine[name] for name in names}
    if tensors == mine:
        return False
    curve.mixed_tensors[wrong] = names_of_other
    curve.steps[wrong] = replace(
        curve.steps[wrong], tensors=tensors, writing="" if kind == MIXED else f"anew {wrong}"
    )
    return True


def _seems_frozen(curve: Curve, wrong: int, names: list[str]) -> bool:
    """Return whether all later steps hold the mixed tensors, too, as if these moved no more."""
    mine = curve.steps[wrong].tensors
    later = [
        later_step.tensors
        for step, later_step in curve.steps.items()
        if step > wrong and step not in curve.faults
    ]
    seems_so = all(
        tensors[name] == mine[name] for tensors in later for name in names if "norm" not in name
    )
    return 1 + len(later) >= IN_A_ROW and seems_so


def _replace_weights(curve: Curve, kind: str, wrong: int, random: np.random.Generator) -> None:
    """Replace weights by weights that are not in the curve: destroyed ones, or those of a step close by."""
    earlier_losses = [
        earlier_step.loss
        for step, earlier_step in curve.steps.items()
        if step < wrong and step not in curve.faults
    ]
    loss = curve.steps[wrong].loss + random.normal(0, 0.02)
    if kind == BROKEN:
        loss = math.log(curve.vocabulary) + random.uniform(-0.5, 3)
        if random.random() < 0.2:
            loss = math.inf
        lowest = min(earlier_losses, default=math.inf)
        if loss - lowest < FAR + 1:
            kind = BROKEN_LITTLE
    strange = _rename_tensors(curve.steps[wrong], "other")
    if kind == NEIGHBOUR:  # frozen layers are the same there
        tensors = list(curve.steps[wrong].tensors.items())
        strange = replace(strange, tensors={**strange.tensors, **dict(tensors[: 2 * curve.frozen])})
    curve.steps[wrong] = replace(strange, loss=loss)
    curve.faults[wrong] = kind


def _exchange(curve: Curve, wrong: int, other: int) -> None:
    steps = list(curve.steps)
    early, late = sorted((wrong, other))
    if late == steps[-1] or other in curve.faults:
        return
    places = steps.index(early), steps.index(late)
    high, low = curve.steps[early].loss, curve.steps[late].loss
    stand_out = (
        curve.steps[steps[places[0] + 1]].loss - low,
        high - curve.steps[steps[places[1] - 1]].loss,
    )
    told_apart = places[1] - places[0] > 3 and min(stand_out) >= 1 and high - low >= 1.5
    kind = SWAPPED if told_apart else SWAPPED_NEAR
    curve.steps[early], curve.steps[late] = curve.steps[late], curve.steps[early]
    curve.faults[early] = curve.faults[late] = kind


def main(curves: int = 1000) -> None:
    """Print counts of found, suspicious, missed and falsely accused steps in clean curves and those with mistakes."""
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in SHOWN_BY}
    for is_clean in (False, True):
        total: Counter[str] = Counter()
        for seed in range(curves):
            curve = simulate_curve(seed, is_clean=is_clean)
            verdicts = judge_curve(curve)
            alarms = list_alarms(curve, verdicts)
            suspicious_steps = [
                s
                for s, verdict in verdicts.items()
                if is_doubted(verdict) and s not in curve.faults
            ]
            total += Counter(checkpoints=len(verdicts), false=len(alarms), with_false=bool(alarms))
            total += Counter(
                suspicious=len(suspicious_steps), with_suspicious=bool(suspicious_steps)
            )
            for step, kind in curve.faults.items():
                if step in verdicts:
                    verdict = verdicts[step]
                    outcome = (
                        "missed"
                        if verdict in GOOD
                        else "suspicious"
                        if is_doubted(verdict)
                        else "found"
                    )
                    counts[kind][outcome] += 1
        print("clean" if is_clean else "with mistakes", dict(total))
    for kind, kind_counts in counts.items():
        numbers = (
            kind_counts.total(),
            kind_counts["found"],
            kind_counts["suspicious"],
            kind_counts["missed"],
        )
        print(f"| {kind} | {SHOWN_BY[kind]} | {' | '.join(map(str, numbers))} |")


if __name__ == "__main__":
    main()
