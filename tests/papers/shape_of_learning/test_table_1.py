"""Table 1 has the recipes of the models whose trainings are measured."""

import yaml

from checkouts import REPOSITORY
from papers.shape_of_learning.figures import RECIPE, training_recipes
from shape_of_learning.plan.entries import read_entries

ENTRIES = read_entries(REPOSITORY / "config/models")


def list_recipes():
    defaults = yaml.safe_load((REPOSITORY / "config/config.yaml").read_text())
    for name in defaults["figures"]["table_1"]:
        entry = ENTRIES[name][1]
        size = {"layers": entry["layers"], "hidden_size": entry["hidden_size"]}
        yield {"model": entry["label"], **size, **entry["table_1"]}


def test_table_1_has_the_thirteen_rows_of_the_paper_for_each_of_its_models():
    table, markdown = training_recipes([*list_recipes()])
    assert len(RECIPE) == 13
    assert len(table) == 6
    assert not table[[*RECIPE]].isna().any(axis=None)
    assert len(markdown.splitlines()) == 2 + 13


def test_a_wrong_value_of_the_paper_stands_beside_the_right_one():
    table, markdown = training_recipes([*list_recipes()])
    wrong = table.set_index("model")["published"]
    assert dict(wrong[wrong != ""]) == {
        "Pythia-2.8B": "vocabulary 50257",
        "TinyLlama-1.1B": "attention_heads 16",
    }
    (heads,) = (line for line in markdown.splitlines() if "Attention heads" in line)
    assert "32 (the paper: 16)" in heads
    # The paper's value may be text in a row of numbers.
    published = {"batch_size": "about 1k", "tied_embeddings": "no"}
    recipe = {"model": "m", "batch_size": 1024, "tied_embeddings": True, "published": published}
    _, markdown = training_recipes([recipe])
    assert "1,024 (the paper: about 1k)" in markdown
    assert "yes (the paper: no)" in markdown
