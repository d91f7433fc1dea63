"""Download a corpus file, unpack it and verify it."""

import logging
from pathlib import Path

from shape_of_learning.corpus.fetch import fetch
from shape_of_learning.files import link
from shape_of_learning.job import run_job

if __name__ == "__main__":
    output = Path(snakemake.output[0])
    place = Path(snakemake.resources.shared or output)
    with run_job(snakemake.log[0], console=logging.INFO):
        fetch(snakemake.params.job, snakemake.resources.urls.split("\n"), place)
        if place != output:
            link(place, output)
