"""Write docs/showcase.md and docs/showcase/ from the run of `make showcase`: `make docs/showcase.md`."""

import csv
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import PIL.Image

from shape_of_learning.files import read_yaml
from shape_of_learning.plan.papers import Paper, read_papers

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "results/showcase"
SHOWN = DOCS / "showcase"
# What a person wrote who had looked at it all.
SENTENCES = DOCS / "showcase.yaml"
# Estimators of the intrinsic dimension, and the vectors that they are shown.
DIMENSIONS = {"two_nn": "TwoNN", "mle": "MLE", "mada": "MADA", "mom": "MOM"}
VECTORS = {"all": "all", "one": "one of each token type"}
REFERENCE = {"text": "own", "first_token": "keep", "last_layer": "after_final_norm"}
DPI, COLOURS = 150, 128  # of the images, so that all are small


def main() -> None:
    """Copy the verdicts, shrink the figures, and write the page that shows them."""
    if not (RESULTS / "provenance").is_dir():
        sys.exit(f"{RESULTS} holds no finished run; run `make showcase` first")
    written = read_yaml(SENTENCES)
    shutil.rmtree(SHOWN, ignore_errors=True)
    SHOWN.mkdir()
    page = [written["introduction"], repeated_tokens(), written["repeated_tokens"]]
    for paper in sorted(
        read_papers(DOCS.parent / "workflow/papers"), key=lambda paper: paper.prefix
    ):
        page += [f"## {paper.title}\n", *ledger(paper), *figures(paper, written["figures"])]
    for pattern in ("*.csv", "*.md"):
        for file in (RESULTS / "claims").glob(pattern):
            shutil.copy(file, SHOWN)
    choices = SHOWN / "choices.md"
    choices.write_text(f"# Choices\n\n{choices.read_text('utf-8')}", encoding="utf-8")
    (DOCS / "showcase.md").write_text("\n".join(page), encoding="utf-8")


def repeated_tokens() -> str:
    """Tabulate the intrinsic dimension by step, mean over blocks and models, of all and of unlike tokens."""
    files = sorted((RESULTS / "choices").glob("*/*.csv"))
    rows = pd.concat([pd.read_csv(file) for file in files])
    rows = rows[(rows[[*REFERENCE]] == pd.Series(REFERENCE)).all(axis=1) & (rows["layer"] > 0)]
    rows["step"] = rows["revision"].str.removeprefix("step").astype(int)
    of_each = ["estimator", "token_types"]
    means = rows.groupby([*of_each, "step"])["value"].mean().unstack("step")
    lines = [
        f"| Estimator | Vectors | {' | '.join(f'step {step:,}' for step in means)} |",
        "| :-- | :-- |" + " --: |" * len(means.columns),
    ]
    for estimator, label in DIMENSIONS.items():
        for kind, words in VECTORS.items():
            values = " | ".join(f"{value:.1f}" for value in means.loc[estimator, kind])
            lines.append(f"| {label} | {words} | {values} |")
    return "\n".join([*lines, ""])


def ledger(paper: Paper) -> Iterator[str]:
    """Yield the verdicts on a paper's claims, and where their reasons are."""
    with (RESULTS / f"claims/{paper.name}.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    yield "| Claim | Verdict | Because |\n| :-- | :-- | :-- |"
    for row in rows:
        yield f"| {row['sentence']} | **{row['verdict']}** | {row['because']} |"
    yield f"\nEstimates and rules: [{paper.name}.md](showcase/{paper.name}.md).\n"


def figures(paper: Paper, sentences: dict[str, str]) -> Iterator[str]:
    """Yield the figures and tables of a paper, each with what it shows and does not show, and its caption."""
    names = [*paper.figures, *(f"specification_{claim}" for claim in paper.claims)]
    for name in names:
        drawn = RESULTS / f"figures/{name}.png"
        if not drawn.exists():
            continue
        image = PIL.Image.open(drawn)
        share = DPI / image.info["dpi"][0]
        size = round(image.width * share), round(image.height * share)
        small = image.convert("RGB").resize(size, PIL.Image.Resampling.LANCZOS)
        small.quantize(COLOURS).save(SHOWN / drawn.name, optimize=True)
        caption = drawn.with_suffix(".md").read_text(encoding="utf-8")
        first_sentence, _, _ = caption.partition(".** ")[2].partition(". ")
        yield f"![{first_sentence}](showcase/{drawn.name})\n\n{sentences[name]}\n\n{caption}"
    for name in paper.tables:
        text = RESULTS / f"tables/{name}.md"
        if text.exists():
            yield f"{sentences[name]}\n\n{text.read_text(encoding='utf-8')}"


if __name__ == "__main__":
    main()
