import csv
import json

import pytest

from shape_of_learning.errors import InputError
from shape_of_learning.figures.table_1 import read_entries, write_table

BLOOM = {
    "model": "Bloom-3B",
    "layers": 30,
    "hidden_size": 2560,
    "attention_heads": 32,
    "vocabulary": 250880,
    "batch_size": 512,
    "learning_rate": 0.00016,
    "training_tokens": 341_000_000_000,
}


def test_the_csv_holds_the_numbers_as_they_were_given(tmp_path):
    entries = read_entries(json.dumps([BLOOM, BLOOM | {"model": "other", "layers": 7}]))
    write_table(entries, tmp_path / "table_1.csv", tmp_path / "table_1.md")
    with (tmp_path / "table_1.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    assert first == {key: str(value) for key, value in BLOOM.items()}
    assert (second["model"], second["layers"]) == ("other", "7")


def test_the_markdown_is_written_for_people(tmp_path):
    write_table([BLOOM], tmp_path / "table_1.csv", tmp_path / "table_1.md")
    heading, rule, row = (tmp_path / "table_1.md").read_text().splitlines()
    assert heading.startswith("| Model | Layers | Hidden size | Attention heads | Vocabulary |")
    assert rule.count("|") == heading.count("|")
    assert row == "| Bloom-3B | 30 | 2,560 | 32 | 250,880 | 512 | 1.6e-4 | 341B |"


def test_entries_may_come_from_a_file(tmp_path):
    path = tmp_path / "entries.json"
    path.write_text(json.dumps([BLOOM]))
    assert read_entries(str(path)) == [BLOOM]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[]", "at least one model"),
        ("[", "no valid JSON"),
        ("missing.json", "No such file"),
        (json.dumps([{"layers": 3}]), "names its model"),
        (json.dumps([BLOOM | {"heads": 3}]), "Bloom-3B: heads is no column"),
        (json.dumps([BLOOM | {"layers": None}]), "Bloom-3B: layers is None"),
        (json.dumps([BLOOM | {"learning_rate": "3e-4"}]), "learning_rate is '3e-4'"),
        (json.dumps([BLOOM | {"batch_size": float("inf")}]), "batch_size is inf"),
    ],
)
def test_what_is_no_list_of_models_is_refused(text, reason):
    with pytest.raises(InputError, match=reason):
        read_entries(text)
