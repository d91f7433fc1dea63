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


def load_model(checkpoint, **changes):
    config = hf.AutoConfig.from_pretrained(checkpoint, **changes)
    return hf.AutoModelForCausalLM.from_pretrained(checkpoint, config=config)


def test_given_states_have_the_values_of_the_model_that_computes_them(checkpoint, tokenizer):
    model = load_model(checkpoint).eval()
    tokens = tokenizer(WINDOWS, return_tensors="pt", padding=True)
    with torch.no_grad():
        output = model(**tokens, output_hidden_states=True)
    model_table = sol.measure(model, tokenizer, WINDOWS)
    states_table = sol.measure(output.hidden_states, mask=tokens["attention_mask"])
    numbers = ["layer", "value", "low", "high", "n", "n_unique", "near_duplicates"]
    pd.testing.assert_frame_equal(model_table[numbers], states_table[numbers], rtol=2e-3)
    is_token = tokens["attention_mask"].bool()
    third = output.hidden_states[2][is_token].double().numpy()
    value = model_table.set_index(["layer", "estimator"])["value"]
    assert value[2, "anisotropy"] == pytest.approx(sol.anisotropy(third), abs=1e-6)


def test_one_array_is_one_layer():
    states = np.random.default_rng(0).standard_normal((20, 30, 8))
    table = sol.measure(states, measures=["anisotropy"])
    vectors = states.astype(np.float32).reshape(-1, 8)
    assert table["value"].iloc[0] == pytest.approx(sol.anisotropy(vectors))
    assert not table["high"].isna().iloc[0]
    assert table["value"].nunique() == 1  # the layer, and the mean over layers


@pytest.mark.parametrize(
    ("arguments", "message"),
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
        (
            {"model": np.ones((600, 3)), "measures": ["linearity", "mle"]},
            "`linearity` is a measure",
        ),
        ({"model": np.ones((2, 600, 3)), "measures": ["linearity"], "layers": 0}, "further layers"),
    ],
)
def test_bad_arguments_are_refused_with_the_reason(arguments, message):
    with pytest.raises(InputError, match=message):
        sol.measure(**arguments)


def test_masks_of_all_conventions_are_understood():
    random = np.random.default_rng(4)
    states = random.standard_normal((2, 20, 40, 6))
    lengths = random.integers(20, 40, 20)
    is_token = np.arange(40) < lengths[:, None]
    states[:, ~is_token] = 100  # padding far from all tokens, to show in a wrong value
    additive_mask = np.where(is_token, 0, -np.inf)
    masked_states = np.ma.MaskedArray(
        states, np.broadcast_to(~is_token[..., None], states.shape).copy()
    )
    tables = [
        sol.measure(model, mask=mask, measures=["anisotropy"])
        for model, mask in (
            (states, is_token),
            (states, is_token.astype(int)),
            (states, torch.tensor(is_token).float()),
            (states, additive_mask),
            (states, np.maximum(additive_mask, np.finfo(np.float32).min)),
            (states, np.ma.MaskedArray(np.ones_like(is_token), ~is_token)),
            (list(masked_states), None),
            (masked_states, is_token),
        )
    ]
    assert tables[0]["value"].max() < 0.5
    for table in tables[1:]:
        pd.testing.assert_frame_equal(table, tables[0])
    masked_states[0, 3, 2, 1] = np.ma.masked
    with pytest.raises(InputError, match="mask whole vectors"):
        sol.measure(masked_states)


def test_masked_vectors_are_left_out_together_with_their_groups():
    vectors = np.random.default_rng(0).standard_normal((700, 6))
    masked_vectors = np.ma.MaskedArray(vectors, np.zeros_like(vectors, bool))
    masked_vectors[:100] = np.ma.masked
    groups = np.arange(700) // 20
    for some_groups in (None, groups):
        remaining_groups = None if some_groups is None else some_groups[100:]
        table = sol.measure(masked_vectors, groups=some_groups, measures=["anisotropy"])
        expected = sol.measure(vectors[100:], groups=remaining_groups, measures=["anisotropy"])
        assert (table["n"] == 600).all()
        pd.testing.assert_frame_equal(table, expected)


def test_a_block_that_changes_the_width_has_no_increment():
    """As the last block of opt-350m, from 1024 to 512 coordinates."""
    random = np.random.default_rng(0)
    states = [random.standard_normal((20, 50, width)) for width in (16, 16, 8)]
    table = sol.measure(states, measures=["linearity", "linearity_increment_adjusted"])
    values = table[table["layer"].notna()].pivot(index="layer", columns="estimator", values="value")
    assert values["linearity"].notna().all()
    assert values["linearity_increment_adjusted"].notna().tolist() == [True, False]


def test_differences_are_of_the_same_windows():
    random = np.random.default_rng(0)
    states = [random.standard_normal((number, 20, 6)) for number in (30, 31)]
    with pytest.raises(InputError, match="30 windows and `model` 31"):
        sol.compare(*states, measures=["anisotropy"])


def test_layers_may_be_numbers_lists_and_ranges_and_texts_an_iterator(checkpoint, tokenizer):
    model = load_model(checkpoint).eval()
    all_layers = sol.measure(model, tokenizer, iter(WINDOWS), measures=["anisotropy"])
    value = all_layers.set_index("layer")["value"]
    for layers, expected in ((3, [3]), ([-1, 0], [3, 0]), (range(1, 3), [1, 2]), (-1, [3])):
        table = sol.measure(model, tokenizer, WINDOWS, measures=["anisotropy"], layers=layers)
        assert table["layer"].iloc[:-1].tolist() == expected
        assert table["value"].iloc[:-1].tolist() == [value[layer] for layer in expected]
    with torch.no_grad():
        tokens = tokenizer(WINDOWS, return_tensors="pt", padding=True)
        output = model(**tokens, output_hidden_states=True)
    pd.testing.assert_frame_equal(sol.measure(output), sol.measure(output.hidden_states))


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a b c " * 100], "made for 128; give shorter `texts`, or `window_tokens`"),
        (["a", ""], "leave it out of `texts`$"),
        ([1, 2], "`texts` has 1"),
        ("one text", "list of texts"),
        ([], "empty"),
    ],
)
def test_messages_name_arguments_of_python_and_no_keys_of_the_workflow(
    checkpoint, tokenizer, texts, message
):
    with pytest.raises(InputError, match=message) as error:
        sol.measure(load_model(checkpoint), tokenizer, texts)
    assert not re.search(r"sampling|config|entry|`models`", str(error.value))
    larger = hf.AutoTokenizer.from_pretrained(checkpoint)
    larger.add_tokens(["windows", "layers"])
    with pytest.raises(InputError, match=r"give the model's own `tokenizer`$"):
        sol.measure(load_model(checkpoint), larger, WINDOWS)


def test_a_value_whose_neighbours_are_copies_is_suspect():
    random = np.random.default_rng(1)
    distinct = random.standard_normal((20, 60, 16))
    copies = np.repeat(random.standard_normal((20, 30, 16)), 2, axis=1)
    copies += 1e-7 * random.standard_normal(copies.shape)
    for states, expected in ((distinct, False), (copies, True)):
        table = sol.measure(states, measures=["two_nn", "mada"])
        reason = table[table["estimator"] == "two_nn"]["reason"].iloc[0]
        assert ("copies" in reason) is expected
        assert table["same_token"].isna().all()  # the tokens of arrays are unknown


def test_ties_everywhere_leave_only_cells_of_dimensions_empty(caplog):
    grid = np.stack(np.meshgrid(*[np.arange(3.0)] * 6), axis=-1).reshape(27, 27, 6)
    table = sol.measure([grid, grid], measures=["two_nn", "anisotropy"])
    value = table.set_index("estimator")["value"]
    assert value["two_nn"].isna().all()
    assert value["anisotropy"].to_numpy() == pytest.approx(1 / 6)
    assert "no value of `two_nn`" in caplog.text


def test_broken_and_undefined_blocks_are_named_beside_their_mean(caplog):
    random = np.random.default_rng(3)
    states = random.standard_normal((4, 27, 27, 6))
    broken = states.copy()
    broken[2, 5, 3, 1] = np.inf
    table = sol.measure(broken, measures=["anisotropy"]).set_index("layer")
    assert table["value"].isna().tolist() == [False, False, True, False, True]
    assert "layers [2] hold NaN or infinity" in caplog.text
    caplog.clear()
    states_with_ties = list(states)
    states_with_ties[2] = np.stack(np.meshgrid(*[np.arange(3.0)] * 6), axis=-1).reshape(27, 27, 6)
    table = sol.measure(states_with_ties, measures=["two_nn"]).set_index("layer")
    assert table["value"].isna().tolist() == [False, False, True, False, False]
    assert table["value"].iloc[-1] == pytest.approx(table["value"].loc[[1, 3]].mean())
    assert table["layers"].iloc[-1] == 2
    assert "undefined at layers [2]" in caplog.text


def train_model(checkpoint, tokenizer, folder, *, bf16, has_callback, **options):
    """Train with dropout and accumulated gradients; return model, losses, state of random numbers, and log."""
    model = load_model(checkpoint, attention_dropout=0.1, hidden_dropout=0.1)
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
    if has_callback:
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
    plain_model, losses, random_state, _ = train_model(
        checkpoint, tokenizer, tmp_path, bf16=bf16, has_callback=False
    )
    probed_model, probed_losses, probed_random_state, log = train_model(
        checkpoint, tokenizer, tmp_path, bf16=bf16, has_callback=True
    )
    for plain_weight, probed_weight in zip(
        plain_model.parameters(), probed_model.parameters(), strict=True
    ):
        assert torch.equal(plain_weight, probed_weight)
    assert losses == probed_losses
    assert torch.equal(random_state, probed_random_state)
    assert torch.get_num_threads() == threads
    shape_rows = [row for row in log if "shape/two_nn" in row]
    assert [row["step"] for row in shape_rows] == [0, 3, 6]
    assert "outside of 2 to 3" in caplog.text
    table = pd.read_csv(tmp_path / "shape.csv")
    assert set(table["step"]) == {0, 3, 6}
    last_values = table[(table["step"] == 6) & (table["layer"] == 3)].set_index("estimator")[
        "value"
    ]
    assert last_values["two_nn"] == shape_rows[-1]["shape/two_nn/layer_3"]


def test_a_probe_restores_modes_and_settings_and_continues_its_table(
    checkpoint, tokenizer, tmp_path
):
    model = load_model(checkpoint).train()
    frozen = next(iter(model.base_model.layers)).eval()
    modes = {name: module.training for name, module in model.named_modules()}
    config = model.config.to_dict()
    for step in (0, 10, 20, 10):  # as if it had been resumed
        probe = ShapeProbe(tokenizer, WINDOWS, table=tmp_path / "shape.csv", measures=["two_nn"])
        probe(model, step)
    assert {name: module.training for name, module in model.named_modules()} == modes
    assert not frozen.training
    assert model.config.to_dict() == config
    assert list(pd.read_csv(tmp_path / "shape.csv")["step"].unique()) == [0, 10]
    loss = model(
        input_ids=torch.ones(1, 5, dtype=torch.long), labels=torch.ones(1, 5, dtype=torch.long)
    ).loss
    loss.backward()  # the probe left no state that prevents it
    other = ShapeProbe(
        tokenizer, WINDOWS, table=tmp_path / "shape.csv", name="other", layers=[0, 3]
    )
    other(model, 10)
    assert pd.read_csv(tmp_path / "shape.csv")["model"].nunique() == 2
    with pytest.raises(InputError, match="list of texts"):
        ShapeProbe(tokenizer, "one text")
    with pytest.raises(InputError, match="rankme"):
        ShapeProbe(tokenizer, WINDOWS, bands={"rankme": (0, 1)})


def test_the_precision_that_a_user_chose_is_restored(checkpoint, tokenizer):
    precisions = {path: find_rounding_settings(path).fp32_precision for path in ROUNDING}
    try:
        torch.set_float32_matmul_precision("medium")
        model = load_model(checkpoint, attn_implementation="eager", output_attentions=True)
        for _ in range(2):
            sol.measure(model, tokenizer, WINDOWS, measures=["anisotropy"])
        assert torch.get_float32_matmul_precision() == "medium"
        assert model.config.output_attentions
    finally:
        for path, value in precisions.items():
            find_rounding_settings(path).fp32_precision = value


def run_command(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    assert "\x1b" not in result.output  # nothing but plain lines without a terminal
    return result.output


@pytest.fixture(scope="module")
def measured_files(checkpoint, tmp_path_factory):
    """All files that one command writes, its output, and its options of the sample."""
    folder = tmp_path_factory.mktemp("measured_files")
    text = folder / "my text.txt"
    text.write_text("".join(tiny_models.TEXT * 400), encoding="utf-8")
    files = {kind: folder / f"out.{kind}" for kind in ("csv", "json", "explorer")}
    options = [item for kind, file in files.items() for item in (f"--{kind}", file)]
    sample_options = [
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
    output = run_command("measure", checkpoint, *sample_options, *options)
    return files, output, sample_options


def test_a_command_writes_the_files_of_its_options(measured_files):
    files, output, _ = measured_files
    table = pd.read_csv(files["csv"])
    assert len(table) == 2 * 5
    assert list(table["value"]) == [row["value"] for row in json.loads(files["json"].read_text())]
    assert "TwoNN" in output
    assert files["explorer"].read_text().startswith("<!DOCTYPE html>")
    page = files["csv"].with_name("page.html")
    run_command("explore", files["csv"], page)
    # The table does not name the text; the pages are the same otherwise.
    encoded_contents = [
        re.search(r'id="content">([^<]*)<', file.read_text())[1]
        for file in (page, files["explorer"])
    ]
    contents = [json.loads(gzip.decompress(base64.b64decode(text))) for text in encoded_contents]
    samples = [content.pop("sample") for content in contents]
    assert samples[1] == f"{samples[0]} of my text.txt"
    assert contents[0] == contents[1]


def read_line_points(file: Path) -> list[np.ndarray]:
    """Read the points of every line of an SVG that a panel clips, in points of the page."""
    paths = re.findall(r'<path d="(M [^"z]*)" clip-path', file.read_text())
    return [np.array(re.findall(r"[-\d.]+", path), float).reshape(-1, 2) for path in paths]


def test_a_plot_shows_the_values_of_the_table(measured_files, checkpoint, tmp_path):
    """Each panel has one line; its heights are the values of the CSV on the scale of the axis."""
    files = {kind: tmp_path / f"plot.{kind}" for kind in ("svg", "png", "pdf", "csv")}
    quick = [*measured_files[2], "--name", "a $x$_name"]
    for kind, head in (("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
        run_command("measure", checkpoint, *quick, "--plot", files[kind], "--csv", files["csv"])
        assert files[kind].read_bytes().startswith(head)
    words = " ".join(re.findall(r"<!-- (.*?) -->", files["svg"].read_text()))
    assert re.search(r"Text: \d+ windows of my text.txt; [\d,]+", words)
    table = pd.read_csv(files["csv"]).dropna(subset="layer")
    curves = [rows["value"].to_numpy() for _, rows in table.groupby("estimator")]
    lines = [points for points in read_line_points(files["svg"]) if len(points) == len(curves[0])]
    heights = [-line[:, 1] for line in lines]
    for curve in curves:
        scales = (curve, np.log(curve))  # axes of dimensions may be logarithmic
        agreements = [np.corrcoef(scale, height)[0, 1] for scale in scales for height in heights]
        assert max(agreements) > 1 - 1e-9
    image = imread(files["png"])
    ink = (image[..., :3] < 0.3).all(axis=-1)
    assert ink.sum() > 2000  # more ink than frames and words have


def test_a_plot_with_an_unknown_ending_is_refused(measured_files, checkpoint):
    output = run_command("measure", checkpoint, "--plot", "x.jpg", code=1)
    assert ".png, .pdf or .svg" in output


def test_a_model_does_not_differ_from_itself(measured_files, checkpoint):
    csv = measured_files[0]["csv"].with_name("differences.csv")
    output = run_command("compare", checkpoint, checkpoint, *measured_files[2], "--csv", csv)
    assert (COPIES.sentence in output) == (COPIES.sentence in measured_files[1])
    differences = pd.read_csv(csv)
    assert len(differences) == 2 * 5
    assert (differences[["difference", "low", "high"]] == 0).all(axis=None)


def test_a_copy_under_another_name_does_not_differ_and_models_of_unlike_depths_are_not_compared_by_layer(
    measured_files, checkpoint, tmp_path
):
    """A model's name draws its batches, but both models of a comparison have the same batches."""
    copy = tmp_path / "another name"
    shutil.copytree(checkpoint, copy)
    (tmp_path / "shallow").mkdir()
    shallower = tiny_models.save_tiny_model(tmp_path / "shallow", "bloom", layers=2)
    csv, small = tmp_path / "differences.csv", ["--batch-vectors", 600]
    run_command("compare", checkpoint, copy, *measured_files[2], *small, "--csv", csv)
    assert (pd.read_csv(csv)["difference"] == 0).all()
    run_command("compare", checkpoint, shallower, *measured_files[2], *small, "--csv", csv)
    differences = pd.read_csv(csv)
    assert differences["layer"].isna().all()
    assert len(differences) == 2


def test_a_wrong_command_says_why_and_exits_as_documented(tmp_path, checkpoint):
    assert "--text" in run_command("measure", checkpoint, "--text", tmp_path / "none.txt", code=1)
    assert "config.json" in run_command("measure", tmp_path, code=1)
    assert "no package" in run_command("measure", "package:there_is_none/x", code=1)
    assert "two_nn" in run_command("measure", checkpoint, "--measures", "two_n", code=1)
    (tmp_path / "broken.gguf").write_bytes(b"GGUF")
    assert "unpacked" in run_command("measure", tmp_path / "broken.gguf", code=1)
    run_command("measure", code=2)
    run_command("measure", checkpoint, "--windows", 0, code=2)


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


def test_the_code_of_the_page_on_trainings_runs_as_it_is_written(tokenizer, tmp_path, monkeypatch):
    """A model of twelve blocks, since the page measures layer 12."""
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[2] / "docs/how_to/watch_a_training.md"
    trainer, alerts, loop = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    config = tiny_models.CONFIGURATIONS["gpt_neox"]()
    config.num_hidden_layers = 12
    model = hf.AutoModelForCausalLM.from_config(config)
    ids = torch.tensor([tokens[:LENGTH] for tokens in tokenizer(WINDOWS)["input_ids"]])
    data = [{"input_ids": row, "labels": row} for row in ids]
    options = {"report_to": [], "use_cpu": True, "disable_tqdm": True, "save_strategy": "no"}
    names = {
        "Trainer": hf.Trainer,
        "arguments": hf.TrainingArguments(str(tmp_path / "run"), max_steps=2, **options),
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "batches": [{"input_ids": ids[:2], "labels": ids[:2]}] * 2,
        "probe_texts": WINDOWS,
        **{"model": model, "data": data, "tokenizer": tokenizer},
    }
    exec(trainer, names)
    assert set(pd.read_csv("shape.csv")["layer"].dropna()) == {1, 6, 12}  # the last one is -1
    Path("shape.csv").unlink()
    exec(alerts, names)
    exec(loop, names)
    assert set(pd.read_csv("shape.csv")["step"]) == {0}


def test_a_pipe_is_read_and_one_that_nobody_writes_to_is_refused(checkpoint, tmp_path, monkeypatch):
    """The text has more kinds of characters than any alphabet of the workflow, and loses none."""
    monkeypatch.setattr(command_line, "WRITER_SECONDS", 1)
    os.mkfifo(pipe := tmp_path / "pipe")
    options = ("--windows", 32, "--window-characters", 30, "--batch-vectors", 500)
    command = ("measure", checkpoint, *options, "--measures", "anisotropy", "--text")
    assert f"{pipe} is a pipe that nobody writes to" in run_command(*command, pipe, code=1)
    file = tmp_path / "text.txt"
    file.write_text("".join(map(chr, range(0x4E00, 0x5A00))), encoding="utf-8")
    writer = subprocess.Popen(["sh", "-c", f"exec cat '{file}' > '{pipe}'"])
    pipe_output, file_output = run_command(*command, pipe), run_command(*command, file)
    assert writer.wait() == 0
    assert pipe_output == file_output
    assert "left out" not in file_output


def test_float64_states_keep_digits_that_float32_lacks():
    states = np.random.default_rng(0).standard_normal((2, 20, 50, 8))
    near, far = (
        sol.measure(X, measures=["two_nn"])["value"].to_numpy()
        for X in (states, torch.from_numpy(states + 1e8))
    )
    np.testing.assert_allclose(far, near, rtol=1e-5)  # 1e8 leaves eight of sixteen digits
