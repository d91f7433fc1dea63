"""Files of vectors: what cannot be read is said, and what is said of a forward pass is refused, not ignored."""

from contextlib import chdir
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from shape_of_learning import measure
from shape_of_learning.command_line import app
from shape_of_learning.errors import InputError
from shape_of_learning.one_model.vector_files import SUFFIXES, read_vectors


@pytest.mark.parametrize(
    "option",
    ["--text=a.txt", "--windows=9", "--window-characters=99", "--device=cpu", "--batch-size=2"],
)
def test_options_of_a_model_that_runs_are_refused_with_vectors(tmp_path, option):
    np.save(tmp_path / "v.npy", np.random.default_rng(0).normal(size=(60, 4)))
    (tmp_path / "a.txt").write_text("text")
    with chdir(tmp_path):
        done = CliRunner().invoke(app, ["measure", "v.npy", option])
    assert done.exit_code != 0
    assert f"leave out {option.partition('=')[0]}" in " ".join(done.output.split())


@pytest.mark.parametrize(
    "key", ["tokenizer", "texts", "windows", "window_tokens", "batch_size", "device"]
)
def test_arguments_of_a_model_that_runs_are_refused_with_vectors(key):
    X = np.random.default_rng(0).normal(size=(60, 4))
    with pytest.raises(InputError, match=f"`{key}` needs a model"):
        measure(X, batch_vectors=50, **{key: 1})


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_pointer_of_git_lfs_is_no_damaged_file(suffix, tmp_path):
    file = tmp_path / f"v{suffix}"
    file.write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 9\n")
    with pytest.raises(InputError, match="run `git lfs pull` in"):
        measure(file)


def test_groups_of_a_list_count_and_other_whole_numbers_are_no_coordinates(tmp_path):
    X = np.random.default_rng(0).standard_normal((64, 4))
    groups = [row // 4 for row in range(64)]
    torch.save({"vectors": torch.tensor(X), "groups": groups}, tmp_path / "a.pt")
    vectors, found = read_vectors(str(tmp_path / "a.pt"))
    assert found.tolist() == groups
    assert (vectors == X).all()
    table = pd.DataFrame(X, columns=list("abcd"))
    table.assign(groups=groups).to_parquet(tmp_path / "a.parquet")
    vectors, found = read_vectors(str(tmp_path / "a.parquet"))
    assert found.tolist() == groups
    assert (vectors == X).all()
    table.assign(label=groups).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"`label`.* beside coordinates"):
        read_vectors(str(tmp_path / "a.parquet"))


def test_columns_of_a_data_frame_are_numbers_whatever_keeps_them(tmp_path, caplog):
    """A column may have a place for missing numbers, or decimal ones, and what is no coordinate is said."""
    X = np.random.default_rng(0).standard_normal((160, 4))
    table = pd.DataFrame(X, columns=list("abcd"))
    file = tmp_path / "a.parquet"
    decimal = table.assign(b=[Decimal(repr(value)) for value in X[:, 1].tolist()])
    for stored in (table.convert_dtypes(), decimal):
        stored.to_parquet(file)
        np.testing.assert_array_equal(read_vectors(str(file))[0], X)
    assert caplog.text == ""
    expected = measure(X, measures=["anisotropy"])["value"]
    assert measure(table.convert_dtypes(), measures=["anisotropy"])["value"].equals(expected)
    table.assign(text="word").set_index("a").to_parquet(file)
    np.testing.assert_array_equal(read_vectors(str(file))[0], X[:, 1:])
    assert "text, a" in caplog.text


def test_numbers_whose_powers_would_overflow_are_refused():
    with pytest.raises(InputError, match=r"beyond 1e\+60"):
        measure(1e70 * np.random.default_rng(0).standard_normal((160, 4)))
