"""Turn a corpus file into plain text of a limited alphabet.

A MediaWiki export is cleaned to the running text of its articles; text is taken as it is. Then only
the most frequent characters are kept.
"""

from pathlib import Path

from shape_of_learning.corpus.clean import clean
from shape_of_learning.job import job, parameters

if __name__ == "__main__":
    with job(snakemake.log[0]):
        clean(
            Path(snakemake.input.raw),
            Path(snakemake.output.text),
            Path(snakemake.output.alphabet),
            processes=snakemake.threads,
            **parameters(snakemake),
        )
