"""What pages state about a run is what its tables say, and published images have the colours that were drawn."""

import math
import re
import sys

import numpy as np
import pandas as pd
import PIL.Image

from checkouts import REPOSITORY
from shape_of_learning.figures.style import COLOURS
from shape_of_learning.findings import find_sentences

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


def page_of_demo() -> str:
    return " ".join((REPOSITORY / "docs/tutorial/demo.md").read_text().split())


def number(sentence: str) -> list[float]:
    """The numbers of a sentence of the demo's page, of which `#` stands for one."""
    words = page_of_demo()
    pattern = re.escape(sentence).replace(r"\#", r"([\d,.]*\d)")
    found = re.search(pattern.replace(r"\ ", " "), words)
    assert found, f"the page does not say any more: {sentence}"
    return [float(text.replace(",", "")) for text in found.groups()]


def drawn_anisotropy() -> pd.Series:
    drawn = pd.read_csv(DEMO / "massive_tokens.csv").set_index(["model", "quantity", "layer"])
    return drawn["value"].sort_index()


def most(value: float, decimals: int = 2) -> float:
    """Round a value up, as it stands beside the words "at most" and "up to"."""
    return math.ceil(value * 10**decimals) / 10**decimals


def least(value: float, decimals: int = 2) -> float:
    """Round a value down, as it stands beside the words "or more"."""
    return math.floor(value * 10**decimals) / 10**decimals


def rounded(values: pd.Series, decimals: int = 2) -> list[float]:
    return [round(end, decimals) for end in (values.min(), values.max())]


def test_the_page_of_the_demo_says_what_its_tables_say():
    value = drawn_anisotropy()
    blocks = value[DECODER, "anisotropy"]
    said = number("above # in blocks # to # and # to #. It is # to # from block 12 to block 28")
    assert [*blocks.index[blocks > said[0]]] == [
        *range(int(said[1]), int(said[2]) + 1),
        *range(int(said[3]), int(said[4]) + 1),
    ]
    assert rounded(blocks[HIGH]) == said[5:]
    assert round(blocks[30], 2) == number("and # after the final norm")[0]
    assert value[ENCODER, "anisotropy"].max() < number("The encoder stays below #.")[0]
    few = value[DECODER, "anisotropy_without_massive_tokens"]
    said = number("the anisotropy from block 12 to block 28 is # to #,")
    assert rounded(few[HIGH]) == said
    massive = pd.read_csv(DEMO / "massive_tokens_of_decoder.csv").set_index("layer")
    said = number("In blocks 3 to 9 as many as # to # tokens are so long, and # to # is left")
    assert [*rounded(massive["massive"].loc[3:9], 0), *rounded(few.loc[3:9])] == said
    [joint] = set(massive["massive_in_any_layer"])
    assert joint == number("the same # tokens in every layer")[0]
    row = massive.loc[20]
    number_of_massive, tokens, share, first = number(
        "# of # tokens are so long and hold # % of the variance; # of them are the first tokens"
    )
    assert (row["massive"], row["n"]) == (number_of_massive, tokens)
    assert round(100 * row["massive_share"], 1) == share
    assert f"0 ({first:.0f})" in row["positions"]
    dimensions = pd.read_csv(DEMO / "dimension_by_depth.csv").set_index(
        ["model", "estimator", "layer"]
    )
    two_nn, mada, median = (
        dimensions.loc[DECODER, name] for name in ("two_nn", "mada", "mada_median")
    )
    said = number("rises from # after the first block to # at block 20")
    assert [round(two_nn["value"][layer], 1) for layer in (1, 20)] == said
    said = number("from # after the first block to # at block 20; the embeddings, layer 0, have #")
    assert [round(median["value"][layer]) for layer in (1, 20, 0)] == said
    said = number("falls first, from # at block 4 to # at block 13. In block 1 it is # times")
    assert [round(mada["value"][layer]) for layer in (4, 13)] == said[:2]
    assert round(mada["value"][1] / median["value"][1], 1) == said[2]
    assert round(100 * two_nn["same_token"][20]) == number("# % at block 20")[0]
    of_40 = pd.read_csv(REPOSITORY / "docs/data/demo/estimates.csv")
    of_40 = of_40[(of_40["model"] == "smollm2-135m-4bit") & (of_40["selection"] == "all")]
    of_40 = of_40[(of_40["estimator"] == "mada") & (of_40["layer"] == 30)].iloc[0]
    said = number("last block has # [#, #] with 40 windows and # [#, #] with 128")
    assert [
        round(row[key], 1) for row in (of_40, mada.loc[30]) for key in ("value", "low", "high")
    ] == said


def test_explanations_say_how_many_neighbours_of_the_demo_are_copies():
    table = pd.read_csv(REPOSITORY / "docs/data/demo/estimates.csv")
    blocks = table[(table["layer"] > 0) & (table["selection"] == "all")]
    two_nn = blocks[blocks["estimator"] == "two_nn"].set_index(["model", "revision", "layer"])
    page = (REPOSITORY / "docs/explanation/statistics.md").read_text()
    said = re.search(r"blocks, (\d+) to (\d+) % of .*SmolLM2-135M and (\d+) to (\d+) % of", page)
    shares = [100 * two_nn["same_token"][name] for name in (DECODER, "minilm-l6")]
    assert [round(end(of)) for of in shares for end in (min, max)] == [*map(int, said.groups())]
    authors = blocks[blocks["estimator"] == "two_nn_authors"]
    ratios = (
        authors.set_index(["model", "revision", "layer"])["value"].div(two_nn["value"]).dropna()
    )
    page = (REPOSITORY / "docs/explanation/protocol.md").read_text()
    said = re.search(r"it is ([\d.]+) to ([\d.]+) times `two_nn`", page)
    assert [round(end(ratios), 1) for end in (min, max)] == [*map(float, said.groups())]


def test_the_page_of_the_demo_says_what_null_models_have():
    drawn = pd.read_csv(DEMO / "controls_by_layer.csv")
    drawn = drawn[(drawn["model"] == DECODER) & (drawn["layer"] >= 1)]
    values = drawn.pivot(index=["estimator", "layer"], columns="control", values="value")
    model, shuffled, untrained = (
        values[name] for name in ("model itself", "shuffled_within_windows", "untrained")
    )
    changes = (shuffled - model).abs().groupby("estimator").max()
    said = number(
        "linearity changes by # at most, its anisotropy by # at most (# for # at block 9)"
    )
    ends = [round(of["anisotropy", 9], 2) for of in (shuffled, model)]
    assert [most(changes["linearity"]), most(changes["anisotropy"]), *ends] == said
    ratios = shuffled / model
    said = number("its dimension by MADA is # to # times as high")
    assert rounded(ratios["mada"]) == said
    said = number("Its dimension by TwoNN is up to # times as high")
    assert most(ratios["two_nn"].max()) == said[0]
    said = number("With untrained weights the anisotropy is # at most")
    assert most(untrained["anisotropy"].max()) == said[0]
    said = number("is # in block 1 and # in block 2, but # or more from block 3 on")
    found = untrained["linearity"]
    assert [round(found[1], 2), round(found[2], 2), least(found.loc[3:].min())] == said
    said = number("as in the trained one (# or more)")
    assert least(model["linearity"].loc[3:].min()) == said[0]


def test_readme_says_what_the_demo_says():
    page = " ".join((REPOSITORY / "README.md").read_text().split())
    value = drawn_anisotropy()
    blocks = value[DECODER, "anisotropy"]
    few = value[DECODER, "anisotropy_without_massive_tokens"][[*range(3, 10), *range(12, 30)]]
    low, high = rounded(blocks[HIGH])
    assert f"{low:.2f} to {high:.2f} in blocks 12 to 28" in page
    low, high = rounded(few)
    assert f"{low:.2f} to {high:.2f} is left in all blocks above 0.5" in page
    massive = pd.read_csv(DEMO / "massive_tokens_of_decoder.csv").set_index("layer").loc[HIGH]
    low, high = rounded(100 * massive["massive_share"], 0)
    assert page.count(f"first of each window, holds {low:.0f} to {high:.0f} % of the variance") == 2
    assert all(round(100 * massive["massive"] / massive["n"]) == 1)
    anisotropic = find_sentences("M", anisotropy_rows(blocks))[0]
    assert "0.5 or more in blocks 3 to 9 and 12 to 29" in anisotropic
    assert "above 0.5 in blocks 3 to 9 and 12 to 29" in page


def anisotropy_rows(values: pd.Series) -> list[dict[str, object]]:
    return [{"estimator": "anisotropy", "layer": n, "value": v, "n": 1} for n, v in values.items()]


def test_readme_is_short():
    assert len((REPOSITORY / "README.md").read_text().split()) <= 900
