"""Write the language reference that CPython ships as plain text, for runs without a network."""

from pathlib import Path

from shape_of_learning.corpus.fetch import demo_text
from shape_of_learning.files import atomic_write
from shape_of_learning.job import job

if __name__ == "__main__":
    with job(snakemake.log[0]), atomic_write(Path(snakemake.output[0])) as partial:
        partial.write_bytes(demo_text().encode())
