"""Change blocks of one decoder and write its perplexity on the held-out end of the text.

Blocks are dropped, or replaced by affine maps, which are fitted on the training text or distilled.
"""

from pathlib import Path

import scipy.linalg  # noqa: F401  (the limit of one thread applies only to libraries that are loaded)
from threadpoolctl import threadpool_limits

from papers.linear.edits import EDIT_COLUMNS, Editor
from papers.linear.job import EditJob
from papers.linear.maps import FIT_ERROR_COLUMNS, make_fit_error_rows
from shape_of_learning.checkpoints.record import refuse_changed
from shape_of_learning.embeddings.protocol import ForwardFiles, find_forward_files
from shape_of_learning.files import write_table
from shape_of_learning.job import run_job


def main(job: EditJob, files: ForwardFiles, edits: Path, errors: Path, threads: int) -> None:
    """Write a table of the edits, and a table of the errors of the fitted maps."""
    weights = job.weights
    if weights.is_download:
        refuse_changed(files.checkpoint, threads)
    editor = Editor(
        files.text,
        job.sampling,
        job.editing,
        files.checkpoint,
        weights.shape,
        threads=threads,
        tokenizer=files.tokenizer,
    )
    names = (weights.model, weights.revision)
    write_table(edits, EDIT_COLUMNS, [(*names, *edit) for edit in editor.measure_edits()])
    write_table(errors, FIT_ERROR_COLUMNS, make_fit_error_rows(*names, editor.fitted_blocks))


if __name__ == "__main__":
    with run_job(snakemake.log[0]), threadpool_limits(1):
        main(
            snakemake.params.job,
            find_forward_files(snakemake),
            edits=Path(snakemake.output.edits),
            errors=Path(snakemake.output.errors),
            threads=snakemake.threads,
        )
