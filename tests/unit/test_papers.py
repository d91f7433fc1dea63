"""A paper's folder says what it shows; what is wrong with it is said in one sentence."""

from pathlib import Path

import pytest
import yaml

from shape_of_learning.errors import InputError
from shape_of_learning.plan.paper_models import check_estimators
from shape_of_learning.plan.papers import figures_of, read_papers, tables_of

PAPERS = Path(__file__).parents[2] / "workflow" / "papers"
FIGURE = {
    "draw": "curve",
    "estimators": ["mle"],
    "checkpoints": "last",
    "caption": "{measures} of {models}.",
}
PAPER = {"title": "A title", "citation": "Nobody", "prefix": "x_", "figures": {"figure_1": FIGURE}}
FUNCTIONS = "def curve(inputs, width=1):\n    ...\n\ndef recipes(entries):\n    ...\n"


def write(folder: Path, paper: object, functions: str = FUNCTIONS, name: str = "x") -> Path:
    (folder / name).mkdir()
    (folder / name / "paper.yaml").write_text(yaml.safe_dump(paper))
    (folder / name / "figures.py").write_text(functions)
    return folder


def refusal(folder: Path, *paper, **options) -> str:
    with pytest.raises(InputError) as refused:
        read_papers(write(folder, *paper, **options))
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_the_first_paper_has_its_targets_without_a_prefix():
    papers = read_papers(PAPERS)
    assert set(figures_of(papers)) >= {*(f"figure_{n}" for n in range(1, 6)), "loss_by_step"}
    assert set(tables_of(papers)) >= {"table_1", "finetuning_table_1"}


def test_targets_of_another_paper_have_its_prefix(tmp_path):
    table = {"write": "recipes", "caption": "Recipes."}
    (paper,) = read_papers(write(tmp_path, PAPER | {"tables": {"table_1": table}}))
    assert list(paper.figures) == ["x_figure_1"]
    assert list(paper.tables) == ["x_table_1"]
    assert not paper.figures["x_figure_1"].needs_training_steps


def test_two_papers_do_not_share_a_target(tmp_path):
    write(tmp_path, PAPER)
    said = refusal(tmp_path, PAPER, name="y")
    assert "papers `x` and `y` both have the target `x_figure_1`; give one of them" in said


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("draw", "curves", "unknown function of figures.py `curves`; did you mean `curve`?"),
        ("options", {"widht": 2}, "unknown argument of `curve` `widht`; did you mean `width`?"),
        ("settings", ["average_over"], "unknown argument of `curve` `average_over`; known: width"),
        ("settings", ["average"], "`figures.figure_1.settings.0` is 'average', but must be one of"),
        ("checkpoints", "first", "is 'first', but must be one of `last`, `training`"),
        ("caption", "{labels}", "unknown field of the caption `labels`"),
        ("caption", "{", "the caption has "),
        ("caption", "{sampling}", "unknown field of the caption `sampling`"),
        ("role", "both", "is 'both', but must be one of `decoder`, `encoder`"),
        ("estimator", "mle", "unknown key `estimator` in `figures.figure_1`; did you mean"),
    ],
)
def test_a_wrong_figure_is_one_sentence_that_names_the_file(tmp_path, key, value, sentence):
    said = refusal(tmp_path, PAPER | {"figures": {"figure_1": FIGURE | {key: value}}})
    assert sentence in said
    assert str(tmp_path / "x" / "paper.yaml") in said


@pytest.mark.parametrize("functions", ["def curve(:", "\0"])
def test_functions_that_cannot_be_read_are_one_sentence(tmp_path, functions):
    assert "figures.py cannot be read" in refusal(tmp_path, PAPER, functions)


def test_an_estimator_that_cannot_be_measured_is_one_sentence(tmp_path):
    figures = figures_of(read_papers(write(tmp_path, PAPER)))
    check_estimators(figures, ["mle"])
    with pytest.raises(InputError, match="estimators of `x_figure_1`: unknown estimator `mle`"):
        check_estimators(figures, ["mom"])


def test_a_missing_key_is_named(tmp_path):
    assert "key `title` is missing" in refusal(
        tmp_path, {key: value for key, value in PAPER.items() if key != "title"}
    )
