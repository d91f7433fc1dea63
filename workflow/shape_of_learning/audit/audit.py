"""The audit of a training: a verdict on each revision or folder.

The verdict rests on the hashes of files, on reports, on the manifests in folders, and on request on tensors.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory

from huggingface_hub import cached_assets_path

from shape_of_learning.audit.listings import NO_COMMIT, PAUSES, ListedSeries
from shape_of_learning.checkpoints import hub
from shape_of_learning.checkpoints.atlas import (
    HASHES,
    PUBLISHED,
    REPORT,
    TENSORS,
    AtlasRow,
    find_row,
    list_reported_mistakes,
)
from shape_of_learning.checkpoints.download import download_as_listed
from shape_of_learning.checkpoints.lock import MAIN, Checkpoint, Listing, Place, is_weight_file
from shape_of_learning.checkpoints.verdict import (
    OK,
    JudgedCheckpoint,
    Kind,
    Verdict,
    format_atlas_verdict,
    format_doubtful_steps,
    format_evidence,
    format_verdict,
    hash_shards,
    have_same_weights,
    judge_listing,
    judge_measurements,
    list_signatures,
)
from shape_of_learning.checkpoints.weight_evidence import (
    UNDEFINED,
    TensorDigests,
    WeightEvidence,
    read_tensor_digests,
    write_tensor_digests,
)
from shape_of_learning.errors import InputError
from shape_of_learning.words import list_first

Progress = Callable[[str, int, int], None]
COMMIT_CHARACTERS, HASH_CHARACTERS = 10, 16  # that a sentence shows


def audit_series(
    series: ListedSeries, progress: Progress, *, tensors: bool = False
) -> list[AtlasRow]:
    """Judge each checkpoint of a training.

    Parameters
    ----------
    series : ListedSeries
    progress : callable
        Called with a kind of work, the number of finished pieces and the number of all pieces.
    tensors : bool
        Whether to download checkpoints and compare their tensors.

    Returns
    -------
    list of AtlasRow
        By step; the verdict is ``unknown`` if there is no evidence.
    """
    repositories = {checkpoint.repository for checkpoint in series.checkpoints}
    reports = [*series.known_bad, *list_reported_mistakes(repositories, series.last_step)]
    # Of the atlas's reports, use only those that name the owner of weights, since hashes do not tell it. The audit
    # checks the other faults itself. All reports of the entry are kept.
    reports = [
        report for report in reports if report.same_as is not None or report in series.known_bad
    ]
    checkpoints = [
        checkpoint for checkpoint in series.checkpoints if checkpoint.name not in series.unknown
    ]
    judgements = {
        checkpoint.name: checkpoint
        for checkpoint in judge_listing(
            checkpoints, series.listings, series.mains, reports, series.last_step
        )
    }
    reasons = {name: _describe_basis(name, series, judgements) for name in judgements}
    evidence: dict[str, WeightEvidence] = {}
    if tensors:
        file_judgements = judgements
        evidence, mains = _digest_checkpoints(series, judgements, progress)
        judgements = _judge_tensors(judgements, evidence, mains, series.checkpoints[-1].name)
        for name, checkpoint in judgements.items():
            if checkpoint.verdict != file_judgements[name].verdict:
                reasons[name] = f"{format_verdict(checkpoint.verdict)}, by tensors"
    judgements, compared_names = _judge_manifests(series, judgements, reasons)
    day = datetime.now(UTC).date()
    rows = []
    for checkpoint in series.checkpoints:
        if checkpoint.name in series.unknown:
            verdict, reason = Verdict(Kind.UNKNOWN), series.unknown[checkpoint.name]
        else:
            verdict, reason = judgements[checkpoint.name].verdict, reasons[checkpoint.name]
        listing = series.listings.get(checkpoint.name)
        row = _make_row(checkpoint, listing, verdict, reason, day)
        if row.parse_verdict().kind is not Kind.UNKNOWN:
            is_reported = verdict.kind is Kind.REPORTED
            has_tensors = checkpoint.name in evidence or checkpoint.name in compared_names
            evidence_kind = TENSORS if has_tensors else HASHES
            row = row.model_copy(update={"known_by": REPORT if is_reported else evidence_kind})
        atlas_row = find_row(checkpoint.repository, checkpoint.revision)
        rows.append(_add_reports(row, atlas_row, checkpoint.name in evidence))
    return rows


def _judge_manifests(
    series: ListedSeries, judgements: Mapping[str, JudgedCheckpoint], reasons: dict[str, str]
) -> tuple[dict[str, JudgedCheckpoint], set[str]]:
    """Judge folders by the manifests that were written when they were saved, and complete the reasons.

    Returns
    -------
    judgements : dict of str to JudgedCheckpoint
    compared_names : set of str
        The checkpoints that have a manifest.
    """
    from shape_of_learning.checkpoints.manifest import compare_with_manifest, read_manifest

    comparisons = {}
    for checkpoint in series.checkpoints:
        name, folder = checkpoint.name, Path(checkpoint.path)
        if not checkpoint.path or name not in judgements or series.listings[name].problem:
            continue
        try:
            if manifest := read_manifest(folder):
                comparisons[name] = compare_with_manifest(folder, manifest)
        except (InputError, OSError) as error:
            reasons[name] = f"{reasons[name]}; {error}"
    verdicts = {}
    for name, comparison in comparisons.items():
        step, saved_step = judgements[name].step, comparison.manifest.step
        if comparison.changed_names:
            owners = [
                other.manifest.step
                for other in comparisons.values()
                if other is not comparison and other.manifest.digests == comparison.digests
            ]
            verdicts[name] = Verdict(Kind.CHANGED)
            reasons[name] = comparison.sentence
            if owners:
                verdicts[name] = Verdict(Kind.SAME_AS_STEP, steps=(owners[0],))
                reasons[name] += f"; step {owners[0]} was saved with its weights"
        elif saved_step != step:
            verdicts[name] = Verdict(Kind.SAME_AS_STEP, steps=(saved_step,))
            reasons[name] = f"its manifest and its weights are those of step {saved_step}"
        else:
            reasons[name] = f"{reasons[name]}; {comparison.sentence}"
    wrong_steps = {judgements[name].step for name in verdicts}
    for name in comparisons.keys() - verdicts.keys():
        # Files alone do not show which of several checkpoints is a copy.
        verdict = judgements[name].verdict
        other_steps = {*verdict.steps} - {judgements[name].step}
        if verdict.kind is Kind.SAME_AS_OTHERS and other_steps <= wrong_steps:
            verdicts[name] = OK
            reasons[name] = f"other steps hold its files, too; {comparisons[name].sentence}"
    judgements = {
        name: replace(checkpoint, verdict=verdicts.get(name, checkpoint.verdict))
        for name, checkpoint in judgements.items()
    }
    return judgements, {*comparisons}


def _make_row(
    checkpoint: Checkpoint, listing: Listing | None, verdict: Verdict, reason: str, day: date
) -> AtlasRow:
    revision, subfolder = checkpoint.revision, checkpoint.subfolder
    files = [file for _, file in sorted(listing.files.items())] if listing else []
    is_hashed = all(file.sha256 for file in files)
    return AtlasRow(
        repository=checkpoint.repository,
        revision=f"{revision}/{subfolder}" if subfolder else revision,
        step=checkpoint.step,
        tokens=checkpoint.tokens,
        commit=listing.commit if listing and listing.commit != NO_COMMIT else "",
        sha256=" ".join(file.sha256 for file in files) if is_hashed else "",
        verdict=format_atlas_verdict(verdict, checkpoint.step),
        reason=reason,
        source="audit",
        checked=day,
    )


def _add_reports(row: AtlasRow, atlas_row: AtlasRow | None, is_measured: bool) -> AtlasRow:
    """Add the addresses of reports in the atlas, and a reported fault that hashes cannot show."""
    if atlas_row is None or not atlas_row.reports:
        return row
    kind = atlas_row.parse_verdict().kind
    update = {"source": " ".join([row.source, *atlas_row.reports])}
    if atlas_row.is_fault and row.parse_verdict() == OK and not is_measured:
        if kind in (Kind.MIXED_SHARDS, Kind.MISSING):
            update["reason"] = (
                f"{row.reason}; reported as {atlas_row.verdict}, which its files do not show"
            )
        elif kind in (Kind.SAME_AS_STEP, Kind.SAME_AS_MAIN, Kind.SAME_RESULTS):
            update |= {"verdict": Kind.UNKNOWN.value, "known_by": ""}
            update["reason"] = (
                f"reported: {atlas_row.verdict}; its files differ, so only --tensors can show whether its weights do"
            )
        else:
            update |= _repeat_report(atlas_row)
    if atlas_row.is_fault and not row.commit and row.parse_verdict().kind is Kind.UNKNOWN:
        update |= _repeat_report(atlas_row)
    return row.model_copy(update=update)


def _repeat_report(atlas_row: AtlasRow) -> dict[str, str]:
    reason = (
        atlas_row.reason if atlas_row.known_by == PUBLISHED else f"reported: {atlas_row.reason}"
    )
    return {
        "verdict": atlas_row.verdict,
        "reason": reason,
        "known_by": atlas_row.known_by or REPORT,
    }


def list_notes(series: ListedSeries) -> list[str]:
    """Note a main branch that differs from the last step, and the names that were not compared."""
    notes = []
    last = series.checkpoints[-1]
    main, listing = series.mains.get(last.repository), series.listings.get(last.name)
    are_whole = main and listing and not main.problem and not listing.problem
    if (
        main
        and listing
        and are_whole
        and {*list_signatures(main)}.isdisjoint(list_signatures(listing))
    ):
        notes.append(
            f"`main` (commit {main.commit[:COMMIT_CHARACTERS]}) has other files than `{last.revision}` (commit "
            f"{listing.commit[:COMMIT_CHARACTERS]}); their tensors were not compared."
        )
    if series.other_names:
        names = list_first([f"`{name}`" for name in series.other_names])
        notes.append(f"These names are no steps and were not compared: {names}.")
    return notes


def _describe_basis(
    name: str, series: ListedSeries, judgements: Mapping[str, JudgedCheckpoint]
) -> str:
    """Describe the files that a verdict rests on."""
    verdict = judgements[name].verdict
    match verdict.kind:
        case Kind.OK:
            copy = Verdict(Kind.SAME_AS_STEP, steps=(judgements[name].step or 0,))
            is_copied = any(checkpoint.verdict == copy for checkpoint in judgements.values())
            return "other names hold its files, too" if is_copied else "no other step has its files"
        case Kind.NOT_YET_MOVED:
            return "the files of step 0; a first update at learning rate 0 moves nothing"
        case Kind.UNCONFIRMED:
            report = format_evidence(verdict)
            return f"reported: {report}; its files differ, so only --tensors can show whether its weights do"
        case Kind.REPORTED:
            return f"reported: {format_evidence(verdict)}"
        case Kind.MISSING:
            return verdict.evidence or "there is no such revision"
        case Kind.NO_WEIGHTS:
            return format_verdict(verdict)
        case Kind.MIXED_SHARDS:
            return _describe_common_shards(name, series)
    return _describe_common_file(name, series, judgements)


def _describe_common_shards(name: str, series: ListedSeries) -> str:
    """Name the other revisions that hold the shards of a revision."""
    listings = series.listings | {f"main of {name}": main for name, main in series.mains.items()}
    holders = defaultdict(list)
    for other, listing in listings.items():
        if other != name:
            for shard, digest in hash_shards(listing).items():
                holders[shard, digest].append(other)
    shards = [
        f"{shard} is also that of {list_first(holders[shard, digest])}"
        for shard, digest in hash_shards(series.listings[name]).items()
        if (shard, digest) in holders
    ]
    return "; ".join(shards) or "its shards are not of one step"


def _describe_common_file(
    name: str, series: ListedSeries, judgements: Mapping[str, JudgedCheckpoint]
) -> str:
    """Name a file that a revision has in common with the owner of its weights."""
    listing, verdict = series.listings[name], judgements[name].verdict
    equals = [other for other in judgements if judgements[other].verdict == verdict]
    if verdict.kind is Kind.SAME_AS_STEP:
        owners = [other for other in judgements if judgements[other].step == verdict.steps[0]]
        equals = owners[-1:] or equals
    listings = [series.listings[other] for other in equals]
    if verdict.kind is Kind.SAME_AS_MAIN:
        listings += series.mains.values()
    hashes = {
        file.hash
        for other in listings
        if other is not listing
        for file in (*other.files.values(), *other.other_format.values())
    }
    files = [
        (path, file)
        for path, file in (*listing.files.items(), *listing.other_format.items())
        if file.hash in hashes
    ]
    if not files:  # a third revision has the weights in both formats and links the two
        return "another revision has its files and those of the other"
    path, file = files[0]
    more = f", and {len(files) - 1} more files likewise" if len(files) > 1 else ""
    words = f"{path} has the SHA-256 {file.digest[:HASH_CHARACTERS]}... in both{more}"
    if verdict.kind is Kind.SAME_AS_OTHERS:
        return f"{words}; {format_doubtful_steps(verdict.steps)}"
    return words


def _digest_checkpoints(
    series: ListedSeries, judgements: Mapping[str, JudgedCheckpoint], progress: Progress
) -> tuple[dict[str, WeightEvidence], list[WeightEvidence]]:
    """Digest the tensors of all readable checkpoints and of the main branches; equal files are digested once."""
    readable = [
        checkpoint
        for checkpoint in series.checkpoints
        if checkpoint.name in judgements and not series.listings[checkpoint.name].problem
    ]
    main_branches = [
        Checkpoint(MAIN, MAIN, repository)
        for repository, listing in series.mains.items()
        if not listing.problem
    ]
    steps: dict[str, WeightEvidence] = {}
    mains: list[WeightEvidence] = []
    evidence_by_files: dict[tuple[str, ...], WeightEvidence | None] = {}
    failures: dict[tuple[str, ...], str] = {}
    for number, checkpoint in enumerate([*readable, *main_branches]):
        is_main = number >= len(readable)
        listing = (
            series.listings[checkpoint.name] if not is_main else series.mains[checkpoint.repository]
        )
        files = list_signatures(listing)[0]
        if files not in evidence_by_files:
            try:
                digests = _read_digests(checkpoint, listing)
                evidence_by_files[files] = WeightEvidence(UNDEFINED, digests)
            except (InputError, OSError) as error:
                evidence_by_files[files] = None
                failures[files] = f"it cannot be measured: {error}"
        if files in failures and not is_main and not judgements[checkpoint.name].is_bad:
            series.unknown[checkpoint.name] = failures[files]  # a fault that the files show remains
        evidence = evidence_by_files[files]
        if evidence is not None and is_main:
            mains.append(evidence)
        elif evidence is not None:
            steps[checkpoint.name] = evidence
        progress("checkpoints", number + 1, len(readable) + len(main_branches))
    return steps, mains


def _read_digests(checkpoint: Checkpoint, listing: Listing) -> TensorDigests:
    """Digest the tensors of a checkpoint; a file in the user's cache keeps the digests of a commit on the Hub."""
    from shape_of_learning.checkpoints.tensors import digest_tensors

    if checkpoint.path:
        return digest_tensors(Path(checkpoint.path))
    repository, subfolder = checkpoint.repository, checkpoint.subfolder
    cache = cached_assets_path("shape-of-learning", "audit", repository.replace("/", "--"))
    name = "-".join(filter(None, [listing.commit, subfolder.replace("/", "--")]))
    table = cache / f"{name}.tensors.csv"
    if not table.exists():
        where = f"`{repository}` at `{checkpoint.revision}`"
        files = hub.list_files(
            repository, checkpoint.revision, listing.commit, where=where, pauses=PAUSES
        )
        paths = [
            path
            for path in files
            if PurePath(path).parent == PurePath(subfolder)
            and (is_weight_file(path) or path.endswith(".index.json"))
        ]
        with TemporaryDirectory() as folder:
            download_as_listed(
                Place(repository, checkpoint.revision),
                listing.commit,
                {path: files[path].hash for path in paths},
                where=where,
                pauses=PAUSES,
                local_dir=Path(folder),
            )
            write_tensor_digests(table, digest_tensors(Path(folder, subfolder)))
    return read_tensor_digests(table)


def _judge_tensors(
    judgements: Mapping[str, JudgedCheckpoint],
    evidence: Mapping[str, WeightEvidence],
    mains: Sequence[WeightEvidence],
    latest: str,
) -> dict[str, JudgedCheckpoint]:
    """Judge checkpoints by their tensors and by those of the main branches."""
    copies = {
        name for name in evidence if any(have_same_weights(evidence[name], main) for main in mains)
    }
    checkpoints = [
        replace(checkpoint, is_last=True) if name == latest and name in copies else checkpoint
        for name, checkpoint in judgements.items()
    ]
    result = {}
    for checkpoint in judge_measurements(checkpoints, evidence):
        name = checkpoint.name
        if name in copies and name != latest and checkpoint.verdict == OK:
            checkpoint = replace(checkpoint, verdict=Verdict(Kind.SAME_AS_MAIN))
        result[name] = checkpoint
    return result
