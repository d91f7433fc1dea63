"""What is audited: the steps of a repository or of folders, and what is listed of each.

Of the Hub each commit is asked once: a file in the user's cache remembers it, so that an audit that was stopped
goes on where it was.
"""

import json
import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from huggingface_hub import cached_assets_path, get_token

from shape_of_learning.checkpoints import hub
from shape_of_learning.checkpoints.atlas import find_model, find_suite
from shape_of_learning.checkpoints.listed_files import listing_by_names
from shape_of_learning.checkpoints.local import is_local
from shape_of_learning.checkpoints.lock import (
    MAIN,
    MISSING,
    NO_WEIGHTS,
    Checkpoint,
    Listing,
    WeightFile,
    read_lock,
)
from shape_of_learning.checkpoints.verdicts import Mistake
from shape_of_learning.console import show_bar
from shape_of_learning.errors import InputError
from shape_of_learning.files import compute_sha256, expand_home, read_yaml
from shape_of_learning.plan.entries import STEP, FolderEntry, HubEntry, expand_seeds, read_entry
from shape_of_learning.plan.run import list_offered_names
from shape_of_learning.plan.steps import OfferedSteps, RevisionTemplate

logger = logging.getLogger(__name__)

# How publishers name steps, where nobody says it.
PATTERNS = (
    *("step{step}", "step-{step}", "step_{step}", "global_step{step}", "checkpoint-{step}"),
    *("step{step}-tokens{gigatokens}B", "stage{stage}-step{step}-tokens{gigatokens}B"),
    *(
        "stage{stage}-step{step}",
        "stage{stage}-step-{step}",
        "step-{kilosteps}k-token-{gigatokens}B",
        "ckpt_{step}",
    ),
    *("step-{step}-{gigatokens}BT", "{gigatokens}b_tokens", "{gigatokens}B", "iter_{step}"),
)
# Questions that the Hub answers in five minutes, without a token and with one.
QUESTIONS, WITH_TOKEN, MINUTES = 500, 1000, 5
A_SECOND = 8  # questions, about
FEW_FILES = 3  # of a checkpoint, of which each may be asked for by itself
# Seconds between tries of ours, besides those of the Hub's client: longer than its five minutes.
PAUSES = (2.0, 8.0, 32.0, 64.0, 64.0, 64.0)
FAILURES = 3  # commits of which nothing could be learned, after which no other is asked for
# Files that may hold weights, whatever their names.
LARGE = (".safetensors", ".bin", ".pth", ".pt", ".ckpt", ".gguf", ".msgpack", ".h5")
NO_COMMIT = "0" * 40  # of what is on the disk
Say = Callable[[str], None]


@dataclass
class ListedSeries:
    """Checkpoints of one training, and what is listed of them.

    Attributes
    ----------
    name : str
        A repository, or a pattern of folders.
    checkpoints : list of Checkpoint
        By step.
    listed, mains : dict of str to Listing
        By name of a checkpoint, and the main branch by repository.
    unknown : dict of str to str
        Names of checkpoints of which nothing could be learned, and why.
    last_step : int or None
        Where an entry says it.
    others : list of str
        Branches and tags that are no steps.
    suite, model : str
        Of an entry: the file that it is in, and its name.
    source : {"audit", "lock"}
        Who has asked the Hub.
    known_bad : sequence of Mistake
        What an entry says.
    failure : str
        Why nothing could be learned of it at all.
    """

    name: str
    checkpoints: list[Checkpoint]
    listed: dict[str, Listing] = field(default_factory=dict)
    mains: dict[str, Listing] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)
    last_step: int | None = None
    others: list[str] = field(default_factory=list)
    suite: str = ""
    model: str = ""
    source: str = "audit"
    known_bad: Sequence[Mistake] = ()
    failure: str = ""


def list_curves(target: str, pattern: str, say: Say) -> Iterator[ListedSeries]:
    """List what a target of an audit is.

    Parameters
    ----------
    target : str
        A repository of the Hub; a file of the model list, or a lock; or folders, with ``{step}``, or the folder
        they are in.
    pattern : str
        Of the revisions' names, as ``training.revision``; guessed if it is empty.
    say : callable
        Shows a line.

    Raises
    ------
    InputError
        If there is no such repository, file or folder, or no step in it. Of a file with several entries this is
        said, and the others go on.
    """
    path = expand_home(target)
    if path.suffix in (".yaml", ".yml"):
        yield from _read_curves(path, pattern, say)
    elif STEP in target or path.is_dir():
        folders = target if STEP in target else f"{target}/checkpoint-{STEP}"
        folder_entry = read_entry({"path": folders, "training": {"steps": "all"}}, target)
        assert isinstance(folder_entry, FolderEntry)
        yield _list_folder_curve(folder_entry)
    elif is_local(target) or "/" not in target:
        raise InputError(
            f"`{target}` is no repository (organisation/name), no file of models and no folder; correct it"
        )
    else:
        where = f"`{target}`"
        commits = hub.list_commits(target, where=where, pauses=PAUSES)
        training = {"revision": pattern or _guess_template(target, commits), "steps": "all"}
        entry = read_entry({"repository": target, "training": training}, where)
        assert isinstance(entry, HubEntry)
        model = find_model(target)
        for curve in _list_entry_curves(entry, where, say, {target: commits}):
            yield replace(curve, suite=find_suite(model), model=model)


def _guess_template(name: str, names: Iterable[str]) -> str:
    """The pattern that most branches and tags follow."""
    fitting = Counter(p for p in PATTERNS for name in names if RevisionTemplate(p).read(name))
    if not fitting:
        some = ", ".join(f"`{each}`" for each in sorted(names)[:4]) or "none at all"
        raise InputError(
            f"`{name}`: no branch or tag looks like a step (there are {some}); say how they are named: --pattern "
            "'step{step}'"
        )
    return fitting.most_common(1)[0][0]


def _read_curves(path: Path, pattern: str, say: Say) -> Iterator[ListedSeries]:
    """The curves of a file of the model list, or of a lock."""
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise InputError(f"{path} is no file of models and no lock; correct it")
    if "revisions" in content:
        yield _read_lock_curve(path, pattern)
        return
    entries, _ = expand_seeds({name: (f"{path}", entry) for name, entry in content.items()}, {})
    for name, (_, written) in entries.items():
        where = f"model `{name}` in {path}"
        try:
            entry = read_entry(written, where)
            if isinstance(entry, HubEntry):
                for curve in _list_entry_curves(entry, where, say):
                    yield replace(curve, suite=path.stem, model=name)
            elif isinstance(entry, FolderEntry):
                yield _list_folder_curve(entry)
            else:
                say(f"{where} is a training of a run, and not audited")
        except InputError as error:
            yield ListedSeries(where, [], failure=str(error))


def _list_entry_curves(
    entry: HubEntry,
    where: str,
    say: Say,
    known: Mapping[str, dict[str, str]] = MappingProxyType({}),
) -> Iterator[ListedSeries]:
    """All steps of an entry, whichever of them it chooses; one curve per stage where steps begin anew."""
    training = entry.training
    listed, offered = list(entry.checkpoints), entry.offered
    template = RevisionTemplate(training.revision if training and training.revision else "")
    if offered is None and template.has_step:
        per_step = training.tokens_per_step if training else None
        offered = OfferedSteps(entry.repository, entry.subfolder or "", template, "all", per_step)
    repositories = {each.repository for each in listed}
    repositories |= {offered.repository} if offered else set()
    commits = dict(known)
    for repository in sorted(repositories - known.keys()):
        try:
            commits[repository] = hub.list_commits(repository, where=where, pauses=PAUSES)
        except hub.MissingError:
            commits[repository] = {}
    if not any(commits.values()):
        raise InputError(f"{where}: the Hub has no such repository, or shows it only to others")
    others: list[str] = []
    if offered:
        names = list(list_offered_names(offered, commits[offered.repository], where))
        steps = [name for name in names if offered.template.read(name)]
        others = [name for name in names if name not in steps and name != MAIN]
        there = [offered.make_checkpoint(step) for step in steps]
        if offered.is_list:
            listed = offered.name_steps(listed, names)
        named = {(each.repository, each.revision) for each in there}
        listed = [*there, *(e for e in listed if (e.repository, e.revision) not in named)]
    if not listed:
        raise InputError(
            f"{where}: nothing is named like `{template.pattern}`; correct the pattern"
        )
    last = training.last_step if training else None
    reports = tuple(training.known_bad or ()) if training else ()
    for stage, checkpoints in _group_by_stage(listed, template).items():
        name = f"{entry.repository}, stage {stage}" if stage else entry.repository
        curve = ListedSeries(name, checkpoints, last_step=last, others=others, known_bad=reports)
        _ask(curve, commits, where, say)
        yield curve


def _group_by_stage(
    checkpoints: Sequence[Checkpoint], template: RevisionTemplate
) -> dict[str, list[Checkpoint]]:
    """Checkpoints by step; where two have the same one, by stage."""
    in_order = sorted(checkpoints, key=lambda each: each.step or 0)
    begins_anew = len({each.step for each in in_order}) < len(in_order)
    stages: dict[str, list[Checkpoint]] = {}
    for each in in_order:
        stages.setdefault(template.find_stage(each.revision) if begins_anew else "", []).append(
            each
        )
    return stages


def _read_lock_curve(path: Path, pattern: str) -> ListedSeries:
    """What a run has pinned, which was asked when it was planned."""
    lock = read_lock(path)
    assert lock is not None
    template = RevisionTemplate(pattern or _guess_template(path.stem, lock.revisions))
    steps = {
        name: template.read(name) or template.read(each.revision)
        for name, each in lock.revisions.items()
    }
    checkpoints = [
        Checkpoint(name, each.revision, each.repository, each.subfolder, *(steps[name] or ()))
        for name, each in lock.revisions.items()
        if steps[name]
    ]
    if not checkpoints:
        raise InputError(f"{path}: nothing is named like `{template.pattern}`; correct --pattern")
    return ListedSeries(
        path.stem,
        sorted(checkpoints, key=lambda each: each.step or 0),
        {name: each.listing() for name, each in lock.revisions.items() if steps[name]},
        dict(lock.mains),
        suite=find_suite(path.stem) or path.stem,
        model=path.stem,
        source="lock",
    )


def _list_folder_curve(entry: FolderEntry) -> ListedSeries:
    """Folders on the disk, whose files are read."""
    from shape_of_learning.checkpoints.weight_files import list_weight_files

    curve = ListedSeries(entry.path, list(entry.checkpoints))
    for checkpoint in curve.checkpoints:
        try:
            files = {
                p.name: WeightFile(bytes=p.stat().st_size, hash=f"sha256:{compute_sha256(p)}")
                for p in list_weight_files(Path(checkpoint.path))
            }
            curve.listed[checkpoint.name] = Listing(commit=NO_COMMIT, files=files)
        except (OSError, InputError) as error:
            lacking = Path(getattr(error, "filename", None) or "weights").name
            curve.listed[checkpoint.name] = Listing(problem=f"{MISSING}: no {lacking}")
    return curve


def _ask(
    curve: ListedSeries, commits: Mapping[str, Mapping[str, str]], where: str, say: Say
) -> None:
    """Ask the Hub for the weight files of each checkpoint, and of the main branches."""
    steps = {(checkpoint.repository, checkpoint.revision) for checkpoint in curve.checkpoints}
    for repository, of in commits.items():
        wanted = [
            checkpoint for checkpoint in curve.checkpoints if checkpoint.repository == repository
        ]
        at = {each.name: of.get(each.revision, "") for each in wanted}
        for each in wanted:  # a commit, or a pull request
            if not at[each.name] and (of or not each.step):
                at[each.name] = hub.find_commit(repository, each.revision, where=where) or ""
        files = _Files(repository)
        needed = [commit for commit in (*at.values(), of.get(MAIN, "")) if commit]
        errors = files.bring(list(dict.fromkeys(needed)), say)
        for each in wanted:
            commit = at[each.name]
            if commit in errors:
                curve.unknown[each.name] = errors[commit]
                continue
            listing = Listing(problem=MISSING)
            if commit:
                listing = listing_by_names(files.of[commit], commit, each.subfolder)
            if listing.problem == NO_WEIGHTS and files.of[commit]:
                some = ", ".join(sorted(files.of[commit])[:3])
                curve.unknown[each.name] = f"its weights are in files that are not compared: {some}"
            else:
                curve.listed[each.name] = listing
        if of.get(MAIN) in files.of and (repository, MAIN) not in steps:
            curve.mains[repository] = listing_by_names(files.of[of[MAIN]], of[MAIN], "")


class _Files:
    """Weight files of commits of a repository, by path; what was asked before is read from a file."""

    def __init__(self, repository: str) -> None:
        self.repository, self._failures = repository, list[str]()
        self.of: dict[str, dict[str, WeightFile]] = {}
        folder = cached_assets_path("shape-of-learning", "audit", repository.replace("/", "--"))
        self._known = folder / "listings.jsonl"
        text = self._known.read_text("utf-8", errors="replace") if self._known.exists() else ""
        self._begins = "" if text.endswith("\n") or not text else "\n"
        for line in text.splitlines():
            # What another audit was writing when it was killed, or somebody has changed, is asked for again.
            with suppress(ValueError, TypeError, AttributeError):
                commit, files = json.loads(line)
                self.of[commit] = {p: WeightFile(bytes=b, hash=h) for p, (b, h) in files.items()}

    def bring(self, commits: Sequence[str], say: Say) -> dict[str, str]:
        """Ask for those that are not known; commits of which nothing could be learned, and why."""
        lacking = [commit for commit in commits if commit not in self.of]
        if not lacking:
            return {}
        allowed = WITH_TOKEN if get_token() else QUESTIONS
        minutes = max(len(lacking) / A_SECOND / 60, MINUTES * ((len(lacking) - 1) // allowed))
        say(
            f"{self.repository}: {len(commits)} commits, {len(commits) - len(lacking)} known from before; "
            f"about {len(lacking)} questions, "
            + ("less than a minute" if minutes < 1 else f"about {math.ceil(minutes)} min")
        )
        paths = self._ask_for_heads(lacking[0]) if len(lacking) > allowed else ()
        errors: dict[str, str] = {}
        with (
            ThreadPoolExecutor(hub.LISTINGS_AT_ONCE) as pool,
            self._known.open("a", encoding="utf-8") as kept,
            show_bar(self.repository) as progress,
        ):
            asked = {pool.submit(self._list_files, commit, paths): commit for commit in lacking}
            kept.write(self._begins)
            try:
                for done, future in enumerate(as_completed(asked), 1):
                    progress("listings", done, len(lacking))
                    commit, (files, error) = asked[future], future.result()
                    if error:
                        errors[commit] = error
                        continue
                    self.of[commit] = files
                    plain = {path: [file.bytes, file.hash] for path, file in files.items()}
                    print(json.dumps([commit, plain]), file=kept, flush=True)
            finally:
                pool.shutdown(cancel_futures=True)
        return errors

    def _ask_for_heads(self, commit: str) -> tuple[str, ...]:
        """The files of a checkpoint, if these are few, and their heads say what a listing does."""
        files, _ = self._list_files(commit)
        few = 0 < len(files) <= FEW_FILES
        return (
            tuple(files)
            if few and hub.ask_for_heads(self.repository, commit, files) == files
            else ()
        )

    def _list_files(
        self, commit: str, paths: Sequence[str] = ()
    ) -> tuple[dict[str, WeightFile], str]:
        """Weight files of a commit, by a listing or each by its head; and why they are not known."""
        if len(self._failures) >= FAILURES:  # others have waited for it
            return {}, self._failures[0]
        try:
            files = hub.ask_for_heads(self.repository, commit, paths) if paths else {}
            if not files:
                where = f"`{self.repository}`"
                files = hub.list_files(self.repository, commit, commit, where=where, pauses=PAUSES)
        except InputError as error:
            self._failures.append(str(error))
            return {}, str(error)
        return {path: file for path, file in files.items() if path.endswith(LARGE)}, ""
