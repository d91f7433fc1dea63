"""Get a corpus file: download, unpack, verify."""

from pathlib import Path
from typing import Any

from shape_of_learning.corpus.fetch import fetch
from shape_of_learning.job import job


def main(source: str, urls: list[str], output: Path, **facts: Any) -> None:
    """Fetch to `output` what the first of the addresses has; see :func:`~shape_of_learning.corpus.fetch.fetch`."""
    fetch(source, urls, output, **facts)


if __name__ == "__main__":
    with job(snakemake.log[0]):
        main(
            snakemake.wildcards.source,
            snakemake.resources.urls.split("\n"),
            Path(snakemake.output[0]),
            **{key: snakemake.params[key] for key in ("member", "sha256", "git_blob")},
        )
