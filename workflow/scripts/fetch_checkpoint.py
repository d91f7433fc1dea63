"""Download one revision of a model from the Hugging Face Hub, and check it against its lock."""

from pathlib import Path

from shape_of_learning.checkpoints.download import fetch
from shape_of_learning.files import link
from shape_of_learning.job import run_job

if __name__ == "__main__":
    output = Path(snakemake.output[0])
    place = Path(snakemake.resources.shared or output)
    with run_job(snakemake.log[0]):
        fetch(snakemake.params.job, place)
        if place != output:
            link(place, output)
