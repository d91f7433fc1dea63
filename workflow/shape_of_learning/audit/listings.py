"""What is audited: the steps of a repository or of folders, and what is listed of each.

Of the Hub each commit is asked once: a file in the user's cache remembers it, so that an audit that was stopped
goes on where it was.
"""

import json
import logging
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path

from huggingface_hub import cached_assets_path, get_token

from shape_of_learning.checkpoints import hub
from shape_of_learning.checkpoints.atlas import suite_of
from shape_of_learning.checkpoints.lock import (
    MAIN,
    MISSING,
    Checkpoint,
    Listing,
    WeightFile,
    read_lock,
)
from shape_of_learning.console import bar
from shape_of_learning.errors import InputError, UnreachableError
from shape_of_learning.files import read_yaml, sha256_of
from shape_of_learning.plan.curve import names_offered
from shape_of_learning.plan.entries import Entry
from shape_of_learning.plan.entry_files import with_seeds
from shape_of_learning.plan.local_folders import STEP, local_checkpoints
from shape_of_learning.plan.steps import OfferedSteps, RevisionTemplate, hub_checkpoints
from shape_of_learning.refusals import validated

logger = logging.getLogger(__name__)

# How publishers name steps, where nobody says it.
PATTERNS = (
    *("step{step}", "step-{step}", "step_{step}", "global_step{step}", "checkpoint-{step}"),
    *("step{step}-tokens{gigatokens}B", "stage{stage}-step{step}-tokens{gigatokens}B"),
    *("stage{stage}-step-{step}", "step-{kilosteps}k-token-{gigatokens}B", "ckpt_{step}"),
    *("step-{step}-{gigatokens}BT", "{gigatokens}b_tokens", "{gigatokens}B", "iter_{step}"),
)
# Questions that the Hub answers in five minutes, without a token and with one.
QUESTIONS, WITH_TOKEN, MINUTES = 500, 1000, 5
A_SECOND = 8  # questions, about
FEW_FILES = 3  # of a checkpoint, of which each may be asked for by itself
# Seconds between tries of ours, besides those of the Hub's client: longer than its five minutes.
PAUSES = (2.0, 8.0, 32.0, 64.0, 64.0, 64.0, 64.0, 64.0)
NO_COMMIT = "0" * 40  # of what is on the disk
Say = Callable[[str], None]


@dataclass
class Curve:
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


def curves_of(target: str, pattern: str, say: Say) -> Iterator[Curve]:
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
        If there is no such repository, file or folder, or no step in it.
    """
    path = Path(target).expanduser()
    if path.suffix in (".yaml", ".yml"):
        content = read_yaml(path) or {}
        if "revisions" in content:
            yield _of_lock(path, pattern)
            return
        entries, _ = with_seeds({name: (target, entry) for name, entry in content.items()}, {})
        for name, (_, written) in entries.items():
            where = f"model `{name}` in {path}"
            entry = validated(Entry, written, where)
            if entry.repository:
                curve = _of_entry(entry, where, say)
                yield replace(curve, suite=path.stem, model=name)
            elif entry.path:
                yield _of_folders(entry, where)
            else:
                say(f"{where} is a training of a run, and not audited")
    elif STEP in target or path.is_dir():
        folders = target if STEP in target else f"{target}/checkpoint-{STEP}"
        entry = validated(Entry, {"path": folders, "training": {"steps": "all"}}, target)
        yield _of_folders(entry, target)
    elif not re.fullmatch(r"[\w.-]+/[\w.-]+", target):
        raise InputError(
            f"`{target}` is no repository (organisation/name), no file of models and no folder; correct it"
        )
    else:
        commits = hub.commits_of(target, where=f"`{target}`", pauses=PAUSES)
        template = RevisionTemplate(pattern or _guessed(target, commits))
        offered = OfferedSteps(target, "", template, "all", None)
        yield _asked(target, offered.found(commits), {target: commits}, None, say)


def _guessed(repository: str, names: Iterable[str]) -> str:
    """The pattern that most branches and tags follow."""
    fitting = Counter(p for p in PATTERNS for name in names if RevisionTemplate(p).read(name))
    if not fitting:
        some = ", ".join(f"`{name}`" for name in sorted(names)[:4])
        raise InputError(
            f"`{repository}` has no branch or tag that looks like a step, but {some}; say how they are named: "
            "--pattern 'step{step}'"
        )
    return fitting.most_common(1)[0][0]


def _of_entry(entry: Entry, where: str, say: Say) -> Curve:
    """All steps of an entry, whichever of them it chooses."""
    training = entry.training
    listed, offered = hub_checkpoints(entry, where)
    if offered is None and training and training.revision and STEP in training.revision:
        template = RevisionTemplate(training.revision)
        assert entry.repository is not None
        offered = OfferedSteps(entry.repository, entry.subfolder or "", template, "all", None)
    repositories = {each.repository for each in listed} | (
        {offered.repository} if offered else set()
    )
    commits = {}
    for repository in sorted(repositories):
        try:
            commits[repository] = hub.commits_of(repository, where=where, pauses=PAUSES)
        except hub.MissingError:
            commits[repository] = {}
    if not any(commits.values()):
        raise InputError(f"{where}: the Hub has none of its repositories; correct the entry")
    if offered:
        of_repository = commits[offered.repository]
        names = names_offered(offered, of_repository, where)
        there = replace(offered, wanted="all").found(names)
        known = {(each.repository, each.revision) for each in there}
        listed = [*there, *(e for e in listed if (e.repository, e.revision) not in known)]
    last = training.last_step if training else None
    return _asked(entry.repository or where, listed, commits, last, say)


def _of_lock(path: Path, pattern: str) -> Curve:
    """What a run has pinned, which was asked when it was planned."""
    lock = read_lock(path)
    assert lock is not None
    revisions = {name: each.revision for name, each in lock.revisions.items()}
    template = RevisionTemplate(pattern or _guessed(path.stem, revisions.values()))
    steps = {name: template.read(each) for name, each in revisions.items()}
    checkpoints = [
        Checkpoint(
            name, each.revision, each.repository, each.subfolder, *(steps[name] or (None, None))
        )
        for name, each in lock.revisions.items()
    ]
    listed = {name: each.listing() for name, each in lock.revisions.items()}
    return Curve(
        path.stem,
        sorted(checkpoints, key=lambda each: each.step or 0),
        listed,
        dict(lock.mains),
        suite=suite_of(path.stem) or path.stem,
        model=path.stem,
        source="lock",
    )


def _of_folders(entry: Entry, where: str) -> Curve:
    """Folders on the disk, whose files are read."""
    from shape_of_learning.checkpoints.tensors import weight_files

    checkpoints, last = local_checkpoints(entry, where)
    curve = Curve(entry.path or "", checkpoints, last_step=last)
    for each in checkpoints:
        try:
            files = weight_files(Path(each.path))
            sizes = {
                p.name: WeightFile(bytes=p.stat().st_size, hash=f"sha256:{sha256_of(p)}")
                for p in files
            }
            curve.listed[each.name] = Listing(commit=NO_COMMIT, files=sizes)
        except FileNotFoundError as error:
            problem = f"{MISSING}: no {Path(error.filename).name}"
            curve.listed[each.name] = Listing(problem=problem)
        except InputError as error:
            curve.listed[each.name] = Listing(problem=f"{MISSING}: {error}")
    return curve


def _asked(
    name: str,
    checkpoints: Sequence[Checkpoint],
    commits: Mapping[str, Mapping[str, str]],
    last_step: int | None,
    say: Say,
) -> Curve:
    """Ask the Hub for the weight files of each checkpoint, and of the main branches."""
    in_order = sorted(checkpoints, key=lambda each: each.step or 0)
    curve = Curve(name, in_order, last_step=last_step)
    steps = {(each.repository, each.revision) for each in in_order}
    for repository, of in commits.items():
        curve.others += [n for n in of if (repository, n) not in steps and n != MAIN]
        wanted = {each.name: each for each in in_order if each.repository == repository}
        at = {n: of.get(each.revision, "") for n, each in wanted.items()}
        files = _Files(repository)
        needed = list(
            dict.fromkeys(commit for commit in (*at.values(), of.get(MAIN, "")) if commit)
        )
        errors = files.bring(needed, say)
        for checkpoint, commit in at.items():
            if not commit:
                curve.listed[checkpoint] = Listing(problem=MISSING)
            elif commit in errors:
                curve.unknown[checkpoint] = errors[commit]
            else:
                folder = wanted[checkpoint].subfolder
                curve.listed[checkpoint] = hub.listing_by_names(files.of[commit], commit, folder)
        if of.get(MAIN) in files.of and (repository, MAIN) not in steps:
            curve.mains[repository] = hub.listing_by_names(files.of[of[MAIN]], of[MAIN], "")
    return curve


class _Files:
    """Weight files of commits of a repository, by path; what was asked before is read from a file."""

    def __init__(self, repository: str) -> None:
        self.repository, self._unreachable = repository, ""
        self.of: dict[str, dict[str, WeightFile]] = {}
        folder = cached_assets_path("shape-of-learning", "audit", repository.replace("/", "--"))
        self._known = folder / "listings.jsonl"
        lines = self._known.read_text("utf-8").splitlines() if self._known.exists() else []
        for line in lines:
            try:
                commit, files = json.loads(line)
                self.of[commit] = {p: WeightFile(bytes=b, hash=h) for p, (b, h) in files.items()}
            except ValueError:
                continue  # the last line of an audit that was killed

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
        paths = self._known_to_heads(lacking[-1]) if len(lacking) > allowed else ()
        errors: dict[str, str] = {}
        with (
            ThreadPoolExecutor(hub.LISTINGS_AT_ONCE) as pool,
            self._known.open("a", encoding="utf-8") as kept,
            bar(self.repository) as progress,
        ):
            asked = {pool.submit(self._listed, commit, paths): commit for commit in lacking}
            for done, future in enumerate(as_completed(asked), 1):
                progress("listings", done, len(lacking))
                commit, (files, error) = asked[future], future.result()
                if error:
                    errors[commit] = error
                    continue
                self.of[commit] = files
                plain = {path: [file.bytes, file.hash] for path, file in files.items()}
                print(json.dumps([commit, plain]), file=kept, flush=True)
        return errors

    def _known_to_heads(self, commit: str) -> tuple[str, ...]:
        """The files of a checkpoint, if these are few, and their heads say what a listing does."""
        files, _ = self._listed(commit)
        few = 0 < len(files) <= FEW_FILES
        return tuple(files) if few and hub.heads_at(self.repository, commit, files) == files else ()

    def _listed(self, commit: str, paths: Sequence[str] = ()) -> tuple[dict[str, WeightFile], str]:
        """Weight files of a commit, by a listing or each by its head; and why they are not known."""
        if self._unreachable:  # others have waited for it
            return {}, self._unreachable
        try:
            files = hub.heads_at(self.repository, commit, paths) if paths else {}
            if not files:
                where = f"`{self.repository}`"
                files = hub.files_at(self.repository, commit, commit, where=where, pauses=PAUSES)
        except InputError as error:
            if isinstance(error, UnreachableError):
                self._unreachable = str(error)
            return {}, str(error)
        return {path: file for path, file in files.items() if hub.is_weight_file(path)}, ""
