"""Write the language reference that CPython ships as plain text, for runs without a network."""

from pathlib import Path

from shape_of_learning.corpus.demo_text import demo_text
from shape_of_learning.files import atomic_write
from shape_of_learning.job import job


def main(output: Path) -> None:
    """Write the text to `output`, in UTF-8."""
    with atomic_write(output) as partial:
        partial.write_bytes(demo_text().encode())


if __name__ == "__main__":
    with job(snakemake.log[0]):
        main(Path(snakemake.output[0]))
