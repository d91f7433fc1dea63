"""Cleaning 100 MB of real wikitext: the first megabyte of enwik8 over and over.

Ours is the script, from XML to text of a limited alphabet, with two processes. mwparserfromhell alone, in
one process, parses and strips a single megabyte that is in memory already; its 100 MB are extrapolated.
"""

from dataclasses import replace
from pathlib import Path

from benchmarks.contest import CORES, Contender, Measured, contest
from benchmarks.results import Results
from benchmarks.targets import Target
from benchmarks.wikitext import raw_pages, write_tiled

TITLE = "Corpus cleaning"
BYTES, PART = 100_000_000, 900_000
TINY_BYTES, TINY_PART = 20_000, 200
OURS, PARSER = "ours, two processes", "mwparserfromhell, one process"
OWN = (OURS,)
ALL, FEW, A_PAGE = "100 MB", "1 MB", "a few pages"
PEAK = "all processes, GB"


def measure(folder: Path, tiny: bool, repeats: int | None) -> list[Measured]:
    """All of the export, and a part of it."""
    raw = raw_pages(tiny)
    if raw is None:
        reason = "not measured: the first 10^6 bytes of enwik8 are not at ../shared/data/enwik6.xz"
        return [Measured(ALL, OURS, note=reason)]
    whole, part = folder / "whole.xml", folder / "part.xml"
    write_tiled(raw, TINY_BYTES if tiny else BYTES, whole)
    write_tiled(raw, TINY_PART if tiny else PART, part)
    arguments = [
        *("--input", str(whole), "--format", "mediawiki", "--processes", str(CORES)),
        *("--text", str(folder / "text.txt"), "--alphabet", str(folder / "alphabet.json")),
    ]
    script = {"name": "clean_corpus", "arguments": arguments}
    all_of_it, some = (A_PAGE, A_PAGE) if tiny else (ALL, FEW)
    measured = contest(
        [
            Contender(OURS, "benchmarks.scripts:with_children", script, all_of_it, threads=1),
            Contender(
                PARSER,
                "benchmarks.wikitext:parsed_by_mwparserfromhell",
                {"export": part},
                some,
                threads=1,
            ),
        ],
        repeats,
    )
    files = {OURS: whole, PARSER: part}
    megabytes = {name: file.stat().st_size / 1e6 for name, file in files.items()}
    return [replace(row, values={**row.values, "MB": megabytes[row.contender]}) for row in measured]


def against_parser(results: Results) -> float:
    """How many times as long the parser takes for each byte."""
    ours, parser = results[ALL, OURS], results[FEW, PARSER]
    return (parser.seconds / parser.values["MB"]) / (ours.seconds / ours.values["MB"])


TARGETS = [
    Target("100 MB on two cores", 60, lambda r: r[ALL, OURS].seconds, " s"),
    Target("memory of all processes", 1, lambda r: r[ALL, OURS].values[PEAK], " GB"),
    Target(
        "per byte, against mwparserfromhell alone (extrapolated)",
        None,
        against_parser,
        " times as fast",
    ),
]
AGREEMENTS = []
