"""The audit of a curve: a verdict on each revision, by hashes, and by tensors and losses where these are asked for."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from huggingface_hub import cached_assets_path

from shape_of_learning.audit.listings import NO_COMMIT, PAUSES, ListedSeries
from shape_of_learning.checkpoints import hub
from shape_of_learning.checkpoints.atlas import (
    NOT_YET_MOVED,
    OK,
    SAME_AS,
    SAME_AS_MAIN,
    UNKNOWN,
    AtlasRow,
    find_row,
    list_reported_mistakes,
)
from shape_of_learning.checkpoints.hub_snapshot import download_as_listed
from shape_of_learning.checkpoints.listed_files import is_weight_file
from shape_of_learning.checkpoints.lock import (
    MAIN,
    MISSING,
    MIXED_SHARDS,
    Checkpoint,
    Listing,
    Place,
)
from shape_of_learning.checkpoints.measured_verdicts import have_same_weights, judge_measurements
from shape_of_learning.checkpoints.shapes import CONFIGURATION, list_tokenizer_paths
from shape_of_learning.checkpoints.verdicts import (
    NOT_YET_CONFIRMED,
    JudgedCheckpoint,
    hash_shards,
    judge_listing,
    list_signatures,
)
from shape_of_learning.checkpoints.weight_evidence import (
    UNDEFINED,
    CrossEntropy,
    WeightEvidence,
    read_loss,
    read_tensor_digests,
    write_loss,
    write_tensor_digests,
)
from shape_of_learning.errors import InputError

Progress = Callable[[str, int, int], None]
# Of a folder with a checkpoint in it, the loss on a text.
Loss = Callable[[Path], CrossEntropy]
KINDS = (MIXED_SHARDS, "mixed tensors", "broken", "suspicious", "not of this training", MISSING)
SEEN_BY_HASHES = (MIXED_SHARDS, MISSING)
SAME_WEIGHTS_AS_MAIN, KNOWN_BAD = "same weights as main", "known bad: "
MOST_NAMED = 4
SHOWN, SHOWN_HASH = 10, 16  # characters of a commit and of a hash


def audit_curve(
    curve: ListedSeries, progress: Progress, *, tensors: bool = False, loss: Loss | None = None
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
    """
    repositories = {checkpoint.repository for checkpoint in curve.checkpoints}
    reports = [*curve.known_bad, *list_reported_mistakes(repositories, curve.last_step)]
    known = [checkpoint for checkpoint in curve.checkpoints if checkpoint.name not in curve.unknown]
    # Of reports those count here that say whose weights are whose; hashes speak of the others by themselves.
    named = [
        report for report in reports if report.same_as is not None or report in curve.known_bad
    ]
    of_files = judge_listing(known, curve.listed, curve.mains, named, curve.last_step)
    judged = {checkpoint.name: checkpoint for checkpoint in of_files}
    reasons = {name: _describe_basis(name, curve, judged) for name in judged}
    measured: dict[str, WeightEvidence] = {}
    if tensors or loss:
        measured, mains = _measure_checkpoints(curve, judged, progress, loss)
        latest = curve.checkpoints[-1].name
        if latest in measured and any(have_same_weights(measured[latest], main) for main in mains):
            judged[latest] = replace(judged[latest], is_last=True)
        before = {name: each.verdict for name, each in judged.items()}
        after = judge_measurements([*judged.values()], measured)
        judged = {each.name: each for each in after} | _find_copies_of_main(
            after, measured, mains, latest
        )
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
        if each.name in judged and each.name not in curve.unknown:
            verdict, reason = (
                _format_verdict(judged[each.name], judged.values()),
                reasons[each.name],
            )
        row = AtlasRow(
            repository=each.repository,
            revision=f"{each.revision}/{each.subfolder}" if each.subfolder else each.revision,
            step=each.step,
            tokens=each.tokens,
            commit=commit,
            sha256=" ".join(_sha256(listing)),
            verdict=verdict,
            reason=reason,
            source=curve.source,
            checked=day,
        )
        is_measured = each.name in measured
        rows.append(_add_reports(row, find_row(each.repository, each.revision), is_measured))
    return rows


def _sha256(listing: Listing | None) -> list[str]:
    """Hashes of the files of weights, of those outside LFS none."""
    hashes = [file.hash for _, file in sorted(listing.files.items())] if listing else []
    is_whole = all(each.startswith("sha256:") for each in hashes)
    return [each.removeprefix("sha256:") for each in hashes] if is_whole else []


def _format_verdict(judged: JudgedCheckpoint, curve: Collection[JudgedCheckpoint]) -> str:
    """A verdict as the atlas says it."""
    verdict = judged.verdict
    if verdict == SAME_WEIGHTS_AS_MAIN:
        return SAME_AS_MAIN
    if verdict.startswith(KNOWN_BAD):  # what an entry or the atlas says, and nothing speaks against
        if verdict.endswith(NOT_YET_CONFIRMED):
            return UNKNOWN
        return "suspicious" if judged.same_as is None else f"{SAME_AS}{judged.same_as}"
    if verdict.startswith("same weights as step "):
        return SAME_AS + verdict.split()[-1]
    if verdict.startswith("same weights in "):  # of which nothing tells the owner
        others = [each.step for each in curve if each.verdict == verdict and each is not judged]
        return f"{SAME_AS}{others[0]}"
    if verdict == "no weights":
        return MISSING
    return next((kind for kind in KINDS if verdict.startswith(kind)), verdict)


def list_notes(curve: ListedSeries) -> list[str]:
    """What else a reader should know: whether main is the last step, and what was not compared."""
    notes = []
    last = curve.checkpoints[-1]
    main, own = curve.mains.get(last.repository), curve.listed.get(last.name)
    are_whole = main and own and not main.problem and not own.problem
    if main and own and are_whole and {*list_signatures(main)}.isdisjoint(list_signatures(own)):
        notes.append(
            f"`main` (commit {main.commit[:SHOWN]}) has other files than `{last.revision}` (commit "
            f"{own.commit[:SHOWN]}); whether they hold the same tensors was not compared."
        )
    if curve.others:
        named = ", ".join(f"`{each}`" for each in curve.others[:MOST_NAMED])
        more = f" and {len(curve.others) - MOST_NAMED} more" if curve.others[MOST_NAMED:] else ""
        notes.append(f"Names that are no steps were not compared: {named}{more}.")
    return notes


def _describe_basis(name: str, curve: ListedSeries, judged: Mapping[str, JudgedCheckpoint]) -> str:
    """What a verdict on files rests on."""
    verdict = judged[name].verdict
    if verdict == OK:
        copied = f"same weights as step {judged[name].step}"
        is_copied = any(each.verdict == copied for each in judged.values())
        return "other names hold its files, too" if is_copied else "no other step has its files"
    if verdict == NOT_YET_MOVED:
        return "the files of step 0; a first update at learning rate 0 moves nothing"
    if verdict.endswith(NOT_YET_CONFIRMED):
        said = verdict.removeprefix(KNOWN_BAD).removesuffix(NOT_YET_CONFIRMED)
        return f"reported: {said}; its files are others, so that only --tensors tells"
    if verdict.startswith(KNOWN_BAD):
        return f"reported: {verdict.removeprefix(KNOWN_BAD)}"
    if verdict == MISSING:
        return "there is no such revision"
    if verdict.startswith(MISSING) or verdict == "no weights":
        return verdict.removeprefix(f"{MISSING}: ")
    if verdict != MIXED_SHARDS:
        return _describe_common_file(curve.listed[name], verdict, curve, judged)
    listings = curve.listed | {f"main of {name}": each for name, each in curve.mains.items()}
    holders = defaultdict(list)
    for other, listing in listings.items():
        for shard, digest in hash_shards(listing).items():
            if other != name:
                holders[shard, digest].append(other)
    said = [
        f"{shard} is also that of {_list_names(holders[shard, digest])}"
        for shard, digest in hash_shards(curve.listed[name]).items()
        if (shard, digest) in holders
    ]
    return "; ".join(said) or "its shards are not of one step"


def _list_names(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _describe_common_file(
    own: Listing, verdict: str, curve: ListedSeries, judged: Mapping[str, JudgedCheckpoint]
) -> str:
    """Which file a revision has in common with the one whose weights it holds."""
    same = {f"same weights as step {each.step}": name for name, each in judged.items()}
    with_verdict = [name for name, each in judged.items() if each.verdict == verdict]
    others = [curve.listed[name] for name in ([same[verdict]] if verdict in same else with_verdict)]
    others = [*others, *curve.mains.values()] if verdict == SAME_WEIGHTS_AS_MAIN else others
    hashes = {
        f.hash
        for o in others
        if o is not own
        for f in (*o.files.values(), *o.other_format.values())
    }
    files = [(n, f) for n, f in (*own.files.items(), *own.other_format.items()) if f.hash in hashes]
    if not files:  # linked by a third revision, which has both formats
        return "another revision has its files and those of the other"
    more = f", and {len(files) - 1} more files likewise" if len(files) > 1 else ""
    digest = files[0][1].hash.partition(":")[2][:SHOWN_HASH]
    which = verdict.removeprefix("same weights in ")
    said = f"{files[0][0]} has the SHA-256 {digest}... in both{more}"
    return f"{said}; {which}" if which != verdict else said


def _add_reports(row: AtlasRow, known: AtlasRow | None, is_measured: bool) -> AtlasRow:
    """Add what was reported: it names a thread, and says what hashes cannot."""
    if known is None or not known.reports:
        return row
    said = {"source": " ".join([row.source, *known.reports])}
    if known.is_fault and row.verdict == OK and not is_measured:
        if known.verdict in SEEN_BY_HASHES:
            said["reason"] = (
                f"{row.reason}; reported as {known.verdict}, which its files do not show"
            )
        elif known.verdict.startswith("same as"):
            said["verdict"] = UNKNOWN
            said["reason"] = (
                f"reported: {known.verdict}; its files are others, so that only --tensors tells"
            )
        else:
            said |= {"verdict": known.verdict, "reason": f"reported: {known.reason}"}
    if known.is_fault and not row.commit and row.verdict == UNKNOWN:
        said |= {"verdict": known.verdict, "reason": f"reported: {known.reason}"}
    return row.model_copy(update=said)


def _measure_checkpoints(
    curve: ListedSeries,
    judged: Mapping[str, JudgedCheckpoint],
    progress: Progress,
    loss: Loss | None,
) -> tuple[dict[str, WeightEvidence], list[WeightEvidence]]:
    """Tensors, and perhaps losses, of what can be read, of equal files once; and of the main branches."""
    there = [c for c in curve.checkpoints if c.name in judged and not curve.listed[c.name].problem]
    mains = [Checkpoint(MAIN, MAIN, name) for name, of in curve.mains.items() if not of.problem]
    found: dict[str, WeightEvidence] = {}
    of_mains: list[WeightEvidence] = []
    by_files: dict[tuple[str, ...], WeightEvidence | None] = {}
    for number, place in enumerate([*there, *mains]):
        is_main = number >= len(there)
        listing = curve.mains[place.repository] if is_main else curve.listed[place.name]
        files = list_signatures(listing)[0]
        if files not in by_files:
            try:
                by_files[files] = _measure(place, listing, loss)
            except (InputError, OSError) as error:
                by_files[files] = None
                if not is_main:
                    curve.unknown[place.name] = f"it cannot be measured: {error}"
        own = by_files[files]
        if own is not None and is_main:
            of_mains.append(own)
        elif own is not None:
            found[place.name] = own
        progress("checkpoints", number + 1, len(there) + len(mains))
    return found, of_mains


def _measure(place: Checkpoint, listing: Listing, loss: Loss | None) -> WeightEvidence:
    """Fetch a checkpoint, read its tensors, and remember what was found by its commit."""
    from shape_of_learning.checkpoints.tensors import digest_tensors

    if place.path:
        own = loss(Path(place.path)) if loss else UNDEFINED
        return WeightEvidence(own, digest_tensors(Path(place.path)))
    kept = cached_assets_path("shape-of-learning", "audit", place.repository.replace("/", "--"))
    name = "-".join(filter(None, [listing.commit, place.subfolder.replace("/", "--")]))
    of_tensors, of_loss = kept / f"{name}.tensors.csv", kept / f"{name}.loss.csv"
    if not of_tensors.exists() or (loss and not of_loss.exists()):
        where = f"`{place.repository}` at `{place.revision}`"
        files = hub.list_files(
            place.repository, place.revision, listing.commit, where=where, pauses=PAUSES
        )
        wanted = [path for path in files if is_weight_file(path) or path.endswith(".index.json")]
        wanted += [p for p in files if p.endswith(CONFIGURATION)] + list_tokenizer_paths(
            files, place.subfolder
        )
        with TemporaryDirectory() as temporary:
            download_as_listed(
                Place(place.repository, place.revision),
                listing.commit,
                {path: files[path].hash for path in wanted},
                where=where,
                pauses=PAUSES,
                local_dir=temporary,
            )
            folder = Path(temporary, place.subfolder)
            write_tensor_digests(of_tensors, digest_tensors(folder))
            if loss:
                write_loss(of_loss, loss(folder))
    return WeightEvidence(
        read_loss(of_loss) if loss else UNDEFINED, read_tensor_digests(of_tensors)
    )


def _find_copies_of_main(
    judged: Sequence[JudgedCheckpoint],
    measured: Mapping[str, WeightEvidence],
    mains: Sequence[WeightEvidence],
    latest: str,
) -> dict[str, JudgedCheckpoint]:
    """Checkpoints, but the latest one, that hold the tensors of a main branch."""
    return {
        each.name: replace(each, verdict=SAME_WEIGHTS_AS_MAIN)
        for each in judged
        if each.verdict == OK and each.name != latest and each.name in measured
        if any(have_same_weights(measured[each.name], main) for main in mains)
    }
