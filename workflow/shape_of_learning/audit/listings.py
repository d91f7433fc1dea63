"""The targets of an audit: the steps of a repository or of folders, and the files of each.

A file in the user's cache keeps the answers of the Hub, so that an interrupted audit asks for no commit twice.
"""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from huggingface_hub import cached_assets_path, get_token

from shape_of_learning.checkpoints import hub
from shape_of_learning.checkpoints.atlas import find_model, find_suite
from shape_of_learning.checkpoints.local import is_local
from shape_of_learning.checkpoints.lock import (
    MAIN,
    MISSING,
    NO_WEIGHTS,
    Checkpoint,
    Files,
    Listing,
    WeightFile,
    list_weights,
)
from shape_of_learning.checkpoints.verdict import Mistake
from shape_of_learning.console import show_bar
from shape_of_learning.errors import InputError
from shape_of_learning.files import compute_sha256, expand_home, read_yaml
from shape_of_learning.plan.entries import STEP, FolderEntry, HubEntry, expand_seeds, read_entry
from shape_of_learning.plan.series import list_offered_names
from shape_of_learning.plan.steps import OfferedSteps, RevisionTemplate

# Names that publishers give to steps; tried if the user states no pattern.
PATTERNS = (
    "step{step}",
    "step-{step}",
    "step_{step}",
    "global_step{step}",
    "checkpoint-{step}",
    "step{step}-tokens{gigatokens}B",
    "stage{stage}-step{step}-tokens{gigatokens}B",
    "stage{stage}-step{step}",
    "stage{stage}-step-{step}",
    "step-{kilosteps}k-token-{gigatokens}B",
    "ckpt_{step}",
    "step-{step}-{gigatokens}BT",
    "{gigatokens}b_tokens",
    "{gigatokens}B",
    "iter_{step}",
)
# Questions that the Hub answers in five minutes, without and with a token.
QUESTIONS, QUESTIONS_WITH_TOKEN, MINUTES = 500, 1000, 5
QUESTIONS_PER_SECOND = 8  # about
# The Hub counts a question about one file apart from listings, so that few files are cheaper to ask for singly.
FEW_FILES = 3
# Seconds between our tries, in addition to those of the Hub's client. In all they exceed the Hub's five minutes.
PAUSES = (2.0, 8.0, 32.0, 64.0, 64.0, 64.0)
MOST_FAILURES = 3  # commits without an answer, after which an audit stops asking
# Files that may hold weights.
LARGE = (".safetensors", ".bin", ".pth", ".pt", ".ckpt", ".gguf", ".msgpack", ".h5")
NO_COMMIT = "0" * 40  # stands for the commit of a folder on the disk
Say = Callable[[str], None]


@dataclass
class ListedSeries:
    """The checkpoints of one training, and their files.

    Attributes
    ----------
    name : str
        A repository, or a pattern of folders.
    checkpoints : list of Checkpoint
        By step.
    listings : dict of str to Listing
        The files of each checkpoint, by its name.
    mains : dict of str to Listing
        The files of the main branch, by repository.
    unknown : dict of str to str
        The reason why a checkpoint has no listing, by its name.
    last_step : int or None
        The last step of training, if an entry states it.
    other_names : list of str
        Branches and tags that are no steps.
    suite, model : str
        The file of an entry, and its name.
    known_bad : sequence of Mistake
        The reports in an entry.
    failure : str
        The reason why the training has no listing at all.
    """

    name: str
    checkpoints: list[Checkpoint]
    listings: dict[str, Listing] = field(default_factory=dict)
    mains: dict[str, Listing] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)
    last_step: int | None = None
    other_names: list[str] = field(default_factory=list)
    suite: str = ""
    model: str = ""
    known_bad: Sequence[Mistake] = ()
    failure: str = ""


def list_series(target: str, pattern: str, say: Say) -> Iterator[ListedSeries]:
    """List the trainings of a target of an audit.

    Parameters
    ----------
    target : str
        A repository of the Hub; a file of the model list; folders, with ``{step}`` in their path; or their parent.
    pattern : str
        The pattern of the names of revisions, as in ``training.revision``; guessed if it is empty.
    say : callable
        Shows a line.

    Raises
    ------
    InputError
        If the repository, file or folder does not exist, or has no step. An entry in a file raises no error: its
        series has a `failure`, and the next entry follows.
    """
    path = expand_home(target)
    if path.suffix in (".yaml", ".yml"):
        if pattern:
            raise InputError(
                f"the entries in {target} name their steps themselves; leave --pattern out"
            )
        yield from _list_entries(path, say)
    elif STEP in target or path.is_dir():
        if STEP in target and pattern:
            raise InputError(f"`{target}` names its steps itself; leave --pattern out")
        folders = target if STEP in target else f"{target}/{pattern or f'checkpoint-{STEP}'}"
        folder_entry = read_entry({"path": folders, "training": {"steps": "all"}}, target)
        assert isinstance(folder_entry, FolderEntry)
        yield _list_folders(folder_entry)
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
        for series in _list_entry(entry, where, say, {target: commits}):
            yield replace(series, suite=find_suite(model), model=model)


def _guess_template(name: str, names: Iterable[str]) -> str:
    """Guess the pattern of steps: the one that most branches and tags follow."""
    fitting = Counter(
        pattern
        for pattern in PATTERNS
        for revision in names
        if RevisionTemplate(pattern).read(revision)
    )
    if not fitting:
        some = ", ".join(f"`{revision}`" for revision in sorted(names)[:4]) or "none at all"
        raise InputError(
            f"`{name}`: no branch or tag looks like a step (there are {some}); state the pattern of their names: "
            "--pattern 'step{step}'"
        )
    return fitting.most_common(1)[0][0]


def _list_entries(path: Path, say: Say) -> Iterator[ListedSeries]:
    """List the trainings of a file of the model list."""
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise InputError(f"{path} is no file of models; correct it")
    entries, _ = expand_seeds({name: (f"{path}", entry) for name, entry in content.items()}, {})
    for name, (_, definition) in entries.items():
        where = f"model `{name}` in {path}"
        try:
            entry = read_entry(definition, where)
            if isinstance(entry, HubEntry):
                for series in _list_entry(entry, where, say):
                    yield replace(series, suite=path.stem, model=name)
            elif isinstance(entry, FolderEntry):
                yield _list_folders(entry)
            else:
                say(f"{where} is trained by the workflow itself, so the audit skips it")
        except InputError as error:
            yield ListedSeries(where, [], failure=str(error))


def _list_entry(
    entry: HubEntry,
    where: str,
    say: Say,
    known_commits: Mapping[str, dict[str, str]] = MappingProxyType({}),
) -> Iterator[ListedSeries]:
    """List all steps of an entry, not only those that it chooses, in one series per stage of training."""
    training = entry.training
    checkpoints = list(entry.checkpoints)
    offered_steps = entry.hub_steps
    template = RevisionTemplate(training.revision if training and training.revision else "")
    if offered_steps is None and template.has_step:
        tokens_per_step = training.tokens_per_step if training else None
        offered_steps = OfferedSteps(
            entry.repository, entry.subfolder or "", template, "all", tokens_per_step
        )
    repositories = {checkpoint.repository for checkpoint in checkpoints}
    repositories |= {offered_steps.repository} if offered_steps else set()
    commits = dict(known_commits)
    for repository in sorted(repositories - known_commits.keys()):
        try:
            commits[repository] = hub.list_commits(repository, where=where, pauses=PAUSES)
        except hub.MissingError:
            commits[repository] = {}
    if not any(commits.values()):
        raise InputError(
            f"{where}: the Hub has no such repository, or shows it only to others; correct its name, or set HF_TOKEN"
        )
    other_names: list[str] = []
    if offered_steps:
        names = list(list_offered_names(offered_steps, commits[offered_steps.repository], where))
        steps = [name for name in names if offered_steps.template.read(name)]
        other_names = [name for name in names if name not in steps and name != MAIN]
        offered_checkpoints = [offered_steps.make_checkpoint(step) for step in steps]
        if offered_steps.is_list:
            checkpoints = offered_steps.name_steps(checkpoints, names)
        places = {
            (checkpoint.repository, checkpoint.revision) for checkpoint in offered_checkpoints
        }
        checkpoints = offered_checkpoints + [
            checkpoint
            for checkpoint in checkpoints
            if (checkpoint.repository, checkpoint.revision) not in places
        ]
    if not checkpoints:
        raise InputError(
            f"{where}: no branch or tag is named like `{template.pattern}`; correct the pattern"
        )
    for stage, stage_checkpoints in _group_by_stage(checkpoints, template).items():
        series = ListedSeries(
            f"{entry.repository}, stage {stage}" if stage else entry.repository,
            stage_checkpoints,
            last_step=training.last_step if training else None,
            other_names=other_names,
            known_bad=tuple(training.known_bad or ()) if training else (),
        )
        _list_files_of_steps(series, commits, where, say)
        yield series


def _group_by_stage(
    checkpoints: Sequence[Checkpoint], template: RevisionTemplate
) -> dict[str, list[Checkpoint]]:
    """Sort checkpoints by step; if two have the same step, group them by stage."""
    ordered_checkpoints = sorted(checkpoints, key=lambda checkpoint: checkpoint.step or 0)
    if len({checkpoint.step for checkpoint in ordered_checkpoints}) == len(ordered_checkpoints):
        return {"": ordered_checkpoints}
    stages = defaultdict(list)
    for checkpoint in ordered_checkpoints:
        stages[template.find_stage(checkpoint.revision)].append(checkpoint)
    return stages


def _list_folders(entry: FolderEntry) -> ListedSeries:
    """List folders on the disk, and hash their files."""
    from shape_of_learning.checkpoints.weight_files import list_weight_files

    series = ListedSeries(entry.path, list(entry.checkpoints))
    for checkpoint in series.checkpoints:
        try:
            files = {
                file.name: WeightFile(
                    bytes=file.stat().st_size, hash=f"sha256:{compute_sha256(file)}"
                )
                for file in list_weight_files(Path(checkpoint.path))
            }
            series.listings[checkpoint.name] = Listing(commit=NO_COMMIT, files=files)
        except (OSError, InputError) as error:
            name = Path(getattr(error, "filename", None) or "weights").name
            series.listings[checkpoint.name] = Listing(problem=MISSING, lacking=f"no {name}")
    return series


def _list_files_of_steps(
    series: ListedSeries, commits: Mapping[str, Mapping[str, str]], where: str, say: Say
) -> None:
    """List the weight files of each checkpoint of a series on the Hub, and of the main branches."""
    steps = {(checkpoint.repository, checkpoint.revision) for checkpoint in series.checkpoints}
    for repository, branches in commits.items():
        checkpoints = [
            checkpoint for checkpoint in series.checkpoints if checkpoint.repository == repository
        ]
        main = branches.get(MAIN, "")
        commits_by_name = {}
        for checkpoint in checkpoints:
            commit = branches.get(checkpoint.revision, "")
            # The name may be a commit or a pull request, which no list of branches has.
            if not commit and (branches or not checkpoint.step):
                commit = hub.find_commit(repository, checkpoint.revision, where=where) or ""
            commits_by_name[checkpoint.name] = commit
        cache = _CachedListings(repository)
        distinct_commits = dict.fromkeys(
            commit for commit in (*commits_by_name.values(), main) if commit
        )
        errors = cache.complete(list(distinct_commits), say)
        for checkpoint in checkpoints:
            commit = commits_by_name[checkpoint.name]
            if commit in errors:
                series.unknown[checkpoint.name] = errors[commit]
                continue
            listing = Listing(problem=MISSING)
            if commit:
                listing = list_weights(cache.files[commit], commit, checkpoint.subfolder)
            if listing.problem == NO_WEIGHTS and cache.files[commit]:
                some = ", ".join(sorted(cache.files[commit])[:3])
                series.unknown[checkpoint.name] = (
                    f"its weights are in files that an audit does not compare: {some}"
                )
            else:
                series.listings[checkpoint.name] = listing
        if main in cache.files and (repository, MAIN) not in steps:
            series.mains[repository] = list_weights(cache.files[main], main, "")


class _CachedListings:
    """The weight files of commits of a repository, in a file of the user's cache.

    Attributes
    ----------
    files : dict of str to mapping of str to WeightFile
        The files of each commit, by path.
    """

    def __init__(self, repository: str) -> None:
        self.repository = repository
        self.files: dict[str, Files] = {}
        self._failures: list[str] = []
        folder = cached_assets_path("shape-of-learning", "audit", repository.replace("/", "--"))
        self._path = folder / "listings.jsonl"
        text = self._path.read_text("utf-8", errors="replace") if self._path.exists() else ""
        self._has_open_line = bool(text) and not text.endswith("\n")
        for line in text.splitlines():
            # Another audit may have left a line half-written, or somebody changed it; its commit is asked for again.
            with suppress(ValueError, TypeError, AttributeError):
                commit, files = json.loads(line)
                self.files[commit] = {
                    path: WeightFile(bytes=size, hash=file_hash)
                    for path, (size, file_hash) in files.items()
                }

    def complete(self, commits: Sequence[str], say: Say) -> dict[str, str]:
        """Ask the Hub for the commits that are not in the cache; return the reason for each without an answer."""
        missing = [commit for commit in commits if commit not in self.files]
        if not missing:
            return {}
        limit = QUESTIONS_WITH_TOKEN if get_token() else QUESTIONS
        minutes = max(
            len(missing) / QUESTIONS_PER_SECOND / 60, MINUTES * ((len(missing) - 1) // limit)
        )
        duration = "less than a minute" if minutes < 1 else f"about {math.ceil(minutes)} min"
        say(
            f"{self.repository}: {len(commits)} commits, {len(commits) - len(missing)} of them in the cache; "
            f"about {len(missing)} questions, {duration}"
        )
        paths = self._choose_heads(missing[0]) if len(missing) > limit else ()
        errors: dict[str, str] = {}
        with (
            ThreadPoolExecutor(hub.LISTINGS_AT_ONCE) as pool,
            self._path.open("a", encoding="utf-8") as cache,
            show_bar(self.repository) as progress,
        ):
            answers = {pool.submit(self._list_files, commit, paths): commit for commit in missing}
            if self._has_open_line:
                cache.write("\n")
            try:
                for number, answer in enumerate(as_completed(answers), 1):
                    progress("listings", number, len(missing))
                    commit = answers[answer]
                    try:
                        files = self.files[commit] = answer.result()
                    except InputError as error:
                        errors[commit] = str(error)
                        continue
                    cells = {path: [file.bytes, file.hash] for path, file in files.items()}
                    print(json.dumps([commit, cells]), file=cache, flush=True)
            finally:
                pool.shutdown(cancel_futures=True)
        return errors

    def _choose_heads(self, commit: str) -> tuple[str, ...]:
        """Choose the files of a checkpoint if they are few and their heads tell size and hash, as a listing does."""
        try:
            files = self._list_files(commit)
        except InputError:
            return ()
        is_few = 0 < len(files) <= FEW_FILES
        is_same = is_few and hub.ask_for_heads(self.repository, commit, files) == files
        return tuple(files) if is_same else ()

    def _list_files(self, commit: str, paths: Sequence[str] = ()) -> Files:
        """List the weight files of a commit, by one question per file if their paths are given."""
        if len(self._failures) >= MOST_FAILURES:  # the requests before have waited long enough
            raise InputError(self._failures[0])
        files = hub.ask_for_heads(self.repository, commit, paths) if paths else {}
        if not files:
            where = f"`{self.repository}`"
            try:
                files = hub.list_files(self.repository, commit, commit, where=where, pauses=PAUSES)
            except InputError as error:
                self._failures.append(str(error))
                raise
        return {path: file for path, file in files.items() if path.endswith(LARGE)}
