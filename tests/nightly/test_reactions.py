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
def measured(tmp_path_factory):
    """The folder of the tables, and what the command printed."""
    folder = tmp_path_factory.mktemp("reactions")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run([*install, "--target", folder / "packages", "rxnfp==0.1.0"], check=True)
    printed = subprocess.run(
        [sys.executable, "-m", "benchmarks.reactions", folder / "reactions"],
        check=True,
        cwd=REPOSITORY,
        env={"PYTHONPATH": f"workflow:{folder / 'packages'}", "HOME": str(folder)},
        capture_output=True,
        text=True,
    ).stdout
    return folder / "reactions", printed


def read_last_layer(folder, table: str, name: str) -> pd.DataFrame:
    rows = pd.read_csv(folder / table / f"{name}.csv")
    return rows[rows["layer"] == rows["layer"].max()]


def list_values(folder, table: str, is_meant: str) -> list[float]:
    """The value before, and that of each model after."""
    rows = [read_last_layer(folder, table, name).query(is_meant) for name in FINETUNED]
    before, *after = (
        float(of.loc[of["step"] == step, "value"].iloc[0])
        for of, step in ((rows[0], 0), (rows[0], 1), (rows[1], 1))
    )
    return [before, *after]


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
def test_the_page_says_what_is_measured(measured, title, table, is_meant, digits):
    values = list_values(measured[0], table, is_meant)
    assert [round(value, digits) for value in values] == read_page_row(title)


def test_the_page_counts_elongated_directions(measured):
    counts = []
    for name in FINETUNED:
        rows = read_last_layer(measured[0], "finetuning_spectra", name)
        least = 10 * rows.loc[rows["step"] == 0, "median"].iloc[0]
        counts += [int((of["eigenvalue"] > least).sum()) for _, of in rows.groupby("step")]
    before, first, again, second = counts
    assert before == again
    assert [before, first, second] == read_page_row("elongated directions")


def test_one_claim_is_supported_and_none_refuted(measured):
    verdicts = dict(re.findall(r"^(finetuning_\w+): (\w+)", measured[1], re.MULTILINE))
    assert verdicts == {
        "finetuning_does_not_raise_isotropy": "undecided",
        "finetuning_changes_local_structure": "supported",
        "finetuning_puts_the_task_into_elongated_directions": "undecided",
    }
