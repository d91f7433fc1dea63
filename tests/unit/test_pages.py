"""What pages state about a run is what its tables say, and published images have the colours that were drawn."""

import re
import sys

import numpy as np
import pandas as pd
import PIL.Image

from checkouts import REPOSITORY
from shape_of_learning.figures.style import COLOURS

sys.path.insert(0, str(REPOSITORY / "docs"))
import write_showcase


def test_the_showcase_says_what_its_ledger_says():
    write_showcase.main("--check")


def test_a_published_image_has_the_colours_that_were_drawn(tmp_path):
    # Many shades besides, as a heat map and smooth edges have.
    drawn = np.tile(np.arange(256, dtype=np.uint8)[:, None, None], (1, 640, 3))
    drawn[..., 1] = drawn[..., 1][::-1]
    for place, colour in enumerate(COLOURS):
        drawn[:, 60 * place : 60 * place + 20] = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    PIL.Image.fromarray(drawn).save(tmp_path / "drawn.png", dpi=(300, 300))
    write_showcase.publish_image(tmp_path / "drawn.png", tmp_path / "published.png")
    published = np.asarray(PIL.Image.open(tmp_path / "published.png").convert("RGB"))
    assert published.shape == (128, 320, 3)
    for place in range(len(COLOURS)):
        assert (published[64, 30 * place + 5] == drawn[128, 60 * place + 10]).all()


DEMO = REPOSITORY / "docs/demo"
DECODER, ENCODER, HIGH = "smollm2-135m-4bit", "minilm-l6", range(12, 29)


def number(sentence: str) -> list[float]:
    """The numbers of a sentence of the demo's page, of which `#` stands for one."""
    words = " ".join((REPOSITORY / "docs/tutorial/demo.md").read_text().split())
    pattern = re.escape(sentence).replace(r"\#", r"([\d,.]*\d)")
    found = re.search(pattern.replace(r"\ ", " "), words)
    assert found, f"the page does not say any more: {sentence}"
    return [float(text.replace(",", "")) for text in found.groups()]


def test_the_page_of_the_demo_says_what_its_tables_say():
    drawn = pd.read_csv(DEMO / "massive_tokens.csv").set_index(["model", "quantity", "layer"])
    value = drawn["value"].sort_index()
    blocks = value[DECODER, "anisotropy"]
    said = number("it is # to # from block 12 to block 28, and # after the final norm")
    high = blocks[HIGH]
    assert [round(each, 2) for each in (high.min(), high.max(), blocks[30])] == said
    assert value[ENCODER, "anisotropy"].max() < number("The encoder stays below #.")[0]
    few = value[DECODER, "anisotropy_without_massive_tokens"][HIGH]
    said = number("the anisotropy of these blocks is # to #,")
    assert [round(few.min(), 2), round(few.max(), 2)] == said
    row = pd.read_csv(DEMO / "massive_tokens_of_decoder.csv").set_index("layer").loc[20]
    massive, tokens, share, first = number(
        "they are # of # tokens and hold # % of the variance; # of them are the first tokens"
    )
    assert (row["massive"], row["n"]) == (massive, tokens)
    assert round(100 * row["massive_share"], 1) == share
    assert f"0 ({first:.0f})" in row["positions"]
    dimensions = pd.read_csv(DEMO / "dimension_by_depth.csv").set_index(
        ["model", "estimator", "layer"]
    )
    two_nn, mada = (dimensions.loc[DECODER, name] for name in ("two_nn", "mada"))
    said = number("rises from # after the first block to # at block 20")
    assert [round(two_nn["value"][layer], 1) for layer in (1, 20)] == said
    said = number("By MADA it falls from # at block 4 to # at block 20")
    assert [round(mada["value"][layer]) for layer in (4, 20)] == said
    assert round(100 * two_nn["same_token"][20]) == number("# % at block 20")[0]


def test_readme_says_what_the_demo_says():
    page = " ".join((REPOSITORY / "README.md").read_text().split())
    drawn = pd.read_csv(DEMO / "massive_tokens.csv").set_index(["model", "quantity", "layer"])
    value = drawn["value"].sort_index()
    low = value[DECODER, "anisotropy"][HIGH].min()
    few = value[DECODER, "anisotropy_without_massive_tokens"][HIGH]
    said = f"{low:.2f} or more with it, {few.min():.2f} to {few.max():.2f} without"
    assert said.replace("0.", ".") in page
