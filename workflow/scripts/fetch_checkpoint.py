"""Download one revision of a model from the Hugging Face Hub, as its lock pins it, and check it."""

from pathlib import Path

from shape_of_learning.checkpoints.fetch import fetch
from shape_of_learning.job import job

if __name__ == "__main__":
    with job(snakemake.log[0]):
        fetch(
            Path(snakemake.output[0]),
            snakemake.wildcards.model,
            snakemake.wildcards.revision,
            **snakemake.params.revision,
            shape=snakemake.params.shape,
        )
