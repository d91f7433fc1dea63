"""Files of values are measured again: they hold, were edited, or cannot be verified."""

import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
from typer.testing import CliRunner

import tiny_models
from hub_fetching import make_environment
from hub_server import HubRepository, serve_hub
from shape_of_learning.command_line import app
from shape_of_learning.metrics.tidy import ESTIMATE_COLUMNS
from shape_of_learning.one_model.measurement_record import MeasurementRecord, RecordedEstimates
from shape_of_learning.verification import Agreement, compare_rows, read_recorded_estimates

QUICK = (
    *("--windows", "40", "--window-characters", "60", "--batch-vectors", "500", "--threads", "1"),
    *("--measures", "two_nn,anisotropy"),
)
HOLDS, DIFFERS, NOT_VERIFIED = 0, 1, 2


def run_command(*arguments, **options):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **options)


@pytest.fixture
def place(measured_place, tmp_path, monkeypatch):
    """A copy of a folder with a model, a text and the files of a measurement, for a test to change."""
    for file in measured_place.rglob("*"):
        if file.is_file():
            copy = tmp_path / file.relative_to(measured_place)
            copy.parent.mkdir(exist_ok=True)
            copy.write_bytes(file.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def measured_place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("place")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        tiny_models.save_tiny_model(folder / "model", "gpt_neox", head=True)
        (folder / "text.txt").write_text("".join(tiny_models.TEXT * 100))
        X = np.random.default_rng(0).standard_normal((600, 6)).astype(np.float32)
        np.savez("vectors.npz", vectors=X, groups=np.arange(600) // 20)
        files = ("--csv", "table.csv", "--json", "table.json")
        result = run_command("measure", "model", "--text", "text.txt", *QUICK, *files)
        assert result.exit_code == 0, result.output
        files = ("--csv", "vectors.csv", "--json", "vectors.json")
        result = run_command("measure", "vectors.npz", "--measures", "two_nn,anisotropy", *files)
        assert result.exit_code == 0, result.output
    return folder


def rewrite(source, target, change):
    """Change the rows of a file of values, and state the digest of the changed content."""
    [estimates] = read_recorded_estimates(source, str(source))
    record = estimates.record.model_dump(mode="json")
    rows = [dict(zip(ESTIMATE_COLUMNS, row, strict=True)) for row in estimates.rows]
    change(rows, record)
    changed_estimates = RecordedEstimates(
        [[*row.values()] for row in rows], MeasurementRecord.model_validate(record)
    )
    rows[0]["record"] = json.dumps(changed_estimates.make_cell())
    pd.DataFrame(rows).to_csv(target, index=False)


FILES = ("table.csv", "table.json", "vectors.csv", "vectors.json")


@pytest.mark.parametrize("file", FILES)
def test_an_unchanged_file_holds(place, file):
    result = run_command("verify", file, "--threads", "1")
    assert result.exit_code == HOLDS, result.output
    assert "holds" in result.output


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("part", ["value", "record"])
def test_an_edited_file_is_refused_without_measuring(place, file, part):
    (place / "model/model.safetensors").unlink()  # nothing can be measured now
    text = (place / file).read_text()
    if part == "record":
        changed_text = re.sub(r'(seed"+: )0', r"\g<1>1", text)
    else:
        [estimates] = read_recorded_estimates(place / file, file)
        value = str(estimates.rows[1][ESTIMATE_COLUMNS.index("value")])
        changed_text = text.replace(value, f"{float(value) + 0.01}", 1)
    assert changed_text != text
    (place / file).write_text(changed_text)
    result = run_command("verify", file)
    assert result.exit_code == DIFFERS, result.output
    assert "edited" in result.output


def test_measuring_finds_a_value_that_was_changed_with_its_digest(place):
    def change(rows, record):
        rows[2]["value"] = str(float(rows[2]["value"]) + 0.01)

    rewrite(place / "table.csv", place / "forged.csv", change)
    result = run_command("verify", "forged.csv")
    assert result.exit_code == DIFFERS, result.output
    assert "1 of 10 rows" in result.output
    assert "layer 2" in result.output


def test_measuring_finds_a_row_that_was_removed_with_its_digest(place):
    rewrite(place / "vectors.csv", place / "forged.csv", lambda rows, record: rows.pop())
    result = run_command("verify", "forged.csv")
    assert result.exit_code == DIFFERS, result.output
    assert "no row" in result.output


@pytest.mark.parametrize("layer", ["1", "1.0"])
def test_a_false_row_before_the_true_row_of_a_layer_is_refused(place, layer):
    def change(rows, record):
        (first,) = [row for row in rows if (row["estimator"], row["layer"]) == ("two_nn", "1")]
        rows.insert(0, first | {"value": "9.9", "layer": layer})

    rewrite(place / "table.csv", place / "forged.csv", change)
    result = run_command("verify", "forged.csv")
    assert result.exit_code == DIFFERS, result.output
    assert "two rows" in result.output


@pytest.mark.parametrize(
    "key", ["windows", "window_characters", "batch_vectors", "batch_size", "seed"]
)
def test_a_record_with_an_impossible_number_is_refused(place, key):
    rows = pd.read_csv("table.csv", dtype=str, keep_default_na=False)
    record = json.loads(rows.loc[0, "record"])
    record["protocol"][key] = -3
    rows.loc[0, "record"] = json.dumps(record)
    rows.to_csv("absurd.csv", index=False)
    result = run_command("verify", "absurd.csv")
    assert result.exit_code == NOT_VERIFIED, result.output
    assert key in result.output


def test_rounding_errors_hold_and_changes_do_not(place):
    """The last digits of a value may differ, and those of an interval by the same share of the value."""

    def change(rows, record):
        rows[0]["value"] = repr(float(rows[0]["value"]) * (1 + 1e-6))
        rows[1]["low"] = repr(float(rows[1]["low"]) + 1e-6 * float(rows[1]["value"]))

    rewrite(place / "table.csv", place / "rounded.csv", change)
    result = run_command("verify", "rounded.csv")
    assert result.exit_code == HOLDS, result.output
    assert "2 of 10 rows differ" in result.output
    row = dict.fromkeys(ESTIMATE_COLUMNS, "")
    row |= {"estimator": "two_nn", "layer": 1, "value": 10.0, "n": 500, "same_token": 0.5}
    for column, cell, agreement in (
        ("value", 10.0005, Agreement.LAST_DIGITS),
        ("value", 10.01, Agreement.DIFFERENT),
        ("value", "", Agreement.DIFFERENT),
        ("value", float("inf"), Agreement.DIFFERENT),
        ("n", 501, Agreement.DIFFERENT),
        ("same_token", 0.5002, Agreement.LAST_DIGITS),
        ("suspect", "yes", Agreement.DIFFERENT),
    ):
        [difference] = compare_rows([[*row.values()]], [[*(row | {column: cell}).values()]])
        assert difference.column == column
        assert difference.agreement is agreement, (column, cell)
    assert not compare_rows([[*row.values()]], [[*row.values()]])


def test_other_software_is_named(place):
    def change(rows, record):
        record["versions"]["torch"] = "1.0.0"

    rewrite(place / "vectors.csv", place / "old.csv", change)
    result = run_command("verify", "old.csv")
    assert result.exit_code == HOLDS, result.output
    assert "1.0.0" in result.output
    assert "torch" in result.output


def test_another_model_or_text_is_no_verification(place):
    (place / "text.txt").write_text("".join(tiny_models.TEXT * 101))
    result = run_command("verify", "table.csv")
    assert result.exit_code == NOT_VERIFIED, result.output
    assert "--text" in result.output
    (place / "text.txt").rename(place / "other.txt")
    assert run_command("verify", "table.csv").exit_code == NOT_VERIFIED
    (place / "text.txt").write_text("".join(tiny_models.TEXT * 100))
    weights = safetensors.numpy.load_file("model/model.safetensors")
    next(iter(weights.values()))[0] += 1e-3
    safetensors.numpy.save_file(weights, "model/model.safetensors", {"format": "pt"})
    result = run_command("verify", "table.csv")
    assert result.exit_code == NOT_VERIFIED, result.output
    assert "model.safetensors" in result.output


def test_a_model_that_was_moved_is_given_by_its_new_place(place):
    (place / "model").rename(place / "moved")
    (place / "vectors.npz").rename(place / "moved.npz")
    assert run_command("verify", "table.csv").exit_code == NOT_VERIFIED
    assert run_command("verify", "table.csv", "--model", "moved").exit_code == HOLDS
    assert run_command("verify", "vectors.csv", "--model", "moved.npz").exit_code == HOLDS
    assert run_command("verify", "vectors.csv", "--model", "moved").exit_code == NOT_VERIFIED


def test_a_text_from_a_pipe_must_be_given_as_a_file(place):
    text = (place / "text.txt").read_bytes()
    command = ("measure", "./model", "model", "--text", "text.txt", *QUICK, "--json", "two.json")
    assert run_command(*command).exit_code == 0

    def change(rows, record):
        record["text"].update(source="stream", path="the standard input")

    rewrite(place / "table.csv", place / "piped.csv", change)
    result = run_command("verify", "piped.csv")
    assert result.exit_code == NOT_VERIFIED
    assert "--text FILE" in result.output
    (place / "again.txt").write_bytes(text)
    assert run_command("verify", "piped.csv", "--text", "again.txt").exit_code == HOLDS
    result = run_command("verify", "two.json")  # of two models
    assert result.exit_code == HOLDS, result.output
    assert result.output.count("holds") == 2
    assert run_command("verify", "two.json", "--model", "model").exit_code == NOT_VERIFIED


def test_tables_without_a_record_are_refused_in_one_sentence(place):
    table = pd.read_csv("table.csv")
    table.drop(columns="record").to_csv("plain.csv", index=False)
    pd.concat([table, table]).to_csv("twice.csv", index=False)
    result = run_command(
        "compare", "model", "model", "--text", "text.txt", *QUICK, "--csv", "changes.csv"
    )
    assert result.exit_code == 0, result.output
    (place / "empty.csv").touch()
    (place / "number.json").write_text("[1]")
    (place / "nothing.json").write_text("[]")
    table.assign(value="many").to_csv("words.csv", index=False)
    (place / "binary.csv").write_bytes(b"\xff\x00")
    names = ("plain", "twice", "changes", "empty", "binary", "words")
    for file in (*(f"{name}.csv" for name in names), "number.json", "nothing.json"):
        result = run_command("verify", file)
        assert result.exit_code == NOT_VERIFIED, (file, result.output)
        assert "no record" in result.output.splitlines()[-1], file
    assert "is missing" in run_command("verify", "missing.csv").output


def test_a_sorted_file_holds_and_has_one_record(place):
    table = pd.read_csv("table.csv")
    assert table["record"].notna().sum() == 1
    table.sort_values("value").to_csv("sorted.csv", index=False)
    result = run_command("verify", "sorted.csv")
    assert result.exit_code == HOLDS, result.output
    record = json.loads(table["record"][0])
    assert record["protocol"]["windows"] == 40
    assert record["text"]["path"] == "text.txt"
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= record["files"].keys()
    assert {"torch", "transformers", "numpy", "shape-of-learning"} <= record["versions"].keys()


@pytest.mark.long
def test_a_model_on_the_hub_is_measured_at_the_commit_of_the_file(place, hub_program):
    """The branch has moved on, so that the file holds only at its own commit."""
    (place / "hub").mkdir()
    repository = HubRepository(place / "hub", "org/model")
    commit = repository.commit("main", place / "model", large=("model.safetensors",))
    with serve_hub(place / "hub", hub_program) as endpoint:

        def run_on_hub(*arguments):
            program = [sys.executable, "-m", "shape_of_learning", *arguments]
            options = {
                "env": make_environment(endpoint, place),
                "capture_output": True,
                "text": True,
            }
            return subprocess.run(program, cwd=place, timeout=300, **options)

        files = ("--csv", "hub.csv", "--text", "text.txt")
        result = run_on_hub("measure", "org/model", *files, *QUICK)
        assert result.returncode == 0, result.stderr
        [estimates] = read_recorded_estimates(place / "hub.csv", "hub.csv")
        assert estimates.record.commit == commit
        assert estimates.record.revision == "main"
        tiny_models.save_tiny_model(place / "other", "llama", head=True)
        repository.commit("main", place / "other", large=("model.safetensors",))
        result = run_on_hub("verify", "hub.csv")
        assert result.returncode == HOLDS, result.stdout + result.stderr
