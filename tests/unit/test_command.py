"""The command handles odd arguments, files and tables, pipes, and machines without a network."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
import torch
from typer.testing import CliRunner

import shape_of_learning as sol
import tiny_models
from shape_of_learning.checkpoints.local import name_local
from shape_of_learning.command_line import app
from shape_of_learning.machine import count_cores, read_total_memory
from shape_of_learning.metrics.tidy import ESTIMATE_COLUMNS
from shape_of_learning.one_model.measurement import measure_checkpoint
from shape_of_learning.one_model.options import MeasurementOptions
from shape_of_learning.results import draw_plot

WORKFLOW = Path(__file__).parents[2] / "workflow"
ESCAPE = "\x1b[31mred\x1b]0;title\x07"
MOST_SECONDS = 60  # of a refusal, on a busy machine
LONGEST = 900  # characters of a sentence
# Words of remedies that need a configuration, which users of the command do not have.
OF_A_CONFIGURATION = re.compile(
    r"config/models|in the entry|model's entry|key `models`|(sampling|measurement|embeddings|corpus)\.\w"
)
QUICK = (
    *("--windows", "40", "--window-characters", "60", "--batch-vectors", "500", "--threads", "1"),
    *("--measures", "two_nn,anisotropy"),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a model, a text, its table, and odd files."""
    folder = tmp_path_factory.mktemp("place")
    for name in ("model", "empty", "listed", "broken"):
        (folder / name).mkdir()
    tiny_models.save_tiny_model(folder / "model", "gpt_neox", head=True)
    (folder / "listed/config.json").write_text("[1, 2]")
    (folder / "broken/config.json").write_bytes(bytes(range(256)))
    (folder / "text.txt").write_text("".join(tiny_models.TEXT * 100))
    (folder / "nothing.txt").touch()
    (folder / "one.txt").write_text("x")
    (folder / "binary.txt").write_bytes(bytes(range(256)) * 20)
    (folder / "utf16.txt").write_text("words " * 1000, encoding="utf-16")
    (folder / "loop").symlink_to("loop")
    (folder / "binary.yaml").write_bytes(b"\xff\x00\xfe")
    (folder / "list.yaml").write_text("[1, 2]")
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(folder)  # the name of a socket is short
        listener.bind("socket")
        os.chdir(here)
    text, csv = folder / "text.txt", folder / "table.csv"
    result = invoke("measure", folder / "model", "--text", text, *QUICK, "--csv", csv)
    assert result.exit_code == 0, result.output
    return folder


def invoke(*arguments, **options):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **options)


def read_refusal(*arguments):
    """Run a command that is refused, and return its last line."""
    start = time.monotonic()
    result = invoke(*arguments)
    assert time.monotonic() - start < MOST_SECONDS
    assert result.exit_code in (1, 2), result.output
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    assert result.output.replace("\n", "").isprintable()
    last = result.output.strip().splitlines()[-1]
    assert len(last) < LONGEST
    assert last.startswith(("ERROR: ", "Error: ")), result.output
    assert not OF_A_CONFIGURATION.search(last), last
    return last


OPTIONS = {
    "no measures": (["--measures", ""], "names no measure"),
    "a comma": (["--measures", ", ,"], "names no measure"),
    "a typo": (["--measures", "two_n"], "two_nn"),
    "two by a semicolon": (["--measures", "two_nn;mada"], "did you mean `two_nn`"),
    "an escape for a measure": (["--measures", ESCAPE], "[31mred"),
    "a measure of weights": (["--measures", "gain_length"], "weights"),
    "no windows": (["--windows", "0"], "--windows"),
    "half a window": (["--windows", "1.5"], "--windows"),
    "a million windows": (["--windows", "1000000"], "--windows"),
    "no characters": (["--window-characters", "0"], "--window-characters"),
    "a long window": (["--window-characters", "1000000000"], "--window"),
    "a small batch": (["--batch-vectors", "5"], "--batch-vectors"),
    "a batch of all there is": (["--batch-vectors", "1000000000000"], "--batch-vectors"),
    "no threads": (["--threads", "0"], "--threads"),
    "no such text": (["--text", "none.txt"], "none.txt"),
    "a folder for a text": (["--text", "empty"], "is a folder"),
    "an empty text": (["--text", "nothing.txt"], "nothing.txt"),
    "one character": (["--text", "one.txt"], "one.txt"),
    "bytes": (["--text", "binary.txt"], "binary.txt"),
    "another encoding": (["--text", "utf16.txt"], "utf16.txt"),
    "an endless device": (["--text", "/dev/zero"], "device"),
    "a folder for a table": (["--csv", "empty"], "is a folder"),
    "a name of a folder": (["--csv", "new/"], "not the name of a file"),
    "no name": (["--csv", ""], "not the name of a file"),
    "no such folder": (["--csv", "none/x.csv"], "not a folder"),
    "no such user": (["--csv", "~nobody-is-called-so/x.csv"], "not a folder"),
    "a file for a folder": (["--csv", "text.txt/x.csv"], "not a folder"),
    "links in a circle": (["--csv", "loop"], "circle"),
    "a socket": (["--csv", "socket"], "socket"),
    "two in one": (["--csv", "x", "--json", "./x"], "two outputs"),
    "two to the standard output": (["--csv", "-", "--json", "/dev/stdout"], "standard output"),
    "the text itself": (["--csv", "text.txt"], "both an input and an output"),
    "the model's configuration": (["--json", "model/config.json"], "both an input and an output"),
    "the model's weights": (["--csv", "model/model.safetensors"], "both an input and an output"),
    "another picture": (["--plot", "x.jpg"], ".svg"),
    "a picture of no kind": (["--plot", "picture"], ".svg"),
    "a long name": (["--csv", "x" * 300], "too long"),
    "a revision of a folder": (["--revision", "nonsense"], "--revision"),
    "no such option": (["--colour"], "--colour"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_an_odd_option_is_refused_by_name_and_leaves_nothing(place, monkeypatch, name):
    options, words = OPTIONS[name]
    monkeypatch.chdir(place)
    times = {file: file.lstat().st_mtime_ns for file in place.rglob("*")}
    text = [] if "--text" in options else ["--text", "text.txt"]
    quick = ["--measures", "two_nn"] if "--measures" not in options else []
    for option in ("--windows", "--window-characters", "--batch-vectors"):
        quick += [option, QUICK[QUICK.index(option) + 1]] if option not in options else []
    assert words in read_refusal("measure", "model", *text, *quick, *options)
    assert {file: file.lstat().st_mtime_ns for file in place.rglob("*")} == times


MODELS = {
    "./missing": "there is no folder",
    "missing/": "there is no folder",
    "/missing/model": "there is no folder",
    "~/missing model": "there is no folder",
    "~nobody-is-called-so/x": "there is no folder",
    "../a/b/c": "there is no folder",
    "a/b/c": "there is no folder",
    "two words": "there is no folder",
    "ünï/cöde": "there is no folder",
    "missing.gguf": "missing.gguf is missing",
    "": "",
    "empty": "config.json",
    "listed": "config.json",
    "broken": "config.json",
    "text.txt": "text.txt",
    "package:": "no package",
    "package:../x": "no package",
    "package:os": "no package",
    "package:json/none": "there is no folder",
    f"./{ESCAPE}": r"\x1b[31mred",
}


@pytest.mark.parametrize("model", MODELS)
def test_a_missing_local_model_is_named_and_no_network_is_blamed(place, monkeypatch, model):
    monkeypatch.chdir(place)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    message = read_refusal("measure", model, "--text", "text.txt", *QUICK)
    assert MODELS[model] in message
    assert "network" not in message


def test_compared_folders_have_no_revisions(place, monkeypatch):
    monkeypatch.chdir(place)
    assert "no revision `step1`" in read_refusal("compare", "model@step1", "model")
    assert "there is no folder" in read_refusal("compare", "model", "./other@step1")
    assert "--revision" in read_refusal("measure", "org/name@step1", "--revision", "step2")


LINE = {"model": "m", "role": "decoder", "revision": "main", "estimator": "two_nn", "value": "2"}


def make_odd_tables(table: Path):
    """Return odd tables made of a right one, each with a part of the sentence that refuses it, or nothing."""
    right = table.read_text()
    header, first, *lines = right.splitlines()
    names = header.split(",")

    def replace_cell(column, cell):
        cells = first.split(",")
        cells[names.index(column)] = cell
        return "\n".join([header, ",".join(cells), *lines])

    frame = pd.read_csv(table)
    return {
        "as it is": (right, ""),
        "marked as UTF-8": ("\ufeff" + right, ""),
        "of Windows": (right.replace("\n", "\r\n"), ""),
        "with layers as 1.0": (frame.astype({"layer": float}).to_csv(index=False), ""),
        "with a column more": (frame.assign(note="x").to_csv(index=False), ""),
        "with another order": (frame[frame.columns[::-1]].to_csv(index=False), ""),
        "with nan": (frame.to_csv(index=False, na_rep="nan"), ""),
        "with infinity": (replace_cell("value", "inf"), ""),
        "an empty line": (right.replace("\n", "\n\n"), ""),
        "text for a number": (replace_cell("value", "many"), "'many' for a number in `value`"),
        "infinitely many windows": (replace_cell("windows", "1e999"), "finite number in `windows`"),
        "half a layer": (replace_cell("layer", "1.5"), "whole number in `layer`"),
        "an unknown reason": (replace_cell("reason", "why not"), "'why not' in `reason`"),
        "an infinite layer": (replace_cell("layer", "inf"), "whole number in `layer`"),
        "a long cell": (replace_cell("model", "x" * 200_000), "field larger"),
        "a measure that is none": (
            replace_cell("estimator", ESCAPE),
            r"unknown measures: \x1b[31mred",
        ),
        "empty": ("", "lacks the columns"),
        "without rows": (header, "no row"),
        "other columns": ("a,b\n1,2\n", "lacks the columns"),
        "semicolons": (right.replace(",", ";"), "lacks the columns"),
        "a short line": (f"{right}m,decoder\n", "has 2 cells"),
        "an open quote": (f'{right}"m', "no table of estimates"),
        "a column twice": (header + ",model\n", "twice"),
        "zeros": ("\0" * 100, "no table of estimates"),
        "UTF-16": (right.encode("utf-16"), "no table of estimates"),
        "bytes": (bytes(range(256)), "no table of estimates"),
    }


def test_a_table_of_a_spreadsheet_is_read_or_refused_in_a_sentence(place, tmp_path, monkeypatch):
    odd, page = tmp_path / "odd.csv", tmp_path / "page.html"
    for name, (content, reason) in make_odd_tables(place / "table.csv").items():
        odd.write_bytes(content if isinstance(content, bytes) else content.encode())
        if reason:
            assert reason in read_refusal("explore", odd, page), name
            assert not page.exists()
        else:
            result = invoke("explore", odd, page)
            assert result.exit_code == 0, (name, result.output)
            page.unlink()
    assert "missing" in read_refusal("explore", tmp_path / "none.csv", page)
    assert "both an input and an output" in read_refusal("explore", odd, odd)
    assert "missing" in read_refusal("explore", tmp_path, page)


AUDITS = {
    "./missing": "no repository",
    "~nobody-is-called-so/x": "no repository",
    "missing.yaml": "cannot be read",
    "binary.yaml": "not valid YAML",
    "list.yaml": "no file of models",
    "empty": "empty",
    "none/step{step}": "step{step}",
    "two words": "no repository",
    ESCAPE: r"\x1b[31mred",
}


@pytest.mark.parametrize("target", AUDITS)
def test_an_audit_of_a_missing_target_is_refused_and_no_hub_is_named(place, monkeypatch, target):
    monkeypatch.chdir(place)
    result = invoke("audit", target)
    assert result.exit_code == 2, result.output
    assert AUDITS[target] in result.output
    assert result.output.replace("\n", "").isprintable()
    assert "Asking" not in result.output
    assert "network" not in result.output


def start_command(*arguments, **options):
    """Start the command in a process."""
    environment = {**os.environ, "PYTHONPATH": str(WORKFLOW), **options.pop("env", {})}
    program = [sys.executable, "-m", "shape_of_learning", *map(str, arguments)]
    return subprocess.Popen(program, env=environment, text=True, **options)


def test_words_go_to_standard_error_if_the_standard_output_takes_data(place):
    text = (place / "text.txt").open()
    run = start_command(
        *("measure", place / "model", "--text", "-", *QUICK, "--json", "-"),
        stdin=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    data, words = run.communicate(timeout=600)
    assert run.returncode == 0, words
    right = pd.read_csv(place / "table.csv")
    assert [row["value"] for row in json.loads(data)] == list(right["value"])
    assert "TwoNN" in words


def test_a_table_from_a_pipe_gives_a_page_into_a_pipe(place):
    table = (place / "table.csv").open()
    run = start_command(
        "explore", "-", "-", stdin=table, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    page, words = run.communicate(timeout=600)
    assert run.returncode == 0, words
    invoke("explore", place / "table.csv", place / "page.html")
    assert page == (place / "page.html").read_text()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_ends_the_command_with_a_sentence_and_a_closed_pipe_quietly(place):
    page = place / "table.csv"
    run = start_command("explore", page, "/dev/full", stderr=subprocess.PIPE)
    _, words = run.communicate(timeout=600)
    assert run.returncode == 1
    assert words.startswith("ERROR: the disk is full: /dev/full could not be written")
    run = start_command("explore", page, "-", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    run.stdout.close()  # as `head` does
    words = run.stderr.read()
    assert run.wait(600) == 128 + signal.SIGPIPE
    assert words == ""


def test_the_command_has_a_version_and_short_help():
    assert invoke("--version").output.startswith("shape-of-learning ")
    assert "--text" in invoke("measure", "-h").output
    assert invoke("measur").exit_code == 2


def test_several_models_are_measured_into_one_table_of_80_columns(place, monkeypatch):
    monkeypatch.chdir(place)
    options = ("--text", "text.txt", *QUICK[:8], "--measures", "all", "--csv", "two.csv")
    result = invoke("measure", "model", "./model", *options)
    assert result.exit_code == 0, result.output
    table = pd.read_csv("two.csv")
    assert list(dict.fromkeys(table["model"])) == ["model", "./model"]
    numbers = [rows["value"].to_numpy() for _, rows in table.groupby("model")]
    assert len(numbers[0]) == len(numbers[1])
    rows = [line for line in result.output.splitlines() if re.match(r" +(layer|mean|\d)", line)]
    assert max(map(len, rows)) <= 80
    findings = [line for line in result.output.splitlines() if "block" in line and "model" in line]
    assert len(findings) == 4  # anisotropy and dimension of each model
    assert "one model; write MODEL@REVISION" in read_refusal("measure", "model", "b", "--name", "x")
    assert "device `nowhere`" in read_refusal("measure", "model", *options, "--device", "nowhere")


def test_a_file_of_vectors_is_measured_without_a_text(tmp_path, monkeypatch):
    """Each kind of file gives the values of the matrix itself; groups give intervals."""
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).standard_normal((600, 6)).astype(np.float32)
    np.save("plain.npy", X)
    np.savez("grouped.npz", vectors=X, groups=np.arange(600) // 20, other=X[:2])
    torch.save({"x": torch.from_numpy(X), "step": torch.tensor(3)}, "tensor.pt")
    safetensors.numpy.save_file({"x": X}, "tensor.safetensors")
    names = ["plain.npy", "grouped.npz", "tensor.pt", "tensor.safetensors"]
    result = invoke(
        "measure", *names, "--measures", "two_nn,anisotropy", "--csv", "v.csv", "--plot", "v.png"
    )
    assert result.exit_code == 0, result.output
    assert "documentation that comes with Python" not in result.output
    table = pd.read_csv("v.csv").query("layer == 0")
    expected = sol.measure(X, measures=["two_nn", "anisotropy"]).query("layer == 0")["value"]
    for name, rows in table.groupby("model", sort=False):
        assert sorted(rows["value"]) == pytest.approx(sorted(expected), rel=1e-3), name
        assert rows["low"].notna().all() == (name == "grouped.npz"), name
    assert "leave out --text" in read_refusal(
        "measure", "plain.npy", "--text", str(tmp_path / "plain.npy")
    )
    np.savez("two.npz", a=X, b=X)
    assert "2 matrices" in read_refusal("measure", "two.npz")
    (tmp_path / "broken.npy").write_bytes(b"no array")
    assert "broken.npy cannot be read" in read_refusal("measure", "broken.npy")
    np.save("object.npy", np.array([{}], dtype=object))
    assert "object.npy cannot be read" in read_refusal("measure", "object.npy")
    assert "there is no file" in read_refusal("measure", "missing.npy")
    assert "no revision `step1`" in read_refusal("measure", "plain.npy", "--revision", "step1")
    np.save("empty.npy", X[:0])
    assert "0 vectors" in read_refusal("measure", "empty.npy")
    np.savez("unknown.npz", vectors=X, groups=np.full(len(X), np.nan))
    assert "NaN" in read_refusal("measure", "unknown.npz")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/models/pythia-70m", "pythia-70m"),
        ("/models/pythia-70m/main", "pythia-70m"),
        ("~/pythia-70m/main/", "pythia-70m"),
        ("package:minilm/model", "minilm"),
        ("/home/run/checkpoint-500", "run/checkpoint-500"),
        ("/home/run/step1000", "run/step1000"),
        ("/home/stepwise", "stepwise"),
        ("checkpoint-500", "checkpoint-500"),
        ("/home/model.gguf", "home"),
    ],
)
def test_a_folder_is_named_by_the_part_that_distinguishes_models(path, name):
    assert name_local(path) == name


def test_a_comparison_names_its_direction(place, monkeypatch):
    monkeypatch.chdir(place)
    result = invoke("compare", "model", "./model", "--text", "text.txt", *QUICK)
    assert "B - A: ./model - model" in result.output


def test_a_system_without_counts_of_cores_and_memory_suffices(place, monkeypatch):
    """As macOS, where Python has no `sched_getaffinity`, and Windows, which has no `sysconf`."""
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.delattr(os, "sysconf", raising=False)
    assert 1 <= count_cores() <= (os.cpu_count() or 1)
    assert read_total_memory() is None
    quick = [word for word in QUICK if word not in ("--threads", "1")]
    result = invoke("measure", place / "model", "--text", place / "text.txt", *quick)
    assert result.exit_code == 0, result.output


@pytest.fixture(scope="module")
def silent_server():
    """The address of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        guests = []
        threading.Thread(target=lambda: guests.append(server.accept()), daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (["measure", "org/name"], "silent"),
        (["compare", "org/a", "org/b@step1"], "refused"),
        (["audit", "org/name"], "refused"),
        (["doctor"], "silent"),
        (["measure", "name"], "no name"),
    ],
)
def test_without_a_network_the_command_soon_says_what_it_waits_for_and_what_to_do(
    silent_server, arguments, kind
):
    endpoints = {
        "silent": silent_server,
        "refused": "http://127.0.0.1:9",
        "no name": "http://x.invalid",
    }
    start, lines = time.monotonic(), []
    run = start_command(
        *arguments, env={"HF_ENDPOINT": endpoints[kind], "HF_HUB_OFFLINE": "0"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    for line in run.stdout:
        lines.append((time.monotonic() - start, line))
    run.wait(60)
    first, last = lines[0], next(line for line in lines if "check the network" in line[1])
    assert endpoints[kind] in first[1]
    assert first[0] < 3 * measure_slowness(), lines
    assert last[0] < 20 * measure_slowness(), lines
    assert "HF_ENDPOINT" in last[1]


def measure_slowness() -> float:
    """Measure how many times longer than alone a program takes now, at least 1."""
    start = time.monotonic()
    used = time.process_time()
    while time.process_time() - used < 0.2:
        pass
    return max(1.0, 2 * (time.monotonic() - start) / 0.2)


def test_a_plot_of_one_block_of_any_revision_shows_all_values_and_gaps(tmp_path):
    model = tiny_models.save_tiny_model(tmp_path, "gpt_neox", layers=1)
    text = tmp_path / "text.txt"
    text.write_text("".join(tiny_models.TEXT * 100))
    for revision in ("refs/pr/1", "main"):
        options = MeasurementOptions(
            ["anisotropy"], windows=40, window_characters=60, batch_vectors=500, threads=1
        )
        rows = measure_checkpoint(model, text, options, name="one", revision=revision).estimates
        draw_plot(rows, tmp_path / "plot.svg", "svg", "a text")
        curve = re.findall(r'<path d="(M [^"z]*)" clip-path', (tmp_path / "plot.svg").read_text())
        assert len(re.findall(r"[ML]", curve[-1])) == 2  # layers 0 and 1
        layer, *numbers = map(ESTIMATE_COLUMNS.index, ("layer", "value", "low", "high"))
        for row in rows:
            for place in numbers if row[layer] == 1 else ():
                row[place] = float("nan")
        draw_plot(rows, tmp_path / "gap.svg", "svg", "a text")
        gap = (tmp_path / "gap.svg").read_text()
        assert gap != (tmp_path / "plot.svg").read_text()
