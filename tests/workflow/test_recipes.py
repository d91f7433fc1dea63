"""The recipes of docs/how_to, run as they are written, on tiny models and a small text."""

import re
import shlex

import pytest

import tiny_models
from checkouts import REPOSITORY, Checkout, check_out

PAGES = REPOSITORY / "docs/how_to"
FILE = re.compile(r"```\{code-block\} yaml\n:caption: (\S+)\n\n(.*?)```", re.DOTALL)
COMMAND = re.compile(r"```sh\n(snakemake .*?)\n```", re.DOTALL)
SMALL = {"windows: 128": "windows: 24", "window_characters: 512": "window_characters: 60"}
SMALL |= {"batch_vectors: 4096": "batch_vectors: 500", "source: enwik8": "source: python_topics"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Checkout:
    """A clone whose defaults are small, with a model, a training run and a text of a user's."""
    checkout = check_out(tmp_path_factory.mktemp("recipes"))
    defaults = checkout.folder / "config/config.yaml"
    text = defaults.read_text()
    for old, new in SMALL.items():
        assert old in text
        text = text.replace(old, new, 1)
    defaults.write_text(text)
    tiny_models.save_tiny_model(checkout.folder / "my-model", "gpt_neox", head=True)
    for number, step in enumerate((0, 100, 200)):
        run = checkout.folder / f"run/checkpoint-{step}"
        tiny_models.save_tiny_model(run, "gpt_neox", head=True, seed=number)
    (checkout.folder / "my-text.txt").write_text("".join(tiny_models.TEXT * 100))
    return checkout


@pytest.mark.parametrize(
    ("page", "files"),
    [
        ("own_model", ["results/figures/dimension_by_depth.png", "results/my-model/explorer.html"]),
        ("own_run", ["results/my-run/figures/heat_map.png", "results/my-run/figures/figure_2.png"]),
        ("text", ["results/one-key/explorer.html", "results/my-text/explorer.html"]),
    ],
)
def test_the_commands_of_a_page_make_what_it_says(folder, page, files):
    text = (PAGES / f"{page}.md").read_text()
    for name, content in FILE.findall(text):
        (folder.folder / name).write_text(content)
    commands = COMMAND.findall(text)
    assert commands
    for command in commands:
        folder.snakemake(*shlex.split(command)[1:])
    for file in files:
        assert (folder.folder / file).exists(), file
