"""Measure the models of a file of estimates a second time, and compare the values: the command ``verify``."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from shape_of_learning.checkpoints.local import is_local
from shape_of_learning.corpus.fetch import read_demo_text
from shape_of_learning.embeddings.model import find_device
from shape_of_learning.errors import InputError
from shape_of_learning.file_hashes import remember_sha256
from shape_of_learning.files import expand_home, parse_cell
from shape_of_learning.metrics.tidy import ESTIMATE_COLUMNS, RECORD_COLUMN, TEXT_COLUMNS
from shape_of_learning.one_model.measurement_record import (
    DIGEST,
    MeasurementRecord,
    RecordedEstimates,
    hash_files,
    list_versions,
)
from shape_of_learning.one_model.options import MeasurementOptions
from shape_of_learning.one_model.sources import ModelSource, find_source, measure_source
from shape_of_learning.one_model.vector_files import is_vector_file
from shape_of_learning.results import read_table

# Another processor or version of PyTorch adds in another order, which changes a value and its interval by less than
# VALUE_TOLERANCE of the value; a share of vectors may change by one vector of a batch. With windows of SmolLM2-135M
# that go through the model one by one, no cell of 160 rows changed by more than a hundredth of VALUE_TOLERANCE.
VALUE_TOLERANCE = 1e-4
SHARE_TOLERANCE = 1e-3
SHARES = ("near_duplicates", "same_token")
COUNTS = ("n", "n_unique", "windows", "layers", "effective_windows")
MOST_SHOWN = 10  # different rows that are printed


class EditedFileError(InputError):
    """A file whose rows or record were changed after they were written."""


class Agreement(Enum):
    """How the values of a second measurement agree with those of a file."""

    EQUAL = "equal"
    LAST_DIGITS = "equal to the last digits"
    DIFFERENT = "different"


class Difference(NamedTuple):
    """The cells that differ most between both measurements of a row.

    Attributes
    ----------
    estimator, layer : str
        Estimator and layer of the row; the layer of a mean is empty.
    column : str
    file_cell, second_cell : str
        Cells of the file and of the second measurement; empty where a row or a value is missing.
    share : float
        The difference of the cells divided by the value; of shares of vectors, the difference itself; infinite if the
        cells are not numbers.
    agreement : Agreement
    """

    estimator: str
    layer: str
    column: str
    file_cell: str
    second_cell: str
    share: float
    agreement: Agreement


class Verification(NamedTuple):
    """The comparison of the rows of a model with a second measurement.

    Attributes
    ----------
    label : str
        The model's name in the file.
    rows : int
        Number of rows that were compared.
    differences : list of Difference
        A difference for each row that is not equal, the largest first.
    changed_versions : dict of str to (str, str)
        Software, or the device -> its different versions in the file and on this machine.
    """

    label: str
    rows: int
    differences: list[Difference]
    changed_versions: dict[str, tuple[str, str]]

    @property
    def agreement(self) -> Agreement:
        """The agreement of the row that differs most."""
        if not self.differences:
            return Agreement.EQUAL
        return self.differences[0].agreement


def read_recorded_estimates(file: Path, name: str) -> list[RecordedEstimates]:
    """Read the rows and the record of each model in a file of the command ``measure``.

    Raises
    ------
    EditedFileError
        If a row or the record was changed after it was written, or if an estimator has two rows of one layer.
    InputError
        If the file carries no records.
    """
    try:
        rows = _read_rows(file)
        groups: dict[tuple[Any, Any], list[dict[str, Any]]] = {}
        for row in rows:
            groups.setdefault((row["model"], row["revision"]), []).append(row)
        return [_read_record(group, name) for group in groups.values()]
    except EditedFileError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"{name} has no record of a measurement ({reason}); give a file of `measure --csv` or `--json`, which has "
            "one. For differences of `compare`, verify the files of both models; for the results of a run, use "
            "`make verify`"
        ) from None


def _read_rows(file: Path) -> list[dict[str, Any]]:
    """Read the cells of a CSV or JSON file by column; ValueError or TypeError if the file is neither."""
    text = file.read_text(encoding="utf-8-sig")
    if not text.lstrip().startswith("["):
        rows: list[dict[str, Any]] = [{**row} for row in read_table(file)]
        for row in rows:
            row[RECORD_COLUMN] = json.loads(row.get(RECORD_COLUMN) or "null")
        return rows
    rows = json.loads(text)
    if not rows:
        raise ValueError("it has no row")
    for row in rows:
        row["suspect"] = "yes" if row["suspect"] else "no"
    return rows


def _read_record(rows: Sequence[Mapping[str, Any]], name: str) -> RecordedEstimates:
    """Read the rows of a model with their record, and compare them with the digest that the record states."""
    label = rows[0]["model"]
    records = [row[RECORD_COLUMN] for row in rows if row.get(RECORD_COLUMN)]
    if len(records) != 1:
        raise ValueError(f"there are {len(records)} records of `{label}`")
    content = {**records[0]}
    stated_digest = content.pop(DIGEST)
    try:
        record = MeasurementRecord.model_validate(content)
    except ValidationError as error:
        details = error.errors()[0]
        key = ".".join(map(str, details["loc"]))
        raise ValueError(f"`{key}` of the record: {details['msg']}") from None
    estimates = RecordedEstimates(
        [[row[column] for column in ESTIMATE_COLUMNS] for row in rows], record
    )
    if len(_index_rows(estimates.rows)) < len(rows):
        raise EditedFileError(
            f"{name} was edited after it was written: an estimator has two rows of one layer of `{label}`; take the "
            "file as `measure` wrote it"
        )
    if estimates.compute_digest() != stated_digest:
        raise EditedFileError(
            f"{name} was edited after it was written: its record and its {len(rows)} rows of `{label}` do not have the "
            "SHA-256 that it states; take the file as `measure` wrote it"
        )
    return estimates


class RecordedInputs(NamedTuple):
    """The places on this machine of the model and the text that a record names."""

    source: ModelSource
    text: Path


def find_recorded_inputs(
    estimates: Sequence[RecordedEstimates], model: str, text: Path | None, folder: Path
) -> list[RecordedInputs]:
    """Find the inputs of all measurements; InputError if an input is missing or has changed."""
    texts = [find_recorded_text(model_rows.record, text, folder) for model_rows in estimates]
    sources = [find_recorded_source(model_rows.record, model) for model_rows in estimates]
    return [RecordedInputs(*pair) for pair in zip(sources, texts, strict=True)]


def find_recorded_text(record: MeasurementRecord, text: Path | None, folder: Path) -> Path:
    """Find the text that a model was measured on; InputError if it is missing or has changed.

    Parameters
    ----------
    record : MeasurementRecord
    text : Path or None
        The file that the user names; None for the file in the record.
    folder : Path
        A folder for a copy of the documentation of Python. The function returns it if the measurement read no text.
    """
    recorded_text = record.text
    if recorded_text is None:
        if text is not None:
            raise InputError("a file of vectors was measured, which has no text; leave --text out")
        return folder
    remedy = "give the text by --text FILE"
    if text is None and recorded_text.source == "stream":
        raise InputError(
            f"the text came from {recorded_text.path}, which cannot be read a second time; {remedy}"
        )
    if text is None and recorded_text.source == "built-in":
        text = folder / "python_topics.txt"
        text.write_text(read_demo_text(), encoding="utf-8")
        python = record.versions.get("python", "another version")
        remedy = f"verify with Python {python}, whose documentation was the text"
    elif text is None:
        text = expand_home(recorded_text.path)
    if not text.is_file():
        raise InputError(f"the text {text} is missing; {remedy}")
    digest = remember_sha256(text)
    if digest != recorded_text.sha256:
        raise InputError(
            f"{text.name} is not the text of the file: its SHA-256 begins with {digest[:16]}, and the file states "
            f"{recorded_text.sha256[:16]}; {remedy}"
        )
    return text


def find_recorded_source(record: MeasurementRecord, model: str = "") -> ModelSource:
    """Find the model that was measured; InputError if it is missing or its files have changed.

    Parameters
    ----------
    record : MeasurementRecord
    model : str
        The present place of the model; empty for the place in the record.
    """
    if model:
        source = find_source(model)
    else:
        is_on_disk = is_local(record.model) or is_vector_file(record.model)
        if not record.commit and not is_on_disk:
            raise InputError(
                f"the model `{record.model}` was on a disk and is missing here; give it by --model PATH"
            )
        source = find_source(record.model, record.commit or "main")
    if source.is_vector_file != (record.text is None):
        kinds = ("a file of vectors", "a model that reads text")
        kind, recorded_kind = kinds if source.is_vector_file else kinds[::-1]
        raise InputError(
            f"{source.model} is {kind}, but {recorded_kind} was measured; correct --model"
        )
    files = hash_files(source)
    if len(record.files) == len(files) == 1:  # a single file may have another name
        is_same = [*files.values()] == [*record.files.values()]
        changed_files = [] if is_same else [*files]
    else:
        names = sorted(record.files.keys() | files.keys())
        changed_files = [name for name in names if files.get(name) != record.files.get(name)]
    if changed_files:
        raise InputError(
            f"{source.model} is not the model of the file: {', '.join(changed_files[:4])} of {len(record.files)} files "
            "have another SHA-256; give the model that was measured by --model"
        )
    return source


def verify_estimates(
    estimates: RecordedEstimates,
    inputs: RecordedInputs,
    *,
    device: str = "",
    threads: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Verification:
    """Measure a model again by its record, and compare the rows."""
    record = estimates.record
    protocol = record.protocol
    first = dict(zip(ESTIMATE_COLUMNS, estimates.rows[0], strict=True))
    options = MeasurementOptions(
        measures=protocol.measures,
        windows=protocol.windows or 1,
        window_characters=protocol.window_characters or 1,
        seed=protocol.seed,
        batch_vectors=protocol.batch_vectors,
        batch_size=protocol.batch_size,
        threads=threads,
        device=device or choose_recorded_device(record.device),
    )
    result = measure_source(
        inputs.source,
        inputs.text,
        options,
        name=str(first["model"]),
        revision=str(first["revision"]),
        progress=progress,
    )
    recorded_versions = {**record.versions, "device": record.device}
    current_versions = {**list_versions(), "device": str(find_device(options.device))}
    if inputs.source.is_vector_file:
        current_versions["device"] = record.device
    changed_versions = {
        name: (recorded_versions.get(name, "none"), current_versions.get(name, "none"))
        for name in sorted(recorded_versions.keys() | current_versions.keys())
        if recorded_versions.get(name) != current_versions.get(name)
    }
    differences = compare_rows(estimates.rows, result.estimates)
    return Verification(result.label, len(estimates.rows), differences, changed_versions)


def choose_recorded_device(name: str) -> str | None:
    """Return the device of a record; None, for the default device, if this machine lacks it."""
    try:
        return str(find_device(name))
    except InputError:
        return None


def compare_rows(
    file_rows: Sequence[Sequence[Any]], second_rows: Sequence[Sequence[Any]]
) -> list[Difference]:
    """Compare rows of a file with rows of a second measurement, and return the differences, the largest first."""
    file_index = _index_rows(file_rows)
    second_index = _index_rows(second_rows)
    differences = []
    for place in dict.fromkeys([*file_index, *second_index]):
        if place not in file_index or place not in second_index:
            file_cell = "" if place in file_index else "no row"
            second_cell = "" if place in second_index else "no row"
            differences.append(
                Difference(*place, "row", file_cell, second_cell, math.inf, Agreement.DIFFERENT)
            )
            continue
        cells = _compare_cells(place, file_index[place], second_index[place])
        if cells:
            differences.append(max(cells, key=_make_sort_key))
    return sorted(differences, key=_make_sort_key, reverse=True)


def _make_sort_key(difference: Difference) -> tuple[bool, float]:
    return difference.agreement is Agreement.DIFFERENT, difference.share


def _index_rows(rows: Sequence[Sequence[Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """Name the cells of rows by their columns, and the rows by estimator and layer."""
    cells_by_place = {}
    for row in rows:
        cells = dict(zip(ESTIMATE_COLUMNS, row, strict=True))
        layer = parse_cell(cells["layer"])
        cells_by_place[str(cells["estimator"]), "" if math.isnan(layer) else f"{layer:g}"] = cells
    return cells_by_place


def _compare_cells(
    place: tuple[str, str], file_cells: Mapping[str, Any], second_cells: Mapping[str, Any]
) -> list[Difference]:
    """Return the cells of a row that differ; differences of numbers are shares of the row's value."""
    scale = max(abs(parse_cell(file_cells["value"])), abs(parse_cell(second_cells["value"])))
    differences = []
    for column in ESTIMATE_COLUMNS:
        file_cell = _format_cell(file_cells[column])
        second_cell = _format_cell(second_cells[column])
        if column in TEXT_COLUMNS:
            share = 0.0 if second_cell == file_cell else math.inf
            tolerance = 0.0
        else:
            file_number = parse_cell(file_cells[column])
            second_number = parse_cell(second_cells[column])
            are_undefined = math.isnan(file_number) and math.isnan(second_number)
            if are_undefined or file_number == second_number:
                continue
            share = abs(file_number - second_number)
            tolerance = SHARE_TOLERANCE
            if column not in SHARES:
                size = max(abs(file_number), abs(second_number)) if column in COUNTS else scale
                share = share / size if size else math.inf
                tolerance = VALUE_TOLERANCE
        if share:
            share = math.inf if math.isnan(share) else share  # NaN if only one number is undefined
            agreement = Agreement.LAST_DIGITS if share <= tolerance else Agreement.DIFFERENT
            differences.append(Difference(*place, column, file_cell, second_cell, share, agreement))
    return differences


def _format_cell(cell: Any) -> str:
    return "" if cell is None else f"{cell}"


def format_verification(verification: Verification) -> list[str]:
    """Describe whether the values of a model hold, the rows that differ, and the software that has changed."""
    label, rows, differences, changed_versions = verification
    number = len(differences)
    match verification.agreement:
        case Agreement.EQUAL:
            sentence = f"{label}: holds. All {rows} rows are equal"
        case Agreement.LAST_DIGITS:
            sentence = (
                f"{label}: holds to the last digits. {number} of {rows} rows differ, by at most "
                f"{differences[0].share:.1g} of the value, or of all vectors where the cell is a share of them"
            )
        case Agreement.DIFFERENT:
            number = sum(row.agreement is Agreement.DIFFERENT for row in differences)
            sentence = f"{label}: does not hold. {number} of {rows} rows differ"
    if changed_versions:
        words = [
            f"{name} {current_version} (the file: {file_version})"
            for name, (file_version, current_version) in changed_versions.items()
        ]
        sentence = f"{sentence}, with {', '.join(words)}"
    lines = [f"{sentence}."]
    if verification.agreement is Agreement.DIFFERENT:
        different_rows = [row for row in differences if row.agreement is Agreement.DIFFERENT]
        lines += [_format_difference(row) for row in different_rows[:MOST_SHOWN]]
        if len(different_rows) > MOST_SHOWN:
            lines.append(f"  and {len(different_rows) - MOST_SHOWN} more")
    return lines


def _format_difference(row: Difference) -> str:
    layer = f"layer {row.layer}" if row.layer else "mean"
    cells = [cell or "empty" for cell in (row.file_cell, row.second_cell)]
    return (
        f"  {row.estimator}, {layer}: `{row.column}` is {cells[0]} in the file, and {cells[1]} here"
    )
