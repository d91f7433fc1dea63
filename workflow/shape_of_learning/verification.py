"""Measure again what a file of estimates states, and compare the values: the command ``verify``."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

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
from shape_of_learning.results import read_table

# Sums in another order, as of another processor or version of PyTorch, change a value and its interval by less than
# this share of the value; a share of vectors may change by one vector of a batch. Of SmolLM2-135M, windows that go
# through the model one by one change no cell of any of 160 rows by more than a hundredth of it.
LAST_DIGITS, ONE_VECTOR = 1e-4, 1e-3
SHARES = ("near_duplicates", "same_token")
COUNTS = ("n", "n_unique", "windows", "layers", "effective_windows")
MOST_SHOWN = 10  # rows that differ


class EditedFileError(InputError):
    """A file whose rows or record were changed after they were written."""


class Agreement(Enum):
    """How the values of a second measurement agree with those of a file."""

    EQUAL = "equal"
    LAST_DIGITS = "equal to the last digits"
    DIFFERENT = "different"


class Difference(NamedTuple):
    """The cells of a row that differ most.

    Attributes
    ----------
    estimator, layer : str
        Of the row; the layer of a mean is empty.
    column : str
    stated, measured : str
        Cells of the file and of the second measurement; empty where a row or a value is missing.
    share : float
        Of the value, that the cells differ by; infinite if they are no numbers.
    agreement : Agreement
    """

    estimator: str
    layer: str
    column: str
    stated: str
    measured: str
    share: float
    agreement: Agreement


class Verification(NamedTuple):
    """The comparison of the rows of one model with a second measurement.

    Attributes
    ----------
    label : str
        The model's name in the file.
    rows : int
        Number of rows that were compared.
    differences : list of Difference
        One for each row that is not equal, the largest first.
    changed_versions : dict of str to (str, str)
        Software of the file and of this machine, where they differ; also the device.
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
    """Read the rows of each model in a file of the command ``measure``, with their record.

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
            f"{name} carries no record of a measurement ({reason}); verify a file of `measure --csv` or `--json`, "
            "which carries one. The differences of `compare` are verified by the files of its two models, the results "
            "of a run by `make verify`"
        ) from None


def _read_rows(file: Path) -> list[dict[str, Any]]:
    """Read the cells of a CSV or JSON file by column; ValueError or TypeError if it is neither."""
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
            f"{name} was edited after it was written: the SHA-256 that it states is not that of its record and its "
            f"{len(rows)} rows of `{label}`; take the file as `measure` wrote it"
        )
    return estimates


class RecordedInputs(NamedTuple):
    """The model and the text that a record names, on this machine."""

    source: ModelSource
    text: Path


def find_recorded_inputs(
    estimates: Sequence[RecordedEstimates], model: str, text: Path | None, folder: Path
) -> list[RecordedInputs]:
    """Find the inputs of each measurement; InputError if one is missing or another, before anything is measured."""
    texts = [find_recorded_text(recorded.record, text, folder) for recorded in estimates]
    sources = [find_recorded_source(recorded.record, model) for recorded in estimates]
    return [RecordedInputs(*pair) for pair in zip(sources, texts, strict=True)]


def find_recorded_text(record: MeasurementRecord, text: Path | None, folder: Path) -> Path:
    """Find the text that a model was measured on; InputError if it is missing or another.

    Parameters
    ----------
    record : MeasurementRecord
    text : Path or None
        The file that the user gives; otherwise that of the record.
    folder : Path
        For a copy of the documentation of Python; returned if no text was read.
    """
    stated = record.text
    if stated is None:
        return folder
    remedy = "give the text by --text FILE"
    if text is None and stated.source == "stream":
        raise InputError(
            f"the text came from {stated.path}, which cannot be read a second time; {remedy}"
        )
    if text is None and stated.source == "built-in":
        text = folder / "python_topics.txt"
        text.write_text(read_demo_text(), encoding="utf-8")
        python = record.versions.get("python", "another version")
        remedy = f"verify with Python {python}, whose documentation it was"
    elif text is None:
        text = expand_home(stated.path)
    if not text.is_file():
        raise InputError(f"the text {text} is missing; {remedy}")
    digest = remember_sha256(text)
    if digest != stated.sha256:
        raise InputError(
            f"{text.name} is not the text of the file: its SHA-256 begins with {digest[:16]}, that of the file with "
            f"{stated.sha256[:16]}; {remedy}"
        )
    return text


def find_recorded_source(record: MeasurementRecord, model: str = "") -> ModelSource:
    """Find the model that was measured; InputError if it is missing or has other files.

    Parameters
    ----------
    record : MeasurementRecord
    model : str
        Where the model is now, if not where the record says.
    """
    if model:
        source = find_source(model)
    else:
        source = find_source(record.model, record.commit or "main")
    if source.is_vector_file != (record.text is None):
        raise InputError(f"{model} is no model of the kind that was measured; correct --model")
    files = hash_files(source)
    if len(record.files) == len(files) == 1:  # a single file may have another name
        is_same = [*files.values()] == [*record.files.values()]
        changed = [] if is_same else [*files]
    else:
        names = sorted(record.files.keys() | files.keys())
        changed = [name for name in names if files.get(name) != record.files.get(name)]
    if changed:
        raise InputError(
            f"{source.model} is not the model of the file: {', '.join(changed[:4])} of {len(record.files)} files have "
            "another SHA-256; give the model that was measured by --model"
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
    there = {**record.versions, "device": record.device}
    here = {**list_versions(), "device": str(find_device(options.device))}
    if inputs.source.is_vector_file:
        here["device"] = record.device
    changed = {
        name: (there.get(name, "none"), here.get(name, "none"))
        for name in sorted(there.keys() | here.keys())
        if there.get(name) != here.get(name)
    }
    return Verification(
        result.label, len(estimates.rows), compare_rows(estimates.rows, result.estimates), changed
    )


def choose_recorded_device(name: str) -> str | None:
    """Return the device of a record if this machine has it; otherwise None, for the default."""
    try:
        return str(find_device(name))
    except InputError:
        return None


def compare_rows(
    stated: Sequence[Sequence[Any]], measured: Sequence[Sequence[Any]]
) -> list[Difference]:
    """Compare two lists of rows of estimates by estimator and layer; return the rows that differ, the largest first."""
    stated_rows, measured_rows = _index_rows(stated), _index_rows(measured)
    differences = []
    for place in dict.fromkeys([*stated_rows, *measured_rows]):
        if place not in stated_rows or place not in measured_rows:
            stated_row = "" if place in stated_rows else "no row"
            measured_row = "" if place in measured_rows else "no row"
            differences.append(
                Difference(*place, "row", stated_row, measured_row, math.inf, Agreement.DIFFERENT)
            )
            continue
        cells = _compare_cells(place, stated_rows[place], measured_rows[place])
        if cells:
            differences.append(max(cells, key=_sort_key))
    return sorted(differences, key=_sort_key, reverse=True)


def _sort_key(difference: Difference) -> tuple[bool, float]:
    return difference.agreement is Agreement.DIFFERENT, difference.share


def _index_rows(rows: Sequence[Sequence[Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """Name the cells of rows by their columns, and the rows by estimator and layer."""
    indexed = {}
    for row in rows:
        cells = dict(zip(ESTIMATE_COLUMNS, row, strict=True))
        layer = parse_cell(cells["layer"])
        indexed[str(cells["estimator"]), "" if math.isnan(layer) else f"{layer:g}"] = cells
    return indexed


def _compare_cells(
    place: tuple[str, str], stated: Mapping[str, Any], measured: Mapping[str, Any]
) -> list[Difference]:
    """Return the cells of a row that differ; differences of numbers are shares of the row's value."""
    scale = max(abs(parse_cell(stated["value"])), abs(parse_cell(measured["value"])))
    differences = []
    for column in ESTIMATE_COLUMNS:
        here, there = _format_cell(measured[column]), _format_cell(stated[column])
        if column in TEXT_COLUMNS:
            share, most = 0.0 if here == there else math.inf, 0.0
        else:
            one, other = parse_cell(stated[column]), parse_cell(measured[column])
            if one == other or (math.isnan(one) and math.isnan(other)):
                continue
            share, most = abs(one - other), ONE_VECTOR
            if column not in SHARES:
                size = max(abs(one), abs(other)) if column in COUNTS else scale
                share, most = share / size if size else math.inf, LAST_DIGITS
        if share:
            share = math.inf if math.isnan(share) else share  # one is undefined
            agreement = Agreement.LAST_DIGITS if share <= most else Agreement.DIFFERENT
            differences.append(Difference(*place, column, there, here, share, agreement))
    return differences


def _format_cell(cell: Any) -> str:
    return "" if cell is None else f"{cell}"


def format_verification(verification: Verification) -> list[str]:
    """Say whether the values of a model hold, which rows differ, and with which other software they were measured."""
    label, rows, differences, changed = verification
    number = len(differences)
    match verification.agreement:
        case Agreement.EQUAL:
            sentence = f"{label}: holds. All {rows} rows are equal"
        case Agreement.LAST_DIGITS:
            sentence = (
                f"{label}: holds to the last digits. {number} of {rows} rows differ, by at most "
                f"{differences[0].share:.1g} of the value"
            )
        case Agreement.DIFFERENT:
            number = sum(row.agreement is Agreement.DIFFERENT for row in differences)
            sentence = f"{label}: does not hold. {number} of {rows} rows differ"
    if changed:
        words = [f"{name} {here} (the file: {there})" for name, (there, here) in changed.items()]
        sentence = f"{sentence}, with {', '.join(words)}"
    lines = [f"{sentence}."]
    if verification.agreement is Agreement.DIFFERENT:
        shown = [row for row in differences if row.agreement is Agreement.DIFFERENT]
        lines += [_format_difference(row) for row in shown[:MOST_SHOWN]]
        if len(shown) > MOST_SHOWN:
            lines.append(f"  and {len(shown) - MOST_SHOWN} more")
    return lines


def _format_difference(row: Difference) -> str:
    layer = f"layer {row.layer}" if row.layer else "mean"
    cells = [cell or "empty" for cell in (row.stated, row.measured)]
    return (
        f"  {row.estimator}, {layer}: `{row.column}` is {cells[0]} in the file, and {cells[1]} here"
    )
