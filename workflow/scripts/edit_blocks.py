"""Change blocks of one decoder and write its perplexity on the held-out end of the text.

Blocks are dropped, replaced by affine maps that are fitted on the training text, and distilled besides.
"""

import argparse
from pathlib import Path
from typing import Any

from shape_of_learning.block_editing.editing_settings import BlockEditing
from shape_of_learning.block_editing.edits import EDIT_COLUMNS, edit_rows
from shape_of_learning.block_editing.error_table import FIT_ERROR_COLUMNS, fit_error_rows
from shape_of_learning.block_editing.loaded_editor import load_editor
from shape_of_learning.checkpoints.tensor_hashing import checked_tensors
from shape_of_learning.script_arguments.protocol import SamplingProtocol
from shape_of_learning.script_arguments.running import run
from shape_of_learning.script_arguments.sample import add_checkpoint_arguments
from shape_of_learning.storage.csv_table import write_table


def main(
    model: str,
    revision: str,
    text: Path,
    protocol: SamplingProtocol,
    editing: BlockEditing,
    output: list[Path],
    **loaded: Any,
) -> None:
    """Write the edits and the errors of the fitted maps, one table each."""
    checked_tensors(loaded["checkpoint"], loaded.pop("receipt", None), loaded["threads"])
    editor = load_editor(text, protocol, editing, **loaded)
    edits = list(editor.edits())
    write_table(output[0], EDIT_COLUMNS, edit_rows(model, revision, edits))
    write_table(output[1], FIT_ERROR_COLUMNS, fit_error_rows(model, revision, editor.fitted))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_checkpoint_arguments(parser)
    parser.add_argument("--editing", type=BlockEditing.from_json, required=True, metavar="JSON")
    parser.add_argument(
        "--output", type=Path, nargs=2, required=True, metavar=("EDITS", "FIT_ERRORS")
    )
    run(main, parser)
