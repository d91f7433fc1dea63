"""Turn a corpus file into plain text.

Of a MediaWiki export, the running text of the articles is kept; plain text is kept as it is. If `alphabet_size` is set,
only the most frequent characters are kept. Changes are counted and logged.
"""

from pathlib import Path

from shape_of_learning.corpus.clean import clean
from shape_of_learning.corpus.job import CleaningJob
from shape_of_learning.job import run_job

if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        job: CleaningJob = snakemake.params.job
        clean(
            Path(snakemake.input.raw),
            Path(snakemake.output.text),
            Path(snakemake.output.alphabet),
            format=job.format,
            alphabet_size=job.alphabet_size,
            first_bytes=job.first_bytes,
            processes=snakemake.threads,
            origin=snakemake.resources.origin,
        )
