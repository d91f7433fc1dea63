"""Published results by training step: files of lm-evaluation-harness, CSV and JSON lines."""

import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from shape_of_learning.checkpoints.verdict import LAST_STEP
from shape_of_learning.errors import InputError
from shape_of_learning.files import expand_home
from shape_of_learning.plan.steps import RevisionTemplate

STEP_COLUMNS = ("step", "steps", "global_step", "training_step", "iteration", "iter", "checkpoint")
MODEL_COLUMNS = ("model", "model_name", "run", "run_name")
# As in names of files and folders: step1000, step_1000, global_step1000, checkpoint-1000, step-5k.
STEP_IN_NAME = re.compile(
    r"(?<![a-z])(?:global[-_]?)?(?:step|checkpoint|ckpt|iter)[-_]?(\d{1,13})(?!\d)(k?)(?![\d.]*[a-z])",
    re.IGNORECASE,
)
TOKENS_IN_NAME = re.compile(r"(?<![a-z])tokens?[-_]?[\d.]+[kmbt]?(?![a-z])", re.IGNORECASE)
# Standard errors follow from their scores, apart from the noise of their last digits.
STANDARD_ERROR = re.compile(r"_?(stderr|std_?err(or)?)(,.*)?$", re.IGNORECASE)
# As spreadsheets write 0.25 and 1234.5 in some languages: 0,25 and 1,234.5 or 1.234,5.
COMMA_NUMBER = re.compile(
    r"\s*[-+]?(\d+,\d+|\d{1,3}(,\d{3})+(\.\d*)?|\d{1,3}(\.\d{3})+,\d*)\s*%?\s*"
)
# Clocks and settings, which differ between two steps even with equal weights.
CLOCK = re.compile(
    r"(^|[/_ ])(epoch|tokens?|samples|time|timestamp|date|seconds|hours|runtime|per_second|lr|learning_rate|"
    r"total_flos|flops|seed|grad_norm|loss[-_ ]?scale)$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class PublishedResults:
    """The numbers that somebody published for the steps of one training.

    Attributes
    ----------
    name : str
    steps : tuple of int
        Ascending.
    columns, tasks : tuple of str
        The name and the task of each number.
    values : array, shape (steps, columns)
        NaN where a step lacks a number.
    revisions : mapping of int to str
        The part of the file or folder name that states the step, by step.
    skipped_columns : tuple of str
        Columns that are not compared: clocks, settings, and standard errors.
    """

    name: str
    steps: tuple[int, ...]
    columns: tuple[str, ...]
    tasks: tuple[str, ...]
    values: np.ndarray
    revisions: Mapping[int, str] = field(default_factory=dict)
    skipped_columns: tuple[str, ...] = ()

    def describe(self) -> str:
        """Describe the numbers that are compared."""
        tasks = len(set(self.tasks))
        scores = f"{len(self.columns):,} numbers"
        if tasks < len(self.columns):
            scores += f" of {tasks:,} task{'s' * (tasks != 1)}"
        missing = int(np.isnan(self.values).sum())
        words = f"{scores} at each of {len(self.steps):,} steps"
        if missing:
            words += f", of which {missing:,} are missing"
        return words


@dataclass
class _Rows:
    """The numbers of each step, and the file that they are from."""

    numbers: dict[int, dict[str, float]] = field(default_factory=dict)
    files: dict[int, Path] = field(default_factory=dict)
    revisions: dict[int, str] = field(default_factory=dict)
    # The names that a model may have, and its file.
    models: list[tuple[list[str], Path]] = field(default_factory=list)

    def add(self, step: int, numbers: Mapping[str, float], file: Path) -> None:
        """Add the numbers of a step; if a number comes twice, the last file by name counts."""
        step_numbers = self.numbers.setdefault(step, {})
        conflicts = [
            name
            for name in numbers.keys() & step_numbers.keys()
            if step_numbers[name] != numbers[name]
            and not math.isnan(numbers[name] + step_numbers[name])
        ]
        if conflicts and not (_has_date(file) and _has_date(self.files[step])):
            raise InputError(
                f"{file} and {self.files[step]} both have `{min(conflicts)}` of step {step:,}, with different "
                "numbers; keep one of the files"
            )
        step_numbers.update(numbers)
        self.files[step] = file


def read_results(
    targets: Sequence[str], step_column: str = "", pattern: str = ""
) -> PublishedResults:
    """Read the results of a training from files, and from the JSON files in folders.

    Parameters
    ----------
    targets : sequence of str
        Files of lm-evaluation-harness, one per step or several; CSV or JSON lines with a row per step; folders.
    step_column : str
        The column of steps in tables; guessed if it is empty.
    pattern : str
        The pattern of the names of files or of their folders, such as ``step{step}``; guessed if it is empty.

    Raises
    ------
    InputError
        If a file has another format, no step or no number, or if a step comes twice or the models differ.
    """
    rows = _Rows()
    for file, is_named in _list_files(targets):
        text = _read_text(file)
        content = _parse_json(text, file) if file.suffix == ".json" else None
        if isinstance(content, dict) and isinstance(content.get("results"), dict):
            _add_harness_file(rows, content, file, pattern)
        elif is_named:  # other JSON files in folders are no results
            _add_table(rows, _list_records(content, text, file), file, step_column)
    _refuse_several_models(rows)
    if not rows.numbers:
        raise InputError(
            f"{', '.join(targets)} has no file with `results` as lm-evaluation-harness writes them; name the files"
        )
    name = rows.models[0][0][0] if rows.models else ""
    name = name or ", ".join(targets)
    return _arrange(rows, name, ", ".join(targets))


def _list_files(targets: Sequence[str]) -> list[tuple[Path, bool]]:
    """List the files, and whether the user named each or only its folder."""
    files = []
    for target in targets:
        path = expand_home(target)
        if path.is_dir():
            inside = sorted(path.rglob("*.json"))
            if not inside:
                raise InputError(f"{path} has no JSON file in it; name a file, or another folder")
            files += [(file, False) for file in inside]
        else:
            files.append((path, True))
    return files


def _read_text(file: Path) -> str:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{file} is not text in UTF-8; give CSV, JSON or JSON lines") from None
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror}); correct the name") from None
    if not text.strip():
        raise InputError(f"{file} is empty; give a file with results")
    return text


def _parse_json(text: str, file: Path) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        if "\n" in text.strip() and text.lstrip().startswith("{"):
            return None  # perhaps JSON lines under the name of JSON
        raise InputError(f"{file} is not JSON ({error}); correct it") from None


# Files of lm-evaluation-harness ---------------------------------------------------------------------


def _add_harness_file(rows: _Rows, content: Mapping[str, Any], file: Path, pattern: str) -> None:
    config = content.get("config") if isinstance(content.get("config"), dict) else {}
    arguments = _read_arguments(config.get("model_args") if config else None)
    named_step = find_step(file, pattern)
    if named_step is None and not pattern and "revision" in arguments:
        named_step = _find_step_in_name(arguments["revision"], "")
    if named_step is None:
        raise InputError(
            f"{file} and its folders have no step in their names; say how steps are named: --pattern 'step{{step}}'"
        )
    step, revision = named_step
    numbers = {}
    groups = content.get("groups")
    tasks = content["results"].keys() - (groups.keys() if isinstance(groups, dict) else ())
    for task, scores in content["results"].items():
        # The mean of a group adds nothing to its tasks.
        if isinstance(scores, dict) and (task in tasks or not tasks):
            for metric, value in scores.items():
                number = _convert_number(value) if _is_number(value) else None
                if isinstance(value, str) and metric != "alias":
                    number = _read_number(value)
                if number is not None:
                    numbers[_name_score(task, metric)] = number
    if not numbers:
        raise InputError(f"{file} has no numbers under `results`; leave it out")
    rows.add(step, numbers, file)
    rows.revisions[step] = revision
    model = content.get("model_name") or arguments.get("pretrained") or ""
    if model:
        rows.models.append((_list_names(f"{model}", step, pattern), file))


def _refuse_several_models(rows: _Rows) -> None:
    """Refuse files of several models: their names differ, whichever number in the names is the step."""
    for (names, file), (other_names, other_file) in pairwise(rows.models):
        if not {*names} & {*other_names}:
            raise InputError(
                f"{file} is of `{names[0]}` and {other_file} of `{other_names[0]}`; give the files of one model at a "
                "time"
            )


def _list_names(name: str, step: int, pattern: str) -> list[str]:
    """List a name, and the templates that it may follow, with ``{step}`` for one number that equals the step.

    The first is the template in which the name (as in ``seed0-step0``) or the pattern tells which number is the step.
    """
    template = RevisionTemplate(pattern) if pattern else None
    parts = []
    for part in name.split("/"):
        numbers = template.read(part) if template else None
        if re.fullmatch(rf"0*{step}", part) or (numbers and numbers[0] == step):
            part = "{step}"
        elif (named_step := _find_step_in_name(part, "")) and named_step[0] == step:
            part = TOKENS_IN_NAME.sub("{tokens}", part.replace(named_step[1], "{step}"))
        parts.append(part)
    # At the end of a part, as in `model_1000`, but not in `pythia-1b`.
    number = re.compile(rf"(?<![\d.])0*{step}(?=$|[-_/\\]|steps?\b)")
    templates = [
        f"{name[: match.start()]}{{step}}{name[match.end() :]}" for match in number.finditer(name)
    ]
    return ["/".join(parts), name, *templates]


def _name_score(task: str, metric: str) -> str:
    """Name a score the same in both layouts: ``acc,none`` in new files is ``acc`` in old ones."""
    metric, _, kind = metric.partition(",")
    return f"{task}/{metric}" if kind in ("", "none") else f"{task}/{metric} ({kind})"


def _read_arguments(arguments: Any) -> dict[str, str]:
    """Read the arguments of a model, written as ``pretrained=NAME,revision=step1`` or as an object."""
    if isinstance(arguments, dict):
        return {f"{name}": f"{value}" for name, value in arguments.items()}
    pairs = f"{arguments or ''}".split(",")
    return {name: value for name, sign, value in (pair.partition("=") for pair in pairs) if sign}


def find_step(file: Path, pattern: str) -> tuple[int, str] | None:
    """Find the step and its spelling in the name of a file, or else of its nearest folder."""
    for name in (file.stem, *(folder.name for folder in file.parents)):
        if named_step := _find_step_in_name(name, pattern):
            return named_step
    return None


def _find_step_in_name(name: str, pattern: str) -> tuple[int, str] | None:
    if pattern:
        numbers = RevisionTemplate(pattern).read(name)
        return (numbers[0], name) if numbers else None
    matches = list(STEP_IN_NAME.finditer(name))
    if not matches:
        return None
    return int(matches[-1][1]) * (1000 if matches[-1][2] else 1), matches[-1][0]


def _has_date(file: Path) -> bool:
    """Return whether the harness dated the name of a file."""
    return re.fullmatch(r"results_\d{4}-\d\d-\d\dT.*", file.stem) is not None


# Tables ---------------------------------------------------------------------------------------------


def _list_records(content: Any, text: str, file: Path) -> list[tuple[str, Mapping[str, Any]]]:
    """List the rows of a table with their places for messages."""
    if isinstance(content, list) or (content is None and text.lstrip()[0] in "{["):
        lines = enumerate(content, 1) if isinstance(content, list) else _parse_lines(text, file)
        records = [(f"{file}, object {number}", record) for number, record in lines]
        for where, record in records:
            if not isinstance(record, dict):
                raise InputError(f"{where} is no object with a step and numbers; correct it")
        return records
    if content is not None:
        raise InputError(
            f"{file} has no `results` as lm-evaluation-harness writes them, and is no list of objects; give a file of "
            "either kind"
        )
    lines_of_text = text.splitlines()
    has_tabs = lines_of_text[0].count("\t") > lines_of_text[0].count(",")
    reader = csv.DictReader(lines_of_text, dialect=csv.excel_tab if has_tabs else csv.excel)
    try:
        header = [name for name in reader.fieldnames or () if name]
        rows: list[tuple[str, Mapping[str, Any]]] = [
            (f"{file}, line {reader.line_num}", row) for row in reader
        ]
    except csv.Error as error:
        raise InputError(f"{file} is not a table ({error}); give a CSV file") from None
    if len(header) > len({*header}):
        duplicate = next(name for name in header if header.count(name) > 1)
        raise InputError(f"{file} has several columns `{duplicate}`; rename all but one")
    return rows


def _parse_lines(text: str, file: Path) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(text.split("\n"), 1):  # a string may hold other ends of lines
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError):
                raise InputError(f"{file}, line {number} is not JSON; correct it") from None


def _add_table(
    rows: _Rows, records: Iterable[tuple[str, Mapping[str, Any]]], file: Path, step_column: str
) -> None:
    records = list(records)
    columns = list(dict.fromkeys(column for _, record in records for column in record if column))
    column = _choose_step_column(columns, step_column, file)
    for model_column in MODEL_COLUMNS:
        models = {f"{record.get(model_column)}" for _, record in records} - {"", "None"}
        if len(models) > 1:
            some = ", ".join(f"`{model}`" for model in sorted(models)[:3])
            raise InputError(
                f"{file} has the results of {len(models)} models in its column `{model_column}` ({some}); keep the "
                "rows of one model"
            )
    is_empty = True
    for where, record in records:
        if record.get(column) in (None, ""):
            continue
        step = _read_step(record[column], where, column)
        numbers = {}
        for name, value in record.items():
            if name and name != column:
                number = _read_number(value)
                if number is not None:
                    numbers[name] = number
                elif COMMA_NUMBER.fullmatch(f"{value}") and not CLOCK.search(name):
                    raise InputError(
                        f"{where}: `{name}` is {value!r}; write numbers with a decimal point, and without commas"
                    )
        is_empty = is_empty and not numbers
        # A log may have a row for the training and another row for the evaluation.
        if rows.files.get(step) == file and numbers.keys() & rows.numbers[step].keys():
            raise InputError(f"{where}: step {step:,} comes twice; keep one row per step")
        rows.add(step, numbers, file)
    if is_empty:
        raise InputError(
            f"{file} has no numbers beside its column `{column}`; give a table with results"
        )


def _choose_step_column(columns: Sequence[str], option: str, file: Path) -> str:
    names = (option,) if option else STEP_COLUMNS
    for name in names:
        for column in columns:
            if column.strip().lower() == name.lower():
                return column
    column_names = ", ".join(f"`{column}`" for column in columns[:6]) or "none"
    more = f" and {len(columns) - 6} more" if len(columns) > 6 else ""
    raise InputError(
        f"{file} has no column `{names[0]}`, only {column_names}{more}; name the column of steps: --step COLUMN"
    )


def _read_step(value: Any, where: str, column: str) -> int:
    number = _read_number(value)
    if number is not None and 0 <= number <= LAST_STEP and number == int(number):
        return int(number)
    named_step = _find_step_in_name(f"{value}".strip(), "") if number is None else None
    if named_step is None:
        raise InputError(f"{where}: `{column}` is {value!r:.60}, which is no step; correct it")
    return named_step[0]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _read_number(value: Any) -> float | None:
    """Read a number; None for other content, and for NaN."""
    if isinstance(value, str):
        try:
            value = float(value.strip().removesuffix("%"))
        except ValueError:
            return None
    number = _convert_number(value) if _is_number(value) else math.nan
    return None if math.isnan(number) else number


def _convert_number(number: float) -> float:
    try:
        return float(number)
    except OverflowError:  # an integer of hundreds of digits
        return math.inf if number > 0 else -math.inf


# Both -----------------------------------------------------------------------------------------------


def _arrange(rows: _Rows, name: str, where: str) -> PublishedResults:
    """Arrange the numbers of all steps in one array, and skip the columns that are not compared."""
    steps = sorted(rows.numbers)
    if len(steps) < 2:
        raise InputError(
            f"{where}: an audit compares results of several steps, and here is one; give more files"
        )
    columns = list(dict.fromkeys(column for step in steps for column in rows.numbers[step]))
    values = np.array(
        [[rows.numbers[step].get(column, math.nan) for column in columns] for step in steps]
    )
    places = [
        place
        for place, column in enumerate(columns)
        if not STANDARD_ERROR.search(column)
        and not CLOCK.search(column)
        and not _is_clock(np.array(steps, dtype=float), values[:, place])
    ]
    if not places:
        raise InputError(
            f"{where}: all columns are clocks, settings or standard errors; give a table with results"
        )
    names = tuple(columns[place] for place in places)
    return PublishedResults(
        name,
        tuple(steps),
        names,
        tuple(column.rpartition("/")[0] or column for column in names),
        values[:, places],
        rows.revisions,
        tuple(column for place, column in enumerate(columns) if place not in places),
    )


def _is_clock(steps: np.ndarray, numbers: np.ndarray) -> bool:
    """Return whether a column is a multiple of the step, such as the tokens seen."""
    is_there = np.isfinite(numbers)
    if is_there.sum() < 3 or len(np.unique(numbers[is_there])) < 3:
        return False
    steps, numbers = steps[is_there], numbers[is_there]
    if not steps.any():
        return False
    slope = (steps @ numbers) / (steps @ steps)
    return bool(np.abs(slope * steps - numbers).max() <= 1e-9 * np.abs(numbers).max())
