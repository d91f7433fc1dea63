"""Turn a corpus file into plain text.

A MediaWiki export is cleaned to the running text of its articles; text is taken as it is. Where the source says how
many characters it has, the most frequent ones are kept. What is changed is counted and said.
"""

from pathlib import Path

from shape_of_learning.corpus.clean import clean
from shape_of_learning.job import read_parameters, run_job

if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        clean(
            Path(snakemake.input.raw),
            Path(snakemake.output.text),
            Path(snakemake.output.alphabet),
            processes=snakemake.threads,
            origin=snakemake.resources.origin,
            **read_parameters(snakemake),
        )
