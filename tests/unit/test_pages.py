"""Numbers on pages are those of the run's tables, and published images keep the colours of the drawings."""

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


def test_the_showcase_agrees_with_its_ledger():
    write_showcase.main("--check")


def test_a_published_image_keeps_the_colours_of_the_drawing(tmp_path):
    # Many shades, as in a heat map, beside the colours of lines.
    image = np.tile(np.arange(256, dtype=np.uint8)[:, None, None], (1, 640, 3))
    image[..., 1] = image[..., 1][::-1]
    for place, colour in enumerate(COLOURS):
        image[:, 60 * place : 60 * place + 20] = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    PIL.Image.fromarray(image).save(tmp_path / "drawn.png", dpi=(300, 300))
    write_showcase.publish_image(tmp_path / "drawn.png", tmp_path / "published.png")
    published_image = np.asarray(PIL.Image.open(tmp_path / "published.png").convert("RGB"))
    assert published_image.shape == (128, 320, 3)
    for place in range(len(COLOURS)):
        assert (published_image[64, 30 * place + 5] == image[128, 60 * place + 10]).all()


DEMO = REPOSITORY / "docs/demo"
DECODER, ENCODER, HIGH = "smollm2-135m-4bit", "minilm-l6", range(12, 29)


def read_demo_page() -> str:
    return " ".join((REPOSITORY / "docs/tutorial/demo.md").read_text().split())


def read_page_numbers(sentence: str) -> list[float]:
    """Return the numbers of a sentence of the demo's page, in which each `#` stands for a number."""
    words = read_demo_page()
    pattern = re.escape(sentence).replace(r"\#", r"([\d,.]*\d)")
    match = re.search(pattern.replace(r"\ ", " "), words)
    assert match, f"the page does not say any more: {sentence}"
    return [float(text.replace(",", "")) for text in match.groups()]


def read_anisotropy() -> pd.Series:
    table = pd.read_csv(DEMO / "massive_tokens.csv").set_index(["model", "quantity", "layer"])
    return table["value"].sort_index()


def round_up(value: float, decimals: int = 2) -> float:
    """Round a value up, as beside the words "at most" and "up to"."""
    return math.ceil(value * 10**decimals) / 10**decimals


def round_down(value: float, decimals: int = 2) -> float:
    """Round a value down, as beside the words "or more"."""
    return math.floor(value * 10**decimals) / 10**decimals


def round_ends(values: pd.Series, decimals: int = 2) -> list[float]:
    return [round(end, decimals) for end in (values.min(), values.max())]


def test_numbers_on_the_page_of_the_demo_are_those_of_its_tables():
    value = read_anisotropy()
    blocks = value[DECODER, "anisotropy"]
    numbers = read_page_numbers(
        "above # in blocks # to # and # to #. It is # to # from block 12 to block 28"
    )
    assert [*blocks.index[blocks > numbers[0]]] == [
        *range(int(numbers[1]), int(numbers[2]) + 1),
        *range(int(numbers[3]), int(numbers[4]) + 1),
    ]
    assert round_ends(blocks[HIGH]) == numbers[5:]
    assert round(blocks[30], 2) == read_page_numbers("and # after the final norm")[0]
    assert value[ENCODER, "anisotropy"].max() < read_page_numbers("The encoder stays below #.")[0]
    remaining_anisotropy = value[DECODER, "anisotropy_without_massive_tokens"]
    numbers = read_page_numbers("the anisotropy from block 12 to block 28 is # to #,")
    assert round_ends(remaining_anisotropy[HIGH]) == numbers
    massive = pd.read_csv(DEMO / "massive_tokens_of_decoder.csv").set_index("layer")
    numbers = read_page_numbers(
        "In blocks 3 to 9 as many as # to # tokens are so long, and # to # is left"
    )
    assert [
        *round_ends(massive["massive"].loc[3:9], 0),
        *round_ends(remaining_anisotropy.loc[3:9]),
    ] == numbers
    [number_in_any_layer] = set(massive["massive_in_any_layer"])
    assert number_in_any_layer == read_page_numbers("the same # tokens in every layer")[0]
    row = massive.loc[20]
    number_of_massive, tokens, share, first = read_page_numbers(
        "# of # tokens are so long and hold # % of the variance; # of them are the first tokens"
    )
    assert (row["massive"], row["n"]) == (number_of_massive, tokens)
    assert round(100 * row["massive_share"], 1) == share
    assert f"0 ({first:.0f})" in row["positions"]
    dimensions = pd.read_csv(DEMO / "dimension_by_depth.csv").set_index(
        ["model", "estimator", "layer"]
    )
    two_nn, mada, mada_median = (
        dimensions.loc[DECODER, name] for name in ("two_nn", "mada", "mada_median")
    )
    numbers = read_page_numbers("rises from # after the first block to # at block 20")
    assert [round(two_nn["value"][layer], 1) for layer in (1, 20)] == numbers
    numbers = read_page_numbers(
        "from # after the first block to # at block 20; the embeddings, layer 0, have #"
    )
    assert [round(mada_median["value"][layer]) for layer in (1, 20, 0)] == numbers
    numbers = read_page_numbers(
        "falls first, from # at block 4 to # at block 13. In block 1 it is # times"
    )
    assert [round(mada["value"][layer]) for layer in (4, 13)] == numbers[:2]
    assert round(mada["value"][1] / mada_median["value"][1], 1) == numbers[2]
    assert round(100 * two_nn["same_token"][20]) == read_page_numbers("# % at block 20")[0]
    estimates = pd.read_csv(REPOSITORY / "docs/data/demo/estimates.csv")
    estimates = estimates[
        (estimates["model"] == "smollm2-135m-4bit") & (estimates["selection"] == "all")
    ]
    estimates = estimates[(estimates["estimator"] == "mada") & (estimates["layer"] == 30)].iloc[0]
    numbers = read_page_numbers("last block has # [#, #] with 40 windows and # [#, #] with 128")
    assert [
        round(row[key], 1) for row in (estimates, mada.loc[30]) for key in ("value", "low", "high")
    ] == numbers


def test_shares_of_copies_in_the_explanations_are_those_of_the_demo():
    table = pd.read_csv(REPOSITORY / "docs/data/demo/estimates.csv")
    blocks = table[(table["layer"] > 0) & (table["selection"] == "all")]
    two_nn = blocks[blocks["estimator"] == "two_nn"].set_index(["model", "revision", "layer"])
    page = (REPOSITORY / "docs/explanation/statistics.md").read_text()
    match = re.search(r"blocks, (\d+) to (\d+) % of .*SmolLM2-135M and (\d+) to (\d+) % of", page)
    shares = [100 * two_nn["same_token"][name] for name in (DECODER, "minilm-l6")]
    assert [round(end(model_shares)) for model_shares in shares for end in (min, max)] == [
        *map(int, match.groups())
    ]
    authors = blocks[blocks["estimator"] == "two_nn_authors"]
    ratios = (
        authors.set_index(["model", "revision", "layer"])["value"].div(two_nn["value"]).dropna()
    )
    page = (REPOSITORY / "docs/explanation/protocol.md").read_text()
    match = re.search(r"it is ([\d.]+) to ([\d.]+) times `two_nn`", page)
    assert [round(end(ratios), 1) for end in (min, max)] == [*map(float, match.groups())]


def test_numbers_of_null_models_on_the_page_of_the_demo_are_those_of_its_tables():
    table = pd.read_csv(DEMO / "controls_by_layer.csv")
    table = table[(table["model"] == DECODER) & (table["layer"] >= 1)]
    values = table.pivot(index=["estimator", "layer"], columns="control", values="value")
    model, shuffled_model, untrained_model = (
        values[name] for name in ("model itself", "shuffled_within_windows", "untrained")
    )
    changes = (shuffled_model - model).abs().groupby("estimator").max()
    numbers = read_page_numbers(
        "linearity changes by # at most, its anisotropy by # at most (# for # at block 9)"
    )
    ends = [round(model_values["anisotropy", 9], 2) for model_values in (shuffled_model, model)]
    assert [round_up(changes["linearity"]), round_up(changes["anisotropy"]), *ends] == numbers
    ratios = shuffled_model / model
    numbers = read_page_numbers("its dimension by MADA is # to # times as high")
    assert round_ends(ratios["mada"]) == numbers
    numbers = read_page_numbers("Its dimension by TwoNN is up to # times as high")
    assert round_up(ratios["two_nn"].max()) == numbers[0]
    numbers = read_page_numbers("With untrained weights the anisotropy is # at most")
    assert round_up(untrained_model["anisotropy"].max()) == numbers[0]
    numbers = read_page_numbers("is # in block 1 and # in block 2, but # or more from block 3 on")
    linearity = untrained_model["linearity"]
    assert [
        round(linearity[1], 2),
        round(linearity[2], 2),
        round_down(linearity.loc[3:].min()),
    ] == numbers
    numbers = read_page_numbers("as in the trained one (# or more)")
    assert round_down(model["linearity"].loc[3:].min()) == numbers[0]


def test_numbers_in_the_readme_are_those_of_the_demo():
    page = " ".join((REPOSITORY / "README.md").read_text().split())
    value = read_anisotropy()
    blocks = value[DECODER, "anisotropy"]
    remaining_anisotropy = value[DECODER, "anisotropy_without_massive_tokens"][
        [*range(3, 10), *range(12, 30)]
    ]
    low, high = round_ends(blocks[HIGH])
    assert f"{low:.2f} to {high:.2f} in blocks 12 to 28" in page
    low, high = round_ends(remaining_anisotropy)
    assert f"{low:.2f} to {high:.2f} is left in all blocks above 0.5" in page
    massive = pd.read_csv(DEMO / "massive_tokens_of_decoder.csv").set_index("layer").loc[HIGH]
    low, high = round_ends(100 * massive["massive_share"], 0)
    assert page.count(f"first of each window, holds {low:.0f} to {high:.0f} % of the variance") == 2
    assert all(round(100 * massive["massive"] / massive["n"]) == 1)
    anisotropic = find_sentences("M", make_anisotropy_rows(blocks))[0]
    assert "0.5 or more in blocks 3 to 9 and 12 to 29" in anisotropic
    assert "above 0.5 in blocks 3 to 9 and 12 to 29" in page


def make_anisotropy_rows(values: pd.Series) -> list[dict[str, object]]:
    return [{"estimator": "anisotropy", "layer": n, "value": v, "n": 1} for n, v in values.items()]


def test_readme_is_short():
    assert len((REPOSITORY / "README.md").read_text().split()) <= 900
