"""Files of vectors are read or refused with the reason, and options of a forward pass are refused with them."""

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
def test_options_of_a_forward_pass_are_refused_with_vectors(tmp_path, option):
    np.save(tmp_path / "v.npy", np.random.default_rng(0).normal(size=(60, 4)))
    (tmp_path / "a.txt").write_text("text")
    with chdir(tmp_path):
        result = CliRunner().invoke(app, ["measure", "v.npy", option])
    assert result.exit_code != 0
    assert f"leave out {option.partition('=')[0]}" in " ".join(result.output.split())


@pytest.mark.parametrize(
    "key", ["tokenizer", "texts", "windows", "window_tokens", "batch_size", "device"]
)
def test_arguments_of_a_forward_pass_are_refused_with_vectors(key):
    X = np.random.default_rng(0).normal(size=(60, 4))
    with pytest.raises(InputError, match=f"`{key}` needs a model"):
        measure(X, batch_vectors=50, **{key: 1})


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_pointer_of_git_lfs_is_refused_with_the_remedy(suffix, tmp_path):
    file = tmp_path / f"v{suffix}"
    file.write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 9\n")
    with pytest.raises(InputError, match="run `git lfs pull` in"):
        measure(file)


def test_groups_are_read_and_columns_of_other_whole_numbers_refused(tmp_path):
    X = np.random.default_rng(0).standard_normal((64, 4))
    groups = [row // 4 for row in range(64)]
    torch.save({"vectors": torch.tensor(X), "groups": groups}, tmp_path / "a.pt")
    vectors, loaded_groups = read_vectors(str(tmp_path / "a.pt"))
    assert loaded_groups.tolist() == groups
    assert (vectors == X).all()
    table = pd.DataFrame(X, columns=list("abcd"))
    table.assign(groups=groups).to_parquet(tmp_path / "a.parquet")
    vectors, loaded_groups = read_vectors(str(tmp_path / "a.parquet"))
    assert loaded_groups.tolist() == groups
    assert (vectors == X).all()
    table.assign(label=groups).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"`label`.* beside coordinates"):
        read_vectors(str(tmp_path / "a.parquet"))


def test_columns_of_any_type_of_number_are_coordinates(tmp_path, caplog):
    """A column may hold missing or decimal numbers; columns that are no coordinates are logged."""
    X = np.random.default_rng(0).standard_normal((160, 4))
    table = pd.DataFrame(X, columns=list("abcd"))
    file = tmp_path / "a.parquet"
    decimal = table.assign(b=[Decimal(repr(value)) for value in X[:, 1].tolist()])
    for stored_table in (table.convert_dtypes(), decimal):
        stored_table.to_parquet(file)
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
