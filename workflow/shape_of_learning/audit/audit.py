"""The audit of a curve: a verdict on each revision, by hashes, and by tensors and losses where these are asked for."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from huggingface_hub import cached_assets_path, snapshot_download

from shape_of_learning.audit.listings import NO_COMMIT, PAUSES, Curve
from shape_of_learning.checkpoints import hub
from shape_of_learning.checkpoints.atlas import (
    NOT_YET_MOVED,
    OK,
    SAME_AS,
    SAME_AS_MAIN,
    UNKNOWN,
    AtlasRow,
    known_of,
)
from shape_of_learning.checkpoints.lock import MAIN, MISSING, MIXED_SHARDS, Checkpoint, Listing
from shape_of_learning.checkpoints.measured import (
    UNDEFINED,
    CrossEntropy,
    Measured,
    read_loss,
    read_tensor_digests,
    write_loss,
    write_tensor_digests,
)
from shape_of_learning.checkpoints.measured_verdicts import judged_by_measurements, same_weights
from shape_of_learning.checkpoints.shapes import CONFIGURATION, tokenizer_paths
from shape_of_learning.checkpoints.verdicts import (
    JudgedCheckpoint,
    judged_curve,
    shards,
    signatures,
)

Progress = Callable[[str, int, int], None]
# Of a folder with a checkpoint in it, the loss on a text.
Loss = Callable[[Path], CrossEntropy]
KINDS = (MIXED_SHARDS, "mixed tensors", "broken", "suspicious", "not of this training", MISSING)
MOST_NAMED = 4
SHOWN, SHOWN_HASH = 10, 16  # characters of a commit and of a hash


def audited(
    curve: Curve, progress: Progress, *, tensors: bool = False, loss: Loss | None = None
) -> list[AtlasRow]:
    """Judge each checkpoint of a curve.

    Parameters
    ----------
    curve : Curve
    progress : callable
        Is told what is done, how much of it, and how much there is.
    tensors : bool
        Whether what hashes cannot tell is downloaded and compared by tensors.
    loss : callable, optional
        Of a folder, its loss; if it is given, they are compared by loss, too.

    Returns
    -------
    list of AtlasRow
        By step; a verdict of ``unknown`` where nothing could be learned.

    Raises
    ------
    InputError
        If weights cannot be downloaded or read.
    """
    steps = [each.step for each in curve.checkpoints if each.step is not None]
    last = curve.last_step or max(steps, default=None)
    known = [each for each in curve.checkpoints if each.name not in curve.unknown]
    judged = {each.name: each for each in judged_curve(known, curve.listed, curve.mains, (), last)}
    reasons = {name: _by_hashes(name, curve, judged) for name in judged}
    if tensors or loss:
        measured, mains = _measured(curve, judged, progress, loss)
        before = {name: each.verdict for name, each in judged.items()}
        after = judged_by_measurements([*judged.values()], measured)
        judged = {each.name: each for each in after} | _of_main(after, measured, mains)
        kinds = "tensors and losses" if loss else "tensors"
        for name, each in judged.items():
            if each.verdict != before[name]:
                reasons[name] = f"{each.verdict}, by {kinds}"
    day = datetime.now(UTC).date()
    rows = []
    for each in curve.checkpoints:
        listing = curve.listed.get(each.name)
        commit = listing.commit if listing and listing.commit != NO_COMMIT else ""
        verdict, reason = UNKNOWN, curve.unknown.get(each.name, "")
        if each.name in judged:
            verdict, reason = _in_words(judged[each.name], judged.values()), reasons[each.name]
        row = AtlasRow(
            repository=each.repository,
            revision=f"{each.revision}/{each.subfolder}" if each.subfolder else each.revision,
            step=each.step,
            tokens=each.tokens,
            commit=commit,
            verdict=verdict,
            reason=reason,
            source=curve.source,
            checked=day,
        )
        rows.append(_with_reports(row, known_of(each.repository, each.revision)))
    return rows


def _in_words(judged: JudgedCheckpoint, curve: Collection[JudgedCheckpoint]) -> str:
    """A verdict as the atlas says it."""
    verdict = judged.verdict
    if verdict == "same weights as main":
        return SAME_AS_MAIN
    if verdict.startswith("same weights as step "):
        return SAME_AS + verdict.split()[-1]
    if verdict.startswith("same weights in "):  # of which nothing tells the owner
        others = [each.step for each in curve if each.verdict == verdict and each is not judged]
        return f"{SAME_AS}{others[0]}"
    if verdict == "no weights":
        return MISSING
    return next((kind for kind in KINDS if verdict.startswith(kind)), verdict)


def notes_on(curve: Curve) -> list[str]:
    """What else a reader should know: whether main is the last step, and what was not compared."""
    notes = []
    last = curve.checkpoints[-1]
    main, own = curve.mains.get(last.repository), curve.listed.get(last.name)
    are_whole = main and own and not main.problem and not own.problem
    if main and own and are_whole and {*signatures(main)}.isdisjoint(signatures(own)):
        notes.append(
            f"`main` (commit {main.commit[:SHOWN]}) has other files than `{last.revision}` (commit "
            f"{own.commit[:SHOWN]}); whether they hold the same tensors was not compared."
        )
    if curve.others:
        named = ", ".join(f"`{each}`" for each in curve.others[:MOST_NAMED])
        more = f" and {len(curve.others) - MOST_NAMED} more" if curve.others[MOST_NAMED:] else ""
        notes.append(f"Names that are no steps were not compared: {named}{more}.")
    return notes


def _by_hashes(name: str, curve: Curve, judged: Mapping[str, JudgedCheckpoint]) -> str:
    """What a verdict on files rests on."""
    verdict = judged[name].verdict
    if verdict == OK:
        copied = f"same weights as step {judged[name].step}"
        is_copied = any(each.verdict == copied for each in judged.values())
        return "other names hold its files, too" if is_copied else "no other step has its files"
    if verdict == NOT_YET_MOVED:
        return "the files of step 0; a first update at learning rate 0 moves nothing"
    if verdict == MISSING:
        return "there is no such revision"
    if verdict.startswith(MISSING) or verdict == "no weights":
        return verdict.removeprefix(f"{MISSING}: ")
    if verdict != MIXED_SHARDS:
        own = curve.listed[name]
        file, *others = own.files.items()
        more = f", and {len(others)} more files likewise" if others else ""
        said = f"{file[0]} has the SHA-256 {file[1].hash.removeprefix('sha256:')[:SHOWN_HASH]}... in both{more}"
        which = verdict.removeprefix("same weights in ")
        return f"{said}; {which}" if which != verdict else said
    listings = curve.listed | {f"main of {name}": each for name, each in curve.mains.items()}
    holders = defaultdict(list)
    for other, listing in listings.items():
        for shard, digest in shards(listing).items():
            if other != name:
                holders[shard, digest].append(other)
    said = [
        f"{shard} is also that of {_listed(holders[shard, digest])}"
        for shard, digest in shards(curve.listed[name]).items()
        if (shard, digest) in holders
    ]
    return "; ".join(said) or "its shards are not of one step"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _with_reports(row: AtlasRow, known: AtlasRow | None) -> AtlasRow:
    """Add what was reported: it names a thread, and says what hashes cannot."""
    reports = known.source.split() if known and known.source.startswith("http") else []
    if not known or not reports:
        return row
    said = {"source": " ".join([row.source, *reports])}
    if row.verdict in (OK, UNKNOWN) and known.is_fault:
        said |= {"verdict": known.verdict, "reason": known.reason}
        if row.verdict == OK and known.verdict.startswith("same as"):
            said |= {
                "verdict": UNKNOWN,
                "reason": f"reported to be the {known.verdict}; its files are others, so only --tensors tells",
            }
    return row.model_copy(update=said)


def _measured(
    curve: Curve, judged: Mapping[str, JudgedCheckpoint], progress: Progress, loss: Loss | None
) -> tuple[dict[str, Measured], list[Measured]]:
    """Tensors, and perhaps losses, of what hashes found nothing wrong with, and of the main branches."""
    good = [c for c in curve.checkpoints if c.name in judged and judged[c.name].is_good]
    mains = [Checkpoint(MAIN, MAIN, name) for name, of in curve.mains.items() if not of.problem]
    found = []
    for number, place in enumerate([*good, *mains]):
        is_main = number >= len(good)
        listing = curve.mains[place.repository] if is_main else curve.listed[place.name]
        found.append(_measure(place, listing, loss))
        progress("checkpoints", number + 1, len(good) + len(mains))
    names = [each.name for each in good]
    return dict(zip(names, found, strict=False)), found[len(good) :]


def _measure(place: Checkpoint, listing: Listing, loss: Loss | None) -> Measured:
    """Fetch a checkpoint, read its tensors, and remember what was found by its commit."""
    from shape_of_learning.checkpoints.tensors import tensor_digests

    if place.path:
        own = loss(Path(place.path)) if loss else UNDEFINED
        return Measured(own, tensor_digests(Path(place.path)))
    kept = cached_assets_path("shape-of-learning", "audit", place.repository.replace("/", "--"))
    name = "-".join(filter(None, [listing.commit, place.subfolder.replace("/", "--")]))
    of_tensors, of_loss = kept / f"{name}.tensors.csv", kept / f"{name}.loss.csv"
    if not of_tensors.exists() or (loss and not of_loss.exists()):
        where = f"`{place.repository}` at `{place.revision}`"
        files = hub.files_at(
            place.repository, place.revision, listing.commit, where=where, pauses=PAUSES
        )
        wanted = [
            path for path in files if hub.is_weight_file(path) or path.endswith(".index.json")
        ]
        wanted += [p for p in files if p.endswith(CONFIGURATION)] + tokenizer_paths(
            files, place.subfolder
        )
        with TemporaryDirectory() as temporary:
            bring = partial(
                snapshot_download,
                place.repository,
                revision=listing.commit,
                allow_patterns=wanted,
                local_dir=temporary,
            )
            hub.asked(bring, place.repository, place.revision, where=where, pauses=PAUSES)
            folder = Path(temporary, place.subfolder)
            write_tensor_digests(of_tensors, tensor_digests(folder))
            if loss:
                write_loss(of_loss, loss(folder))
    return Measured(read_loss(of_loss) if loss else UNDEFINED, read_tensor_digests(of_tensors))


def _of_main(
    judged: Sequence[JudgedCheckpoint], measured: Mapping[str, Measured], mains: Sequence[Measured]
) -> dict[str, JudgedCheckpoint]:
    """Checkpoints, but the last one, that hold the tensors of a main branch."""
    return {
        each.name: replace(each, verdict="same weights as main")
        for each in judged
        if each.verdict == OK and not each.is_last and each.name in measured
        if any(same_weights(measured[each.name], main) for main in mains)
    }
