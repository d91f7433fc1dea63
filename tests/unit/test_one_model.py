"""One model without the workflow: in a notebook, in a training loop, on the command line."""

import base64
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import transformers as hf
from matplotlib.image import imread
from typer.testing import CliRunner

import shape_of_learning as sol
import tiny_models
from shape_of_learning import command_line
from shape_of_learning.command_line import app
from shape_of_learning.embeddings.forward_pass import ROUNDING, find_rounding_settings
from shape_of_learning.errors import InputError
from shape_of_learning.metrics.suspects import COPIES
from shape_of_learning.training import ShapeCallback, ShapeProbe

WINDOWS = [f"{n} tokens of the windows, {n * n} of a text; layers {n % 7} a b c" for n in range(40)]
LENGTH = 24


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return tiny_models.save_tiny_model(tmp_path_factory.mktemp("tiny"), "gpt_neox", head=True)


@pytest.fixture(scope="module")
def tokenizer(checkpoint):
    return hf.AutoTokenizer.from_pretrained(checkpoint, pad_token="<|endoftext|>")


def fresh(checkpoint, **changed):
    config = hf.AutoConfig.from_pretrained(checkpoint, **changed)
    return hf.AutoModelForCausalLM.from_pretrained(checkpoint, config=config)


def test_states_that_a_user_has_are_those_that_a_model_gives(checkpoint, tokenizer):
    model = fresh(checkpoint).eval()
    given = tokenizer(WINDOWS, return_tensors="pt", padding=True)
    with torch.no_grad():
        output = model(**given, output_hidden_states=True)
    of_model = sol.measure(model, tokenizer, WINDOWS)
    of_states = sol.measure(output.hidden_states, mask=given["attention_mask"])
    numbers = ["layer", "value", "low", "high", "n", "n_unique", "near_duplicates"]
    pd.testing.assert_frame_equal(of_model[numbers], of_states[numbers], rtol=2e-3)
    kept = given["attention_mask"].bool()
    third = output.hidden_states[2][kept].double().numpy()
    value = of_model.set_index(["layer", "estimator"])["value"]
    assert value[2, "anisotropy"] == pytest.approx(sol.anisotropy(third), abs=1e-6)


def test_one_array_is_one_layer():
    states = np.random.default_rng(0).standard_normal((20, 30, 8))
    found = sol.measure(states, measures=["anisotropy"])
    vectors = states.astype(np.float32).reshape(-1, 8)
    assert found["value"].iloc[0] == pytest.approx(sol.anisotropy(vectors))
    assert not found["high"].isna().iloc[0]
    assert found["value"].nunique() == 1  # that of the layer, and their mean


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": np.zeros((4, 5))}, "4 vectors"),
        ({"model": [np.zeros((2, 5, 3)), np.zeros((2, 4, 3))]}, "shape"),
        ({"model": np.ones((2, 5, 3)), "mask": np.ones((2, 4))}, "mask"),
        ({"model": np.ones((2, 5, 3))}, "10 vectors"),
        ({"model": np.ones((9, 50, 3)), "measures": ["two_n"]}, "two_nn"),
        ({"model": np.ones((9, 50, 3)), "measures": ["gain_length"]}, "weights"),
        ({"model": np.ones((9, 50, 3)), "layers": [1]}, "no layer 1"),
        ({"model": np.ones((9, 50, 3)), "mask": np.zeros((9, 50))}, "no mask if all"),
        ({"model": np.ones((9, 50, 3)), "mask": np.ones((9, 1, 50, 50))}, "one value for each"),
        ({"model": np.ones((9, 50, 3)), "mask": np.full((9, 50), 0.5)}, "has the value 0.5"),
        ({"model": np.ones((9, 50, 3)), "mask": np.full((9, 50), 2)}, "has the value 2"),
        ({"model": np.ones((9, 50, 3), complex)}, "not real numbers"),
        ({"model": np.full((9, 50, 3), "a")}, "not real numbers"),
        ({"model": np.zeros((9, 50, 3), [("x", float)])}, "not real numbers"),
        ({"model": torch.ones(9, 50, 3).to_sparse()}, "to_dense"),
        ({"model": [torch.ones(9, 50, 3, device="meta")]}, "without values"),
        ({"model": np.ones((9, 50, 0))}, "no coordinates"),
        ({"model": []}, "shape"),
        ({"model": "./missing"}, "there is no folder"),
        ({"model": np.ones((900, 3)), "mask": np.ones(900)}, "masked vectors"),
        ({"model": 3}, "model of transformers"),
        ({"model": torch.nn.Linear(3, 3)}, "without a model of transformers"),
        ({"model": hf.modeling_outputs.BaseModelOutput()}, "output_hidden_states=True"),
        ({"model": np.ones((9, 50, 3)), "layers": "ab"}, "whole numbers"),
        ({"model": np.ones((9, 50, 3)), "layers": -2}, "no layer -2"),
        ({"model": np.ones((9, 50, 3)), "batch_vectors": 200.5}, "batch_vectors"),
        ({"model": np.ones((9, 50, 3)), "measures": []}, "list of names"),
        ({"model": torch.nn.Linear(3, 3), "windows": 0}, "`windows` is 0"),
        ({"model": torch.nn.Linear(3, 3), "window_tokens": -1}, "`window_tokens` is -1"),
        ({"model": torch.nn.Linear(3, 3), "batch_size": 0.5}, "`batch_size` is 0.5"),
    ],
)
def test_what_cannot_be_measured_is_said(given, said):
    with pytest.raises(InputError, match=said):
        sol.measure(**given)


def test_masks_of_all_conventions_are_understood():
    random = np.random.default_rng(4)
    states = random.standard_normal((2, 20, 40, 6))
    lengths = random.integers(20, 40, 20)
    is_token = np.arange(40) < lengths[:, None]
    states[:, ~is_token] = 100  # padding, which would be seen
    added = np.where(is_token, 0, -np.inf)
    masked = np.ma.MaskedArray(states, np.broadcast_to(~is_token[..., None], states.shape).copy())
    tables = [
        sol.measure(given, mask=mask, measures=["anisotropy"])
        for given, mask in (
            (states, is_token),
            (states, is_token.astype(int)),
            (states, torch.tensor(is_token).float()),
            (states, added),
            (states, np.maximum(added, np.finfo(np.float32).min)),
            (states, np.ma.MaskedArray(np.ones_like(is_token), ~is_token)),
            (list(masked), None),
            (masked, is_token),
        )
    ]
    assert tables[0]["value"].max() < 0.5
    for table in tables[1:]:
        pd.testing.assert_frame_equal(table, tables[0])
    masked[0, 3, 2, 1] = np.ma.masked
    with pytest.raises(InputError, match="mask whole vectors"):
        sol.measure(masked)


def test_layers_and_texts_are_what_python_takes_for_them(checkpoint, tokenizer):
    model = fresh(checkpoint).eval()
    all_layers = sol.measure(model, tokenizer, iter(WINDOWS), measures=["anisotropy"])
    value = all_layers.set_index("layer")["value"]
    for layers, expected in ((3, [3]), ([-1, 0], [3, 0]), (range(1, 3), [1, 2]), (-1, [3])):
        found = sol.measure(model, tokenizer, WINDOWS, measures=["anisotropy"], layers=layers)
        assert found["layer"].iloc[:-1].tolist() == expected
        assert found["value"].iloc[:-1].tolist() == [value[layer] for layer in expected]
    with torch.no_grad():
        given = tokenizer(WINDOWS, return_tensors="pt", padding=True)
        output = model(**given, output_hidden_states=True)
    pd.testing.assert_frame_equal(sol.measure(output), sol.measure(output.hidden_states))


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["a b c " * 100], "made for 128; give shorter `texts`, or `window_tokens`"),
        (["a", ""], "leave it out of `texts`$"),
        ([1, 2], "`texts` has 1"),
        ("one text", "list of texts"),
        ([], "empty"),
    ],
)
def test_messages_name_what_a_user_of_python_has(checkpoint, tokenizer, texts, said):
    with pytest.raises(InputError, match=said) as error:
        sol.measure(fresh(checkpoint), tokenizer, texts)
    assert not re.search(r"sampling|config|entry|`models`", str(error.value))
    larger = hf.AutoTokenizer.from_pretrained(checkpoint)
    larger.add_tokens(["windows", "layers"])
    with pytest.raises(InputError, match=r"give the model's own `tokenizer`$"):
        sol.measure(fresh(checkpoint), larger, WINDOWS)


def test_a_suspect_value_is_one_whose_neighbours_are_copies():
    random = np.random.default_rng(1)
    distinct = random.standard_normal((20, 60, 16))
    copies = np.repeat(random.standard_normal((20, 30, 16)), 2, axis=1)
    copies += 1e-7 * random.standard_normal(copies.shape)
    for states, expected in ((distinct, False), (copies, True)):
        found = sol.measure(states, measures=["two_nn", "mada"])
        reason = found[found["estimator"] == "two_nn"]["reason"].iloc[0]
        assert ("copies" in reason) is expected
        assert found["same_token"].isna().all()  # nothing says which tokens they are of


def test_ties_everywhere_leave_empty_cells_and_other_measures_are_as_they_are(caplog):
    grid = np.stack(np.meshgrid(*[np.arange(3.0)] * 6), axis=-1).reshape(27, 27, 6)
    found = sol.measure([grid, grid], measures=["two_nn", "anisotropy"])
    value = found.set_index("estimator")["value"]
    assert value["two_nn"].isna().all()
    assert value["anisotropy"].to_numpy() == pytest.approx(1 / 6)
    assert "no value of `two_nn`" in caplog.text


def test_a_mean_over_blocks_says_that_one_is_broken_or_undefined(caplog):
    random = np.random.default_rng(3)
    states = random.standard_normal((4, 27, 27, 6))
    broken = states.copy()
    broken[2, 5, 3, 1] = np.inf
    found = sol.measure(broken, measures=["anisotropy"]).set_index("layer")
    assert found["value"].isna().tolist() == [False, False, True, False, True]
    assert "layers [2] hold NaN or infinity" in caplog.text
    caplog.clear()
    tied = list(states)
    tied[2] = np.stack(np.meshgrid(*[np.arange(3.0)] * 6), axis=-1).reshape(27, 27, 6)
    found = sol.measure(tied, measures=["two_nn"]).set_index("layer")
    assert found["value"].isna().tolist() == [False, False, True, False, False]
    assert found["value"].iloc[-1] == pytest.approx(found["value"].loc[[1, 3]].mean())
    assert found["layers"].iloc[-1] == 2
    assert "undefined at layers [2]" in caplog.text


def trained(checkpoint, tokenizer, folder, *, bf16, probed, **options):
    """Train with dropout and accumulated gradients; weights, losses and the state of random numbers."""
    model = fresh(checkpoint, attention_dropout=0.1, hidden_dropout=0.1)
    rows = [{"input_ids": ids, "labels": ids} for ids in tokenizer(WINDOWS)["input_ids"]]
    rows = [{key: ids[:LENGTH] for key, ids in row.items()} for row in rows]
    arguments = hf.TrainingArguments(
        str(folder),
        max_steps=6,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        logging_steps=2,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        bf16=bf16,
        seed=5,
        disable_tqdm=True,
        **options,
    )
    hf.set_seed(5)
    trainer = hf.Trainer(model, arguments, train_dataset=rows, processing_class=tokenizer)
    if probed:
        bands = {"anisotropy": (2.0, 3.0)}
        table = folder / "shape.csv"
        ShapeCallback(trainer, WINDOWS, every=3, layers=[1, 3], bands=bands, table=table)
    trainer.train()
    losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    return model, losses, torch.get_rng_state(), trainer.state.log_history


@pytest.mark.parametrize("bf16", [False, True])
def test_a_training_is_the_same_to_the_bit_with_and_without_the_callback(
    checkpoint, tokenizer, tmp_path, caplog, bf16
):
    threads = torch.get_num_threads()
    plain, losses, random, _ = trained(checkpoint, tokenizer, tmp_path, bf16=bf16, probed=False)
    other, same, state, log = trained(checkpoint, tokenizer, tmp_path, bf16=bf16, probed=True)
    for one, two in zip(plain.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)
    assert losses == same
    assert torch.equal(random, state)
    assert torch.get_num_threads() == threads
    logged = [row for row in log if "shape/two_nn" in row]
    assert [row["step"] for row in logged] == [0, 3, 6]
    assert "outside of 2 to 3" in caplog.text
    table = pd.read_csv(tmp_path / "shape.csv")
    assert set(table["step"]) == {0, 3, 6}
    last = table[(table["step"] == 6) & (table["layer"] == 3)].set_index("estimator")["value"]
    assert last["two_nn"] == logged[-1]["shape/two_nn/layer_3"]


def test_a_probe_leaves_modes_and_settings_as_they_were_and_goes_on_with_its_table(
    checkpoint, tokenizer, tmp_path
):
    model = fresh(checkpoint).train()
    frozen = next(iter(model.base_model.layers)).eval()
    modes = {name: module.training for name, module in model.named_modules()}
    before = model.config.to_dict()
    for step in (0, 10, 20, 10):  # as if it had been resumed
        probe = ShapeProbe(tokenizer, WINDOWS, table=tmp_path / "shape.csv", measures=["two_nn"])
        probe(model, step)
    assert {name: module.training for name, module in model.named_modules()} == modes
    assert not frozen.training
    assert model.config.to_dict() == before
    assert list(pd.read_csv(tmp_path / "shape.csv")["step"].unique()) == [0, 10]
    loss = model(
        input_ids=torch.ones(1, 5, dtype=torch.long), labels=torch.ones(1, 5, dtype=torch.long)
    ).loss
    loss.backward()  # nothing that the probe left behind is in its way
    other = ShapeProbe(
        tokenizer, WINDOWS, table=tmp_path / "shape.csv", name="other", layers=[0, 3]
    )
    other(model, 10)
    assert pd.read_csv(tmp_path / "shape.csv")["model"].nunique() == 2
    with pytest.raises(InputError, match="list of texts"):
        ShapeProbe(tokenizer, "one text")
    with pytest.raises(InputError, match="rankme"):
        ShapeProbe(tokenizer, WINDOWS, bands={"rankme": (0, 1)})


def test_whatever_precision_a_user_chose_is_restored(checkpoint, tokenizer):
    before = {path: find_rounding_settings(path).fp32_precision for path in ROUNDING}
    try:
        torch.set_float32_matmul_precision("medium")
        model = fresh(checkpoint, attn_implementation="eager", output_attentions=True)
        for _ in range(2):
            sol.measure(model, tokenizer, WINDOWS, measures=["anisotropy"])
        assert torch.get_float32_matmul_precision() == "medium"
        assert model.config.output_attentions
    finally:
        for path, value in before.items():
            find_rounding_settings(path).fp32_precision = value


def run(*arguments, code=0):
    found = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert found.exit_code == code, found.output
    assert "\x1b" not in found.output  # nothing but plain lines without a terminal
    return found.output


@pytest.fixture(scope="module")
def measured(checkpoint, tmp_path_factory):
    """All files that one command writes, and what it prints."""
    folder = tmp_path_factory.mktemp("measured")
    text = folder / "my text.txt"
    text.write_text("".join(tiny_models.TEXT * 400), encoding="utf-8")
    files = {kind: folder / f"out.{kind}" for kind in ("csv", "json", "explorer")}
    options = [item for kind, file in files.items() for item in (f"--{kind}", file)]
    shared = [
        "--text",
        text,
        "--windows",
        60,
        "--window-characters",
        200,
        "--measures",
        "anisotropy,two_nn",
        "--threads",
        1,
    ]
    printed = run("measure", checkpoint, *shared, *options)
    return files, printed, shared


def test_a_command_writes_the_files_that_are_asked_for(measured):
    files, printed, _ = measured
    table = pd.read_csv(files["csv"])
    assert len(table) == 2 * 5
    assert list(table["value"]) == [row["value"] for row in json.loads(files["json"].read_text())]
    assert "TwoNN" in printed
    assert files["explorer"].read_text().startswith("<!DOCTYPE html>")
    page = files["csv"].with_name("page.html")
    run("explore", files["csv"], page)
    # The table does not name the text, but for that it is the same page.
    packed = [
        re.search(r'id="content">([^<]*)<', file.read_text())[1]
        for file in (page, files["explorer"])
    ]
    contents = [json.loads(gzip.decompress(base64.b64decode(text))) for text in packed]
    samples = [content.pop("sample") for content in contents]
    assert samples[1] == f"{samples[0]} of my text.txt"
    assert contents[0] == contents[1]


def drawn_points(file: Path) -> list[np.ndarray]:
    """The places, in points of the page, of the points of every line of an SVG that is clipped by a panel."""
    found = re.findall(r'<path d="(M [^"z]*)" clip-path', file.read_text())
    return [np.array(re.findall(r"[-\d.]+", each), float).reshape(-1, 2) for each in found]


def test_a_plot_shows_the_values_of_the_table(measured, checkpoint, tmp_path):
    """One line a panel; the heights of its points are those of the CSV but for the scale of the axis."""
    files = {kind: tmp_path / f"plot.{kind}" for kind in ("svg", "png", "pdf", "csv")}
    quick = [*measured[2], "--name", "a $x$_name"]
    for kind, head in (("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
        run("measure", checkpoint, *quick, "--plot", files[kind], "--csv", files["csv"])
        assert files[kind].read_bytes().startswith(head)
    words = " ".join(re.findall(r"<!-- (.*?) -->", files["svg"].read_text()))
    assert re.search(r"Text: \d+ windows of my text.txt; [\d,]+", words)
    table = pd.read_csv(files["csv"]).dropna(subset="layer")
    curves = [rows["value"].to_numpy() for _, rows in table.groupby("estimator")]
    lines = [each for each in drawn_points(files["svg"]) if len(each) == len(curves[0])]
    heights = [-line[:, 1] for line in lines]
    for curve in curves:
        scales = (curve, np.log(curve))  # axes of dimensions may be logarithmic
        agreements = [np.corrcoef(scale, height)[0, 1] for scale in scales for height in heights]
        assert max(agreements) > 1 - 1e-9
    image = imread(files["png"])
    ink = (image[..., :3] < 0.3).all(axis=-1)
    assert ink.sum() > 2000  # lines, and not frames and words alone


def test_a_picture_into_a_pipe_is_a_png_and_any_other_ending_is_refused(measured, checkpoint):
    printed = run("measure", checkpoint, "--plot", "x.jpg", code=1)
    assert ".png, .pdf or .svg" in printed


def test_a_model_does_not_differ_from_itself(measured, checkpoint):
    csv = measured[0]["csv"].with_name("differences.csv")
    printed = run("compare", checkpoint, checkpoint, *measured[2], "--csv", csv)
    assert (COPIES.sentence in printed) == (COPIES.sentence in measured[1])
    differences = pd.read_csv(csv)
    assert len(differences) == 2 * 5
    assert (differences[["difference", "low", "high"]] == 0).all(axis=None)


def test_a_copy_under_another_name_does_not_differ_and_layers_of_unlike_depths_are_not_compared(
    measured, checkpoint, tmp_path
):
    """Several batches, which are drawn by the name of a model, but the same ones for both."""
    copy = tmp_path / "another name"
    shutil.copytree(checkpoint, copy)
    (tmp_path / "shallow").mkdir()
    shallower = tiny_models.save_tiny_model(tmp_path / "shallow", "bloom", layers=2)
    csv, small = tmp_path / "differences.csv", ["--batch-vectors", 600]
    run("compare", checkpoint, copy, *measured[2], *small, "--csv", csv)
    assert (pd.read_csv(csv)["difference"] == 0).all()
    run("compare", checkpoint, shallower, *measured[2], *small, "--csv", csv)
    differences = pd.read_csv(csv)
    assert differences["layer"].isna().all()
    assert len(differences) == 2


def test_a_wrong_command_says_why_and_exits_as_documented(tmp_path, checkpoint):
    assert "--text" in run("measure", checkpoint, "--text", tmp_path / "none.txt", code=1)
    assert "config.json" in run("measure", tmp_path, code=1)
    assert "no package" in run("measure", "package:there_is_none/x", code=1)
    assert "two_nn" in run("measure", checkpoint, "--measures", "two_n", code=1)
    (tmp_path / "broken.gguf").write_bytes(b"GGUF")
    assert "unpacked" in run("measure", tmp_path / "broken.gguf", code=1)
    run("measure", code=2)
    run("measure", checkpoint, "--windows", 0, code=2)


@pytest.mark.long
def test_the_example_trains_a_model_and_leaves_a_table(tmp_path):
    script = Path(__file__).parents[2] / "docs/examples/watch_a_training.py"
    environment = {**os.environ, "PYTHONPATH": str(script.parents[2] / "workflow")}
    subprocess.run(
        [sys.executable, script, "shape.csv"],
        cwd=tmp_path,
        env=environment,
        check=True,
        timeout=300,
    )
    table = pd.read_csv(tmp_path / "shape.csv")
    assert list(table["step"].unique()) == [0, 20, 40, 60]
    sizes = table["estimator"].isin(["mean_norm", "largest_coordinate", "kurtosis"])
    assert table[table["layer"].notna() & ~sizes]["standard_error"].notna().all()


def test_what_the_page_says_of_loops_runs_as_it_is_written(tokenizer, tmp_path, monkeypatch):
    """A model of twelve blocks, since the page measures layer 12."""
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[2] / "docs/how_to/watch_a_training.md"
    trainer, alerts, loop = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    config = tiny_models.CONFIGURATIONS["gpt_neox"]()
    config.num_hidden_layers = 12
    model = hf.AutoModelForCausalLM.from_config(config)
    ids = torch.tensor([each[:LENGTH] for each in tokenizer(WINDOWS)["input_ids"]])
    data = [{"input_ids": row, "labels": row} for row in ids]
    told = {"report_to": [], "use_cpu": True, "disable_tqdm": True, "save_strategy": "no"}
    given = {
        "Trainer": hf.Trainer,
        "arguments": hf.TrainingArguments(str(tmp_path / "run"), max_steps=2, **told),
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "batches": [{"input_ids": ids[:2], "labels": ids[:2]}] * 2,
        "probe_texts": WINDOWS,
        **{"model": model, "data": data, "tokenizer": tokenizer},
    }
    exec(trainer, given)
    assert set(pd.read_csv("shape.csv")["layer"].dropna()) == {1, 6, 12}  # the last one is -1
    Path("shape.csv").unlink()
    exec(alerts, given)
    exec(loop, given)
    assert set(pd.read_csv("shape.csv")["step"]) == {0}


def test_a_pipe_is_read_and_one_that_nobody_writes_to_is_refused(checkpoint, tmp_path, monkeypatch):
    """The text has more kinds of characters than any alphabet of the workflow, and loses none."""
    monkeypatch.setattr(command_line, "WRITER_SECONDS", 1)
    os.mkfifo(pipe := tmp_path / "pipe")
    options = ("--windows", 32, "--window-characters", 30, "--batch-vectors", 500)
    command = ("measure", checkpoint, *options, "--measures", "anisotropy", "--text")
    assert f"{pipe} is a pipe that nobody writes to" in run(*command, pipe, code=1)
    file = tmp_path / "text.txt"
    file.write_text("".join(map(chr, range(0x4E00, 0x5A00))), encoding="utf-8")
    writer = subprocess.Popen(["sh", "-c", f"exec cat '{file}' > '{pipe}'"])
    of_pipe, of_file = run(*command, pipe), run(*command, file)
    assert writer.wait() == 0
    assert of_pipe == of_file
    assert "left out" not in of_file


def test_states_of_float64_keep_digits_that_float32_has_not():
    states = np.random.default_rng(0).standard_normal((2, 20, 50, 8))
    near, far = (
        sol.measure(moved, measures=["two_nn"])["value"].to_numpy()
        for moved in (states, torch.from_numpy(states + 1e8))
    )
    np.testing.assert_allclose(far, near, rtol=1e-5)  # 1e8 leaves eight of sixteen digits
