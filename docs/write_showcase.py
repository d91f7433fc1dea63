"""Copy the results of `make showcase` to docs/showcase/, and write docs/showcase.md from these copies.

`make docs/showcase.md` does both. With ``--check``, this script compares the page with the copies and writes nothing.
"""

import csv
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import PIL.Image

from shape_of_learning.plan.papers import Paper, read_papers

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "results/showcase"
KEPT = DOCS / "showcase"
PAGE = DOCS / "showcase.md"
INTRODUCTION = KEPT / "introduction.txt"
DPI = 150  # resolution of the published images, so that their files are small


def main(*arguments: str) -> None:
    """Copy the results and write the page, or compare the page with the copies."""
    if arguments == ("--check",):
        if PAGE.read_text(encoding="utf-8") != format_page():
            sys.exit(f"{PAGE} differs from the copies in {KEPT}; run `make docs/showcase.md`")
        return
    keep_results()
    PAGE.write_text(format_page(), encoding="utf-8")


def keep_results() -> None:
    """Copy verdicts and captions, and shrink the figures."""
    if not (RESULTS / "provenance").is_dir():
        sys.exit(f"{RESULTS} holds no finished run; run `make showcase` first")
    for file in KEPT.iterdir():
        if file != INTRODUCTION:
            file.unlink()
    for suffix in ("csv", "md"):
        for file in (RESULTS / "claims").glob(f"*.{suffix}"):
            shutil.copy(file, KEPT)
    choices = KEPT / "choices.md"
    choices.write_text(f"# Choices\n\n{choices.read_text('utf-8')}", encoding="utf-8")
    for paper in list_papers():
        for name in list_drawings(paper):
            if (image := RESULTS / f"figures/{name}.png").exists():
                publish_image(image, KEPT / image.name)
                shutil.copy(image.with_suffix(".md"), KEPT / f"{name}.caption.txt")
        for name in paper.tables:
            if (table := RESULTS / f"tables/{name}.md").exists():
                shutil.copy(table, KEPT / f"{name}.table.txt")


def publish_image(source: Path, target: Path) -> None:
    """Shrink an image without a palette, which would merge the blue of one line with the green of another."""
    image = PIL.Image.open(source)
    share = DPI / image.info["dpi"][0]
    size = round(image.width * share), round(image.height * share)
    small = image.convert("RGB").resize(size, PIL.Image.Resampling.LANCZOS)
    small.save(target, optimize=True)


def format_page() -> str:
    """Write the page: the introduction, then the verdicts and figures of each paper of the run."""
    lines = [INTRODUCTION.read_text(encoding="utf-8")]
    for paper in list_papers():
        if (KEPT / f"{paper.name}.csv").exists():
            lines += [f"## {paper.title}\n", *write_verdicts(paper), *write_figures(paper)]
    return "\n".join(lines)


def list_papers() -> list[Paper]:
    """Read the papers, the main paper first."""
    return sorted(read_papers(DOCS.parent / "workflow/papers"), key=lambda paper: paper.prefix)


def list_drawings(paper: Paper) -> list[str]:
    """Name the figures of a paper and the specification curves of its claims."""
    return [*paper.figures, *(f"specification_{claim}" for claim in paper.claims)]


def write_verdicts(paper: Paper) -> Iterator[str]:
    """Yield the table of verdicts on a paper's claims, and a link to the page with their reasons."""
    with (KEPT / f"{paper.name}.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    yield "| Claim | Verdict | Because |\n| :-- | :-- | :-- |"
    for row in rows:
        yield f"| {row['sentence']} | **{row['verdict']}** | {row['because']} |"
    yield f"\nEstimates and rules: [{paper.name}.md](showcase/{paper.name}.md).\n"


def write_figures(paper: Paper) -> Iterator[str]:
    """Yield the figures of a paper with their captions, then its tables."""
    for name in list_drawings(paper):
        caption = KEPT / f"{name}.caption.txt"
        if caption.exists():
            words = caption.read_text(encoding="utf-8")
            first_sentence, _, _ = words.partition(".** ")[2].partition(". ")
            yield f"![{first_sentence}](showcase/{name}.png)\n\n{words}"
    for name in paper.tables:
        table = KEPT / f"{name}.table.txt"
        if table.exists():
            yield f"{table.read_text(encoding='utf-8')}"


if __name__ == "__main__":
    main(*sys.argv[1:])
