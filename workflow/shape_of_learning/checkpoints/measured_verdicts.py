"""Which checkpoints of a training are what their names say, by their tensors and losses.

Files of the same weights may differ; their tensors do not. And while a model trains its loss falls, but for a
slow start, ripples and spikes. A checkpoint far above those around it is broken, and one that is little above is
suspicious.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import astuple
from itertools import combinations
from pathlib import Path
from statistics import median_low

from shape_of_learning.checkpoints.verdicts import (
    NOT_YET_CONFIRMED,
    OK,
    JudgedCheckpoint,
    find_misplaced_parts,
    group_by_signature,
    judge_equals,
    set_verdicts,
)
from shape_of_learning.checkpoints.weight_evidence import (
    LOSS_COLUMNS,
    WeightEvidence,
    read_loss,
    read_tensor_digests,
)
from shape_of_learning.files import write_table

NOT_OF_THIS_TRAINING = "not of this training"
MIXED_TENSORS = "mixed tensors"
INFINITE = "broken: perplexity is infinite"
SUSPICIOUS = "suspicious: "
COLUMNS = ("model", "revision", "step", "tokens", *LOSS_COLUMNS, "verdict", "shown")
# Ours: the least share of the elements of all matrices that must be misplaced. Norms and biases are no
# evidence: rounded to 16 bits, their few numbers may stay as they were, or return.
LEAST_SHARE = 0.01
# Nats. Rounding to 16 bits, another batch size or another machine change a loss less than this.
DIFFERENT_LOSSES = 0.01
# Ours: steps in which no training loses its initial values,
# and distances of what has nothing, or much, in common.
EARLY, UNRELATED, RELATED = 512, 0.9, 0.5
# Ours: beyond spikes of 5 nats with their ripples, and far below the factors of 6,000 and more by which the
# published checkpoints that are known to be broken differ.
MARGIN = math.log(250)
# Nats; ours. Ripples and batches move a loss by a tenth of it, and an untrained model's lies that much below a
# guess at most, while the frequencies of tokens, which are learned first, are worth three.
UNLIKELY = 1.0
# Checkpoints on each side that one is compared with: the median of three bears one that is broken, too.
NEIGHBOURS = 3


def write_verdicts(
    path: Path,
    model: str,
    checkpoints: Sequence[JudgedCheckpoint],
    tables: Mapping[str, tuple[Path, Path]],
    *,
    policy: str,
    from_scratch: bool = True,
) -> None:
    """Judge the checkpoints of a model by what has been measured and write the table, one row each.

    Parameters
    ----------
    path : Path
        ``results/tables/verdicts/{model}.csv``.
    model : str
        Its name.
    checkpoints : sequence of JudgedCheckpoint
        All that the model's entry lists, by step.
    tables : mapping of str to (Path, Path)
        Name of a measured one -> the tables of its loss and of its tensors.
    policy : {"skip", "flag"}
        What figures do with a checkpoint that is not good: leave it out (``shown`` is ``no``), or draw it
        hollow if it has been measured. Suspicious ones are hollow in any case.
    from_scratch : bool
        As of :func:`judge_measurements`.

    Raises
    ------
    InputError
        If a table cannot be read.
    """
    measured = {
        name: WeightEvidence(read_loss(loss), read_tensor_digests(tensors))
        for name, (loss, tensors) in tables.items()
    }
    rows = []
    for each in judge_measurements(checkpoints, measured, from_scratch=from_scratch):
        own = measured.get(each.name)
        is_drawn = policy == "flag" or each.verdict.startswith(SUSPICIOUS)
        otherwise = "hollow" if own and is_drawn else "no"
        loss = astuple(own.cross_entropy) if own else ("", "", "")
        shown = "yes" if each.is_good else otherwise
        rows.append([model, each.name, each.step, each.tokens, *loss, each.verdict, shown])
    write_table(path, COLUMNS, rows)


def judge_measurements(
    checkpoints: Sequence[JudgedCheckpoint],
    measured: Mapping[str, WeightEvidence],
    *,
    from_scratch: bool = True,
) -> list[JudgedCheckpoint]:
    """Judge checkpoints of one training by their tensors, then those that are still ok by their losses.

    Parameters
    ----------
    checkpoints : sequence of JudgedCheckpoint
        By step, with the verdicts on their files.
    measured : mapping of str to Measured
        By name; those that have not been measured keep their verdicts.
    from_scratch : bool
        Whether step 0 is untrained, as it is not where a fine-tuning begins.

    Notes
    -----
    An infinite loss comes first: such weights are broken, whosesoever they are, and condemn no other. Tensors
    of equal names, types and shapes decide; without them losses that are equal to the last bit do, so that
    weights in a wider type are found. A report that was not yet confirmed is replaced by what these say.
    """
    judged = {checkpoint.name: checkpoint for checkpoint in checkpoints}
    infinite = {name for name, each in measured.items() if math.isinf(each.cross_entropy.loss)}
    destroyed = [name for name in infinite if not judged[name].is_condemned]
    judged = set_verdicts(judged, dict.fromkeys(destroyed, INFINITE))
    known = [name for name in judged if name in measured and name not in infinite]
    links: dict[str, list[Hashable]] = {name: [name] for name in known}
    for a, b in combinations(known, 2):
        if have_same_weights(measured[a], measured[b]):
            links[b].append(a)
    for group in group_by_signature(links):
        found = judge_equals([judged[name] for name in group], known)
        judged = set_verdicts(judged, found)
    by_step = {judged[name].step: name for name in known}
    for name in known:
        other = by_step.get(judged[name].same_as)
        doubted = judged[name].verdict.endswith(NOT_YET_CONFIRMED)
        if doubted and other and have_same_weights(measured[name], measured[other]) is False:
            judged = set_verdicts(judged, {name: OK})
    good = [judged[name] for name in known if judged[name].verdict == OK]
    found = dict.fromkeys(_find_mixed_checkpoints(good, measured), MIXED_TENSORS)
    found |= dict.fromkeys(_find_strange_start(good, measured), NOT_OF_THIS_TRAINING)
    found |= find_broken_losses([each for each in good if each.name not in found], measured)
    sound = [each for each in good if each.name not in found]
    found |= find_unlikely_losses(sound, measured, from_scratch=from_scratch)
    return list(set_verdicts(judged, found).values())


def have_same_weights(a: WeightEvidence, b: WeightEvidence) -> bool | None:
    """Whether two checkpoints hold the same weights; None if nothing tells.

    Tensors are compared by name, if most of those of the smaller one are also in the other: some formats
    leave out what can be computed, or write tied tensors twice.
    """
    of_a, of_b = a.tensors.of, b.tensors.of
    common = of_a.keys() & of_b.keys()
    if common and 2 * len(common) >= min(len(of_a), len(of_b)):
        differing = [name for name in common if of_a[name] != of_b[name]]
        if not differing:
            return True
        if any(of_a[name][:2] == of_b[name][:2] for name in differing):
            return False
    mine, other = a.cross_entropy, b.cross_entropy
    apart = abs(mine.loss - other.loss)  # NaN where one of them is, or both are infinite
    if apart == 0 and mine.predicted_tokens == other.predicted_tokens:
        return True
    return False if DIFFERENT_LOSSES < apart < math.inf else None


def distance(a: Sequence[float], b: Sequence[float]) -> float:
    r"""Relative distance :math:`|a - b| / \sqrt{|a|^2 + |b|^2}`: 0 of equals, near 1 of what is unrelated."""
    squares = math.fsum(x * x for x in a) + math.fsum(y * y for y in b)
    apart = math.fsum((x - y) ** 2 for x, y in zip(a, b, strict=True))
    return math.sqrt(apart / squares) if squares else 0.0


def find_broken_losses(
    checkpoints: Sequence[JudgedCheckpoint], measured: Mapping[str, WeightEvidence]
) -> dict[str, str]:
    """Find the checkpoints of one training, given by step, whose loss cannot be right.

    Returns
    -------
    dict of str to str
        Name -> verdict, for the broken ones only.

    Notes
    -----
    A checkpoint is broken if its loss is more than ``ln(250)`` above the median of the three before it and of
    the three after it. Before the first a model guesses, with a loss of ``ln(vocabulary)``.

    Not found are wrong weights whose loss is near that of their neighbours or below it, such as those of a
    neighbour, or of a later step under an early name. A training that diverged for good, or three broken ones
    in a row, cannot be told from a sound one.
    """
    known = {checkpoint.name: measured[checkpoint.name].cross_entropy for checkpoint in checkpoints}
    known = {name: each for name, each in known.items() if not math.isnan(each.loss)}
    values = [each.loss for each in known.values()]
    found: dict[str, str] = {}
    for place, (name, each) in enumerate(known.items()):
        before, after = values[:place][-NEIGHBOURS:], values[place + 1 :][:NEIGHBOURS]
        if place == 0 and each.vocabulary:
            before = [math.log(each.vocabulary)]
        sides = [median_low(side) for side in (before, after) if side]
        apart = min((each.loss - side for side in sides), default=0.0)
        if apart > MARGIN:
            found[name] = f"broken: perplexity {_ratio(apart)} times that of the other steps"
    return found


def find_unlikely_losses(
    checkpoints: Sequence[JudgedCheckpoint],
    measured: Mapping[str, WeightEvidence],
    *,
    from_scratch: bool = True,
) -> dict[str, str]:
    """Find the checkpoints of one training, given by step, whose loss is possible, but unlikely.

    Returns
    -------
    dict of str to str
        Name -> verdict: a loss a nat or more above that of the checkpoint before and of the one after, as in a
        spike of a single checkpoint; and one a nat or more below a guess, ``ln(vocabulary)``, at step 0.
    """
    known = [(checkpoint, measured[checkpoint.name].cross_entropy) for checkpoint in checkpoints]
    known = [(each, own) for each, own in known if not math.isnan(own.loss)]
    found: dict[str, str] = {}
    for each, own in known[:1]:
        guess = math.log(own.vocabulary or 1)
        if from_scratch and each.step == 0 and guess - own.loss >= UNLIKELY:
            found[each.name] = f"{SUSPICIOUS}loss {own.loss:.1f}, where a guess has {guess:.1f}"
            known = known[1:]  # what comes after it is no spike
    for (_, before), (each, own), (_, after) in zip(known, known[1:], known[2:], strict=False):
        apart = own.loss - max(before.loss, after.loss)
        if apart >= UNLIKELY:
            found[each.name] = f"{SUSPICIOUS}loss {apart:.1f} above those of the steps beside it"
    return found


def _ratio(difference: float) -> str:
    """Exponential of a difference of losses, to two digits, as people write it."""
    ratio = math.exp(min(difference, 700.0))
    if ratio >= 1e9:
        return f"{ratio:.0e}".replace("e+0", "e").replace("e+", "e")
    beyond = 1 - math.floor(math.log10(ratio))
    return f"{round(ratio, beyond):,.{max(0, beyond)}f}"


def _find_strange_start(
    checkpoints: Sequence[JudgedCheckpoint], measured: Mapping[str, WeightEvidence]
) -> list[str]:
    """Step 0, if the next steps have much in common, but nothing with it (EleutherAI/pythia#203)."""
    early = [
        checkpoint
        for checkpoint in checkpoints
        if checkpoint.step is not None and checkpoint.step <= EARLY
    ][:3]
    samples = [measured[each.name].tensors.sample for each in early]
    if len(early) < 3 or early[0].step != 0 or not samples[0] or len({*map(len, samples)}) > 1:
        return []
    first, second, third = samples
    is_strange = distance(first, second) > UNRELATED and distance(second, third) < RELATED
    return [early[0].name] if is_strange else []


def _find_mixed_checkpoints(
    checkpoints: Sequence[JudgedCheckpoint], measured: Mapping[str, WeightEvidence]
) -> list[str]:
    """Names of checkpoints with matrices that are not those of their step."""
    parts = {}
    for checkpoint in checkpoints:
        tensors = measured[checkpoint.name].tensors.of.items()
        # Converted to another type, a matrix is another part: its bytes cannot be compared.
        parts[checkpoint.name] = {
            (n, dtype, shape): d for n, (dtype, shape, d) in tensors if "x" in shape
        }
    misplaced = find_misplaced_parts(
        parts, {checkpoint.name for checkpoint in checkpoints if checkpoint.is_last}
    )
    least = {name: LEAST_SHARE * _count_elements(of) for name, of in parts.items()}
    return [name for name, found in misplaced.items() if _count_elements(found) >= least[name]]


def _count_elements(parts: Iterable[tuple[str, str, str]]) -> int:
    return sum(math.prod(map(int, shape.split("x"))) for _, _, shape in parts)
