"""Get a corpus file: download, unpack, verify."""

from pathlib import Path

from shape_of_learning.corpus.fetch import fetch
from shape_of_learning.job import job


def main(
    source: str,
    urls: list[str],
    output: Path,
    member: str | None,
    sha256: str | None,
    git_blob: str | None,
) -> None:
    """Fetch to `output` what the first of the addresses has."""
    fetch(source, urls, output, member=member, sha256=sha256, git_blob=git_blob)


if __name__ == "__main__":
    with job(snakemake.log[0]):
        main(
            snakemake.wildcards.source,
            snakemake.resources.urls.split("\n"),
            Path(snakemake.output[0]),
            **{key: snakemake.params[key] for key in ("member", "sha256", "git_blob")},
        )
