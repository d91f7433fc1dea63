"""Download one revision of a model from the Hugging Face Hub, as its lock pins it, and check it."""

from pathlib import Path
from typing import Any

from shape_of_learning.checkpoints.fetch import fetch
from shape_of_learning.checkpoints.lock import LockedRevision
from shape_of_learning.checkpoints.shapes import Shape
from shape_of_learning.errors import InputError
from shape_of_learning.job import job


def main(
    model: str,
    revision: str,
    pinned: dict[str, Any] | None,
    tokenizer: dict[str, Any] | None,
    shape: dict[str, Any],
    output: Path,
) -> None:
    """Fetch configuration, weights and tokenizer into the folder `output`.

    What is `pinned`, and the `tokenizer` if it is elsewhere, are entries of the model's lock.
    """
    if not pinned:
        raise InputError(
            f"model `{model}`: `{revision}` cannot be fetched, since its lock does not pin it; run "
            "`snakemake resolve` where the Hub can be reached, or restore the lock"
        )
    words = LockedRevision(**tokenizer) if tokenizer else None
    fetch(LockedRevision(**pinned), words, output, Shape(**shape), model=model)


if __name__ == "__main__":
    with job(snakemake.log[0]):
        main(
            model=snakemake.wildcards.model,
            revision=snakemake.wildcards.revision,
            **snakemake.params.revision,
            shape=snakemake.params.shape,
            output=Path(snakemake.output[0]),
        )
