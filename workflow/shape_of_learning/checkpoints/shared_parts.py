"""Who of a training holds the same weights, or shards and tensors that are not those of its step."""

import re
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from itertools import pairwise

from shape_of_learning.checkpoints.lock import Listing

# So many checkpoints at the end that share a part show that it moves no more; two may be a mistake.
STANDSTILL = 3


def signatures(listed: Listing) -> list[tuple[str, ...]]:
    """Tell what weights these are, once per format: revisions with one in common hold the same."""
    formats = (listed.files, listed.other_format)
    return [tuple(sorted(file.hash for file in files.values())) for files in formats if files]


def shards(listed: Listing) -> dict[str, str]:
    """Hashes of the shards in any format; their names are without the number of shards."""
    return {
        re.sub(r"-of-\d+", "", name): file.hash
        for files in (listed.files, listed.other_format)
        if len(files) > 1
        for name, file in files.items()
    }


def sharing(signatures: Mapping[str, Iterable[Hashable]]) -> list[list[str]]:
    """Find the names that hold the same weights: with a signature in common, or linked by others."""
    group_of: dict[str, list[str]] = {}
    holder: dict[Hashable, str] = {}
    for name, of_name in signatures.items():
        group_of[name] = [name]
        for signature in of_name:
            other = group_of[holder.setdefault(signature, name)]
            if other is not group_of[name]:
                merged = other + group_of[name]
                group_of.update(dict.fromkeys(merged, merged))
    return list({id(group): group for group in group_of.values() if len(group) > 1}.values())


def misplaced_parts(
    curve: Sequence[tuple[str, Mapping[str, str]]], ends: Collection[str]
) -> dict[str, set[str]]:
    """Find parts of the weights, shards or tensors, that are not those of their step.

    Parameters
    ----------
    curve : sequence of (str, mapping of str to str)
        Name of a checkpoint and the hash of each part, by training step.
    ends : collection of str
        Names of the last step of training and of the published model: their parts are theirs.

    Returns
    -------
    dict of str to set of str
        Name of a checkpoint -> parts that it should not hold.

    Notes
    -----
    A part that changes at fewer than half of the steps mostly stays: what differs between equal ones is
    wrong. Of any other a value is held by one step, by the first ones in a row, where it has not moved yet,
    or by three or more in a row at the end, where it moves no more. Who else shares a value should not,
    but for an end and those in a row before it.
    """
    values: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for name, parts in curve:
        for part, value in parts.items():
            values[part].append((name, value))
    found: dict[str, set[str]] = defaultdict(set)
    for part, held in values.items():
        changes = sum(a != b for (_, a), (_, b) in pairwise(held))
        if changes:
            mostly_stays = 2 * changes < len(held) - 1
            for place in _between_equals(held) if mostly_stays else _held_twice(held, ends):
                found[held[place][0]].add(part)
    return {name: parts for name, parts in found.items() if name not in ends}


def _between_equals(held: Sequence[tuple[str, str]]) -> set[int]:
    last = {value: place for place, (_, value) in enumerate(held)}
    found, reach = set(), (-1, "")  # the farthest place at which a value comes again
    for place, (_, value) in enumerate(held):
        if reach[0] > place and value != reach[1]:
            found.add(place)
        else:
            reach = max(reach, (last[value], value))
    return found


def _held_twice(held: Sequence[tuple[str, str]], ends: Collection[str]) -> set[int]:
    places: dict[str, list[int]] = defaultdict(list)
    for place, (_, value) in enumerate(held):
        places[value].append(place)
    found: set[int] = set()
    for value, shared in places.items():
        row = {p for i, p in enumerate(reversed(shared)) if p == shared[-1] - i}
        stands_still = value == held[-1][1] and len(row) >= STANDSTILL
        is_of_the_end = stands_still and any(held[place][0] in ends for place in row)
        if len(shared) > 1 and shared != list(range(len(shared))):
            right = row if is_of_the_end or (stands_still and row == set(shared)) else set()
            found |= set(shared) - right
    return found
