"""The commands ``audit`` and ``where``."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from huggingface_hub.utils import disable_progress_bars

from shape_of_learning.audit.audit import audited, notes_on
from shape_of_learning.audit.listings import Curve, curves_of
from shape_of_learning.audit.output import counted, printed, write_json, write_markdown
from shape_of_learning.checkpoints.atlas import (
    UNKNOWN,
    AtlasRow,
    find,
    read_atlas,
    updated,
    write_atlas,
)
from shape_of_learning.console import bar, explained, shown, told
from shape_of_learning.errors import InputError

FAULT, NOT_KNOWN = 1, 2
WINDOWS, WINDOW_CHARACTERS = 32, 512  # of the text on which losses are compared
EXIT_CODES = (
    "Exit codes: 0, every revision is what its name says; 1, a fault was found; 2, something could not be known, "
    "or a wrong command line."
)

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
        Path | None, typer.Option(help="A CSV file with the columns of the atlas.")
    ] = None,
    json: Annotated[Path | None, typer.Option(help="A list of objects.")] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="To be pasted into an issue of the suite.")
    ] = None,
    atlas: Annotated[
        Path | None,
        typer.Option(help="Folder of an atlas: put what was found into it, by suite and model."),
    ] = None,
) -> None:
    """Say of each revision of a training whether it is what its name says, without downloading weights."""
    rows: list[AtlasRow] = []
    notes: list[str] = []
    failures: list[str] = []
    with explained(csv, json, markdown, code=NOT_KNOWN), ExitStack() as stack:
        if not told.is_terminal:
            disable_progress_bars()  # of downloads
        loss = stack.enter_context(_losses()) if losses else None
        for target in targets:
            try:
                for curve in curves_of(target, pattern, _say):
                    if curve.failure:
                        failures.append(curve.failure)
                        _say(f"ERROR: {curve.failure}")
                        continue
                    with bar(curve.name) as progress:
                        found = audited(curve, progress, tensors=tensors, loss=loss)
                    rows += found
                    _show(curve, found, notes)
                    _put_into(atlas, curve, found)
            except InputError as error:
                failures.append(str(error))
                _say(f"ERROR: {error}")
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


def _show(curve: Curve, found: list[AtlasRow], notes: list[str]) -> None:
    shown.print(f"{curve.name}: {counted(found)}", soft_wrap=True, highlight=False)
    shown.print(printed(found))
    for note in notes_on(curve):
        _say(note)
        notes.append(note)


def _put_into(atlas: Path | None, curve: Curve, found: list[AtlasRow]) -> None:
    if atlas and not curve.suite:
        _say(
            f"{curve.name} is in no entry and no atlas, so that nothing is written of it; audit an entry"
        )
    elif atlas:
        path = atlas / curve.suite / f"{curve.model}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atlas(path, updated(read_atlas(path) if path.exists() else [], found))


def where(
    model: Annotated[str, typer.Argument(help="A model of the atlas, such as pythia-2.8b.")],
    step: Annotated[int, typer.Argument(help="A training step.", min=0)],
) -> None:
    """Say in one line where a step of a published training is, and what is known of it."""
    with explained(code=NOT_KNOWN):
        row = find(model, step)
    commit = row.commit or "commit not known"
    said = f"{row.verdict} ({row.reason})" if row.reason else row.verdict
    shown.print(
        f"{row.repository} {row.revision} {commit}: {said}", soft_wrap=True, highlight=False
    )
    if row.is_fault:
        raise typer.Exit(FAULT)
    if row.verdict == UNKNOWN:
        raise typer.Exit(NOT_KNOWN)


def _say(line: str) -> None:
    told.print(line, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def _losses() -> Iterator[Callable[[Path], Any]]:
    """The loss of a checkpoint on windows of the documentation that comes with Python."""
    from shape_of_learning.corpus.fetch import demo_text
    from shape_of_learning.embeddings.model import read_shape
    from shape_of_learning.embeddings.run import SampleRun
    from shape_of_learning.embeddings.tokenised_windows import SamplingProtocol, draw_windows

    sampling = SamplingProtocol(WINDOWS, WINDOW_CHARACTERS, 0)
    with TemporaryDirectory() as temporary:
        text = Path(temporary, "text.txt")
        text.write_text(demo_text(), encoding="utf-8")
        windows = draw_windows(text, sampling)

    def loss(folder: Path) -> Any:
        shape = asdict(read_shape(folder, str(folder)))
        return SampleRun.load(folder, windows, sampling, shape).into(_Nowhere())

    yield loss


class _Nowhere:
    """Where hidden states go of which only the loss is wanted."""

    device = "cpu"

    def write(self, state: int, rows: slice, values: Any) -> None:
        """Forget them."""
