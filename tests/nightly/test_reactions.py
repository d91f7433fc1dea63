"""Two published fine-tunings of one BERT, and the page on them."""

import re
import subprocess
import sys

import pandas as pd
import pytest

from checkouts import REPOSITORY

PAGE = REPOSITORY / "docs/explanation/finetunings.md"
FINETUNED = ("bert_ft", "bert_ft_10k_25s")


@pytest.fixture(scope="module")
def measured_reactions(tmp_path_factory):
    """The folder of the tables, and the output of the command."""
    folder = tmp_path_factory.mktemp("reactions")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run([*install, "--target", folder / "packages", "rxnfp==0.1.0"], check=True)
    output = subprocess.run(
        [sys.executable, "-m", "benchmarks.reactions", folder / "reactions"],
        check=True,
        cwd=REPOSITORY,
        env={"PYTHONPATH": str(folder / "packages"), "HOME": str(folder)},
        capture_output=True,
        text=True,
    ).stdout
    return folder / "reactions", output


def read_last_layer(folder, table: str, name: str) -> pd.DataFrame:
    rows = pd.read_csv(folder / table / f"{name}.csv")
    return rows[rows["layer"] == rows["layer"].max()]


def list_values(folder, table: str, is_meant: str) -> list[float]:
    """Return the value before fine-tuning, and the values of both models after it."""
    rows = [read_last_layer(folder, table, name).query(is_meant) for name in FINETUNED]
    start_value, *end_values = (
        float(model_rows.loc[model_rows["step"] == step, "value"].iloc[0])
        for model_rows, step in ((rows[0], 0), (rows[0], 1), (rows[1], 1))
    )
    return [start_value, *end_values]


def read_page_row(title: str) -> list[float]:
    (row,) = (line for line in PAGE.read_text().splitlines() if line.startswith(f"| {title} |"))
    return [float(cell) for cell in re.findall(r"-?\d+(?:\.\d+)?(?= \|)", row)]


@pytest.mark.parametrize(
    ("title", "table", "is_meant", "digits"),
    [
        ("ln I (0 is isotropic)", "finetuning_layers", "estimator == 'log_partition_isotropy'", 1),
        ("mean cosine", "finetuning_layers", "estimator == 'average_cosine'", 2),
        (
            "share of the variance between token types",
            "finetuning_structure",
            "quantity == 'share_between_token_types'",
            2,
        ),
        (
            "share of the variance between bands of token frequency",
            "finetuning_structure",
            "quantity == 'share_between_frequency_bands'",
            2,
        ),
    ],
)
def test_numbers_on_the_page_are_the_measured_ones(
    measured_reactions, title, table, is_meant, digits
):
    values = list_values(measured_reactions[0], table, is_meant)
    assert [round(value, digits) for value in values] == read_page_row(title)


def test_the_page_counts_elongated_directions(measured_reactions):
    counts = []
    for name in FINETUNED:
        rows = read_last_layer(measured_reactions[0], "finetuning_spectra", name)
        limit = 10 * rows.loc[rows["step"] == 0, "median"].iloc[0]
        counts += [
            int((step_rows["eigenvalue"] > limit).sum()) for _, step_rows in rows.groupby("step")
        ]
    start_count, first, same_start_count, second = counts
    assert start_count == same_start_count
    assert [start_count, first, second] == read_page_row("elongated directions")


def test_one_claim_is_supported_and_none_refuted(measured_reactions):
    verdicts = dict(re.findall(r"^(finetuning_\w+): (\w+)", measured_reactions[1], re.MULTILINE))
    assert verdicts == {
        "finetuning_does_not_raise_isotropy": "undecided",
        "finetuning_changes_local_structure": "supported",
        "finetuning_puts_the_task_into_elongated_directions": "undecided",
    }
