"""Get a corpus file: download, unpack, verify."""

from pathlib import Path

from shape_of_learning.corpus.fetch import fetch
from shape_of_learning.job import job, parameters

if __name__ == "__main__":
    with job(snakemake.log[0]):
        fetch(
            snakemake.wildcards.source,
            snakemake.resources.urls.split("\n"),
            Path(snakemake.output[0]),
            **parameters(snakemake),
        )
