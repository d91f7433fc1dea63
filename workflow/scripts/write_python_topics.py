"""Write the language reference that CPython ships as plain text, for runs without a network."""

from pathlib import Path

from shape_of_learning.corpus.fetch import read_demo_text
from shape_of_learning.files import atomic_write
from shape_of_learning.job import run_job

if __name__ == "__main__":
    with run_job(snakemake.log[0]), atomic_write(Path(snakemake.output[0])) as partial:
        partial.write_bytes(read_demo_text().encode())
