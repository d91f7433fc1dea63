"""Get a corpus file: download, unpack, verify."""

import logging
from pathlib import Path

from shape_of_learning.corpus.fetch import fetch
from shape_of_learning.files import link
from shape_of_learning.job import read_parameters, run_job

if __name__ == "__main__":
    output = Path(snakemake.output[0])
    place = Path(snakemake.resources.shared or output)
    with run_job(snakemake.log[0], console=logging.INFO):
        fetch(
            snakemake.wildcards.source,
            snakemake.resources.urls.split("\n"),
            place,
            **read_parameters(snakemake),
        )
        if place != output:
            link(place, output)
