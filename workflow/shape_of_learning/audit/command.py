"""The commands ``audit`` and ``where``."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from shape_of_learning.checkpoints.contact import endpoint
from shape_of_learning.console import (
    CONFIGURATION_WORDS,
    exit_on_input_error,
    make_results_console,
    name_options,
    parse_output,
    print_message,
    show_bar,
    stderr,
    stdout,
)
from shape_of_learning.errors import InputError, hide_secrets

if TYPE_CHECKING:
    from shape_of_learning.audit.listings import ListedSeries
    from shape_of_learning.checkpoints.atlas import AtlasRow

FAULT, NOT_KNOWN = 1, 2
WINDOWS, WINDOW_CHARACTERS = 32, 512  # of the text on which losses are compared
WITHOUT_LOSSES = "audit it without --losses"
# What messages of a run call by its key in the configuration.
OPTIONS = {
    **CONFIGURATION_WORDS,
    "lower `sampling.window_characters`": WITHOUT_LOSSES,
    "correct `layers`, `hidden_size` or `last_hidden_size` in config/models": WITHOUT_LOSSES,
}
EXIT_CODES = (
    "Exit codes: 0, every revision is what its name says; 1, a fault was found; 2, something could not be known, "
    "or a wrong command line."
)

output_option = partial(typer.Option, parser=parse_output, metavar="FILE")
Targets = Annotated[
    list[str],
    typer.Argument(
        metavar="TARGET...",
        help="Repositories on the Hub; files of models, such as config/models/pythia.yaml; or folders, such as "
        "run/checkpoint-{step}.",
    ),
]


def audit(
    targets: Targets,
    pattern: Annotated[
        str,
        typer.Option(help="How steps are named, such as 'step{step}'; guessed if it is not given."),
    ] = "",
    tensors: Annotated[
        bool, typer.Option("--tensors", help="Download all different weights, and compare tensors.")
    ] = False,
    losses: Annotated[
        bool, typer.Option("--losses", help="Run each, too, and compare losses on a short text.")
    ] = False,
    csv: Annotated[
        Path | None,
        output_option(help="A CSV file with the columns of the atlas; - for standard output."),
    ] = None,
    json: Annotated[Path | None, output_option(help="A list of objects; - likewise.")] = None,
    markdown: Annotated[
        Path | None, output_option(help="To be pasted into an issue of the suite; - likewise.")
    ] = None,
    atlas: Annotated[
        Path | None,
        typer.Option(help="Folder of an atlas: put what was found into it, by suite and model."),
    ] = None,
) -> None:
    """Say of each revision of a training whether it is what its name says, without downloading weights."""
    outputs = csv, json, markdown
    with exit_on_input_error(*outputs, code=NOT_KNOWN), ExitStack() as stack:
        for target in targets:
            if not is_on_this_machine(target):
                print_message(f"Asking {endpoint()} for `{target}`.")
        # The libraries behind them take a second or two, in which nothing could be said.
        from huggingface_hub.utils import disable_progress_bars

        from shape_of_learning.audit.audit import audit_curve
        from shape_of_learning.audit.listings import list_curves
        from shape_of_learning.audit.report import write_json, write_markdown
        from shape_of_learning.checkpoints.atlas import UNKNOWN, write_atlas

        rows: list[AtlasRow] = []
        notes: list[str] = []
        failures: list[str] = []
        if not stderr.is_terminal:
            disable_progress_bars()  # of downloads
        loss = stack.enter_context(_losses()) if losses else None
        for target in targets:
            try:
                for curve in list_curves(target, pattern, print_message):
                    if curve.failure:
                        failures.append(curve.failure)
                        print_message(f"ERROR: {hide_secrets(curve.failure)}")
                        continue
                    with show_bar(curve.name) as progress:
                        found = audit_curve(curve, progress, tensors=tensors, loss=loss)
                    rows += found
                    _show(curve, found, notes, make_results_console(*outputs))
                    _put_into(atlas, curve, found)
            except InputError as error:
                failures.append(str(error))
                print_message(f"ERROR: {hide_secrets(str(error))}")
        if csv:
            write_atlas(csv, rows)
        if json:
            write_json(json, rows)
        if markdown:
            options = [
                *(["--pattern", f"'{pattern}'"] if pattern else []),
                *(["--tensors"] * tensors),
            ]
            command = " ".join(["audit", *targets, *options, *(["--losses"] * losses)])
            write_markdown(markdown, ", ".join(targets), command, rows, [*notes, *failures])
        if any(row.is_fault for row in rows):
            raise typer.Exit(FAULT)
        if failures or any(row.verdict == UNKNOWN for row in rows):
            raise typer.Exit(NOT_KNOWN)


def is_on_this_machine(target: str) -> bool:
    """Return whether a target of an audit is folders, or a file that says where its models are."""
    is_repository = target.count("/") == 1 and not target.startswith((".", "/", "~"))
    return (
        not is_repository
        or "{step}" in target
        or target.endswith(("/", ".yaml", ".yml"))
        or Path(target).exists()
    )


def _show(
    curve: "ListedSeries", found: "list[AtlasRow]", notes: list[str], console: Console
) -> None:
    from shape_of_learning.audit.audit import list_notes
    from shape_of_learning.audit.report import count_table, revision_table

    console.print(f"{curve.name}: {count_table(found)}", soft_wrap=True, highlight=False)
    console.print(revision_table(found))
    for note in list_notes(curve):
        print_message(note)
        notes.append(note)


def _put_into(atlas: Path | None, curve: "ListedSeries", found: "list[AtlasRow]") -> None:
    from shape_of_learning.checkpoints.atlas import merge_rows, read_atlas, write_atlas

    if atlas and not curve.suite:
        print_message(
            f"{curve.name} is in no entry and no atlas, so that nothing is written of it; audit an entry"
        )
    elif atlas:
        path = atlas / curve.suite / f"{curve.model}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atlas(path, merge_rows(read_atlas(path) if path.exists() else [], found))


def where(
    model: Annotated[str, typer.Argument(help="A model of the atlas, such as pythia-2.8b.")],
    step: Annotated[int, typer.Argument(help="A training step.", min=0)],
) -> None:
    """Say in one line where a step of a published training is, and what is known of it."""
    with exit_on_input_error(code=NOT_KNOWN):
        from shape_of_learning.checkpoints.atlas import UNKNOWN, find

        row = find(model, step)
    commit = row.commit or "commit not known"
    said = f"{row.verdict} ({row.reason})" if row.reason else row.verdict
    stdout.print(
        f"{row.repository} {row.revision} {commit}: {said}", soft_wrap=True, highlight=False
    )
    if row.is_fault:
        raise typer.Exit(FAULT)
    if row.verdict == UNKNOWN:
        raise typer.Exit(NOT_KNOWN)


@contextmanager
def _losses() -> Iterator[Callable[[Path], Any]]:
    """The loss of a checkpoint on windows of the documentation that comes with Python."""
    from shape_of_learning.corpus.fetch import read_demo_text
    from shape_of_learning.embeddings.model import read_shape
    from shape_of_learning.embeddings.protocol import SamplingProtocol
    from shape_of_learning.embeddings.run import NullStore, SampleRun
    from shape_of_learning.embeddings.tokenised_windows import draw_windows

    sampling = SamplingProtocol(WINDOWS, WINDOW_CHARACTERS, 0)
    with TemporaryDirectory() as temporary:
        text = Path(temporary, "text.txt")
        text.write_text(read_demo_text(), encoding="utf-8")
        windows = draw_windows(text, sampling)

    def loss(folder: Path) -> Any:
        try:
            shape = read_shape(folder, str(folder))
            return SampleRun.load(folder, windows, sampling, shape).store_states(NullStore())
        except InputError as error:
            raise InputError(name_options(str(error), OPTIONS)) from error

    yield loss
