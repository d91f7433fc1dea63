"""Steps of one training that hold the same weights, or some of the same: whose they are.

Training changes weights. So of steps with the same weights at most one is what its name says, and a part that
has changed and is as it was before, or that another step holds too, was put where it does not belong. Both
hold for files as they are listed and for tensors as they are read.
"""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from itertools import pairwise

from shape_of_learning.checkpoints.judged_checkpoint import JudgedCheckpoint

# So many checkpoints at the end that share a part show that it moves no more; two may be a mistake.
STANDSTILL = 3
MOST_NAMED = 4  # steps of one verdict; of more, their number and the ends are said


def sharing(signatures: Mapping[str, Iterable[Hashable]]) -> list[list[str]]:
    """Find the names that hold the same weights.

    Parameters
    ----------
    signatures : mapping of str to iterable
        What tells the weights of each; names with any signature in common hold the same, and so do those that
        are linked through others.

    Returns
    -------
    list of list of str
        Sets of two and more, names in the order given.
    """
    group_of: dict[str, list[str]] = {}
    holder: dict[Hashable, str] = {}
    for name, of_name in signatures.items():
        group_of[name] = [name]
        for signature in of_name:
            other = group_of[holder.setdefault(signature, name)]
            if other is not group_of[name]:
                merged = other + group_of[name]
                group_of.update(dict.fromkeys(merged, merged))
    groups = {id(group): group for group in group_of.values() if len(group) > 1}
    return list(groups.values())


def owner(members: Sequence[JudgedCheckpoint], *, with_main: bool = False) -> str | None:
    """Name the one of several checkpoints with the same weights whose weights they are.

    Parameters
    ----------
    members : sequence of JudgedCheckpoint
    with_main : bool
        Whether the published model, the end of training, has these weights too.

    Returns
    -------
    str or None
        The last step of training; where a report says that this one, or any if main is not among them, holds
        the weights of another member, that other one. None if nothing tells.
    """
    last = next((each for each in members if each.is_last and not each.is_condemned), None)
    steps = {each.step: each for each in members}
    if last is not None and last.same_as not in steps:
        return last.name
    named = {
        steps[each.same_as].name
        for each in members
        if each.same_as in steps
        and steps[each.same_as].same_as is None
        and not steps[each.same_as].is_condemned
    }
    return named.pop() if len(named) == 1 and (last is not None or not with_main) else None


def verdicts_of_equals(
    members: Sequence[JudgedCheckpoint], *, with_main: bool = False
) -> dict[str, str]:
    """Judge several checkpoints with the same weights: the owner is what it was, all others are not ok.

    Parameters
    ----------
    members, with_main
        As in :func:`owner`.
    """
    known_bad = [each for each in members if each.is_condemned]
    right = owner(members, with_main=with_main)
    if right is not None:
        step = next(each.step for each in members if each.name == right)
        verdict = f"same weights as step {step}"
    elif with_main:
        verdict = "same weights as main"
    elif known_bad:
        verdict = f"same weights as step {known_bad[0].step}"
    else:
        verdict = f"same weights in {_steps(members)}; nothing tells whose they are"
    return {
        each.name: each.verdict if each.is_condemned or each.name == right else verdict
        for each in members
    }


def misplaced_parts(
    curve: Sequence[tuple[str, Mapping[str, str]]], ends: Collection[str]
) -> dict[str, set[str]]:
    """Find parts of the weights, shards or tensors, that are not those of their step.

    Parameters
    ----------
    curve : sequence of (str, mapping of str to str)
        Name of a checkpoint and the hash of each part, by training step, without parts that are not known.
    ends : collection of str
        Names of the last step of training and of the published model: their parts are theirs.

    Returns
    -------
    dict of str to set of str
        Name of a checkpoint -> parts that it should not hold.

    Notes
    -----
    A part that is the same in all steps is frozen and condemns nobody; so is one of which only two are known.
    Of a part that changes at half or more of the known steps, a value is held by one step only, by the
    first ones in a row, where it has not moved yet, or by three or more in a row at the end, where it
    moves no more. Where others share a value it belongs to the end among them, and to those in a row
    before it; if there is none, nothing tells whose it is, and all of them are condemned, and with the
    first or last steps also fewer ones that lie between. A part that mostly stays may change and stay
    again, but never return: the steps that differ between equal ones are wrong.
    """
    values: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for name, parts in curve:
        for part, value in parts.items():
            values[part].append((name, value))
    found: dict[str, set[str]] = defaultdict(set)
    for part, held in values.items():
        changes = sum(a != b for (_, a), (_, b) in pairwise(held))
        if not changes:
            continue
        is_trained = 2 * changes >= len(held) - 1
        for name in (_held_twice if is_trained else _between_equals)(held, ends):
            found[name].add(part)
    return dict(found)


def _held_twice(held: Sequence[tuple[str, str]], ends: Collection[str]) -> set[str]:
    places: dict[str, list[int]] = defaultdict(list)
    for place, (_, value) in enumerate(held):
        places[value].append(place)
    found: set[int] = set()
    for value, shared in places.items():
        row = _last_in_a_row(shared) if value == held[-1][1] else set()
        row = row if len(row) >= STANDSTILL else set()
        if len(shared) == 1 or shared == list(range(len(shared))) or row == set(shared):
            continue
        if not row and len(shared) > STANDSTILL and 2 * len(shared) > len(held):
            continue  # it mostly stays
        is_of_the_end = any(held[place][0] in ends for place in row)
        found |= set(shared) - row if is_of_the_end else set(shared)
    # Where the first value comes again before the end, it may not have moved yet, and what is between may be
    # the stranger; and so before the last value, if several in a row hold that.
    begins, stays = places[held[0][1]], places[held[-1][1]]
    for shared in (begins, stays) if len(_last_in_a_row(stays)) > 1 else (begins,):
        between = set(range(shared[0], shared[-1])).difference(shared)
        is_of_the_end = any(held[place][0] in ends for place in shared)
        if len(between) < len(shared) and not is_of_the_end:
            found |= between
    return {held[place][0] for place in found} - set(ends)


def _last_in_a_row(places: Sequence[int]) -> set[int]:
    return {p for i, p in enumerate(places) if places[-1] - p == len(places) - 1 - i}


def _between_equals(held: Sequence[tuple[str, str]], ends: Collection[str]) -> set[str]:
    last = {value: place for place, (_, value) in enumerate(held)}
    found, reach = set(), (-1, "")  # the farthest place at which a value comes again
    for place, (name, value) in enumerate(held):
        if reach[0] > place and value != reach[1] and name not in ends:
            found.add(name)
        else:
            reach = max(reach, (last[value], value))
    return found


def _steps(members: Sequence[JudgedCheckpoint]) -> str:
    steps = sorted(each.step or 0 for each in members)
    if len(steps) > MOST_NAMED:
        return f"{len(steps)} steps from {steps[0]} to {steps[-1]}"
    return f"steps {', '.join(map(str, steps[:-1]))} and {steps[-1]}"
