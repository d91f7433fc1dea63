"""Change blocks of one decoder and write its perplexity on the held-out end of the text.

Blocks are dropped, replaced by affine maps that are fitted on the training text, and distilled besides.
"""

from pathlib import Path
from typing import Any

import scipy.linalg  # noqa: F401  (only libraries that are loaded are limited to one thread)
from threadpoolctl import threadpool_limits

from papers.linear.edits import EDIT_COLUMNS, Editor
from papers.linear.maps import FIT_ERROR_COLUMNS, fit_error_rows
from shape_of_learning.checkpoints.record import refuse_changed
from shape_of_learning.embeddings.tokenised_windows import SamplingProtocol
from shape_of_learning.files import write_table
from shape_of_learning.job import read_parameters, run_job


def main(
    model: str,
    revision: str,
    checkpoint: Path,
    is_download: bool,
    text: Path,
    sampling: dict[str, Any],
    editing: dict[str, Any],
    output: tuple[Path, Path],
    **loading: Any,
) -> None:
    """Write the edits and the errors of the fitted maps, one table each."""
    if is_download:
        refuse_changed(checkpoint, loading["threads"])
    protocol = SamplingProtocol(windows=0, **sampling)
    editor = Editor(text, protocol, editing, checkpoint, **loading)
    write_table(output[0], EDIT_COLUMNS, [(model, revision, *edit) for edit in editor.edits()])
    write_table(output[1], FIT_ERROR_COLUMNS, fit_error_rows(model, revision, editor.fitted))


if __name__ == "__main__":
    with run_job(snakemake.log[0]), threadpool_limits(1):
        main(
            snakemake.wildcards.model,
            checkpoint=Path(snakemake.resources.checkpoint),
            text=Path(snakemake.input.text),
            output=(Path(snakemake.output.edits), Path(snakemake.output.errors)),
            threads=snakemake.threads,
            **read_parameters(snakemake),
        )
