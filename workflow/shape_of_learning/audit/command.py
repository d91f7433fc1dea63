"""The commands ``audit`` and ``where``."""

import re
import shlex
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shape_of_learning.checkpoints.contact import endpoint
from shape_of_learning.checkpoints.published_revisions import find
from shape_of_learning.console import (
    exit_on_input_error,
    make_results_console,
    parse_output,
    print_message,
    show_bar,
    stderr,
    stdout,
)
from shape_of_learning.errors import InputError, hide_secrets
from shape_of_learning.files import expand_home

if TYPE_CHECKING:
    from shape_of_learning.audit.listings import ListedSeries
    from shape_of_learning.checkpoints.atlas import AtlasRow

FAULT, NOT_KNOWN = 1, 2
EXIT_CODES = (
    "Exit codes: 0, every revision is what its name says; 1, a fault was found; 2, something could not be known, "
    "or a wrong command line."
)

output_option = partial(typer.Option, parser=parse_output, metavar="FILE")
Outputs = tuple[Path | None, Path | None, Path | None]  # CSV, JSON, Markdown
Targets = Annotated[
    list[str],
    typer.Argument(
        metavar="TARGET...",
        help="Repositories on the Hub; files of models, such as config/models/pythia.yaml; folders, such as "
        "run/checkpoint-{step}; or, with --results, files of results.",
    ),
]


def audit(  # noqa: PLR0913 (options)
    targets: Targets,
    pattern: Annotated[
        str,
        typer.Option(help="The names of steps, such as 'step{step}'; guessed if it is not given."),
    ] = "",
    results: Annotated[
        bool,
        typer.Option(
            "--results",
            help="Compare the results of steps that somebody published: files of lm-evaluation-harness, also in a "
            "folder per step, CSV or JSON lines.",
        ),
    ] = False,
    step: Annotated[
        str, typer.Option(metavar="COLUMN", help="The column of steps in a table of --results.")
    ] = "",
    repository: Annotated[
        str,
        typer.Option(
            "--of",
            metavar="REPOSITORY",
            help="The repository whose steps were evaluated, for --results.",
        ),
    ] = "",
    source: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS", help="The address of the results, with their commit, for --results."
        ),
    ] = None,
    tensors: Annotated[
        bool, typer.Option("--tensors", help="Download all different weights, and compare tensors.")
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
        typer.Option(help="Folder of an atlas: put the verdicts into it, by suite and model."),
    ] = None,
) -> None:
    """Check whether each revision of a training is what its name says, without downloading weights."""
    outputs = csv, json, markdown
    inputs = tuple(map(expand_home, targets))
    with exit_on_input_error(*outputs, inputs=inputs, code=NOT_KNOWN):
        if results:
            if tensors:
                raise InputError("--results compares numbers and --tensors weights; choose one")
            _audit_results(targets, step, pattern, repository, source or [], outputs, atlas)
            return
        if step or repository or source:
            raise InputError(
                "--step, --of and --source belong to --results; add it, or leave them out"
            )
        for target in targets:
            if not is_on_this_machine(target):
                print_message(f"Asking {endpoint()} for `{target}`.")
        # The libraries behind these modules take a second or two to import, so the line above comes first.
        from huggingface_hub.utils import disable_progress_bars

        from shape_of_learning.audit.audit import audit_series, list_notes
        from shape_of_learning.audit.listings import list_series

        rows: list[AtlasRow] = []
        notes: list[str] = []
        failures: list[str] = []
        if not stderr.is_terminal:
            disable_progress_bars()  # the library's bars of downloads
        for target in targets:
            try:
                for series in list_series(target, pattern, print_message):
                    if series.failure:
                        failures.append(series.failure)
                        print_message(f"ERROR: {hide_secrets(series.failure)}")
                        continue
                    with show_bar(series.name) as progress:
                        series_rows = audit_series(series, progress, tensors=tensors)
                    rows += series_rows
                    _print_verdicts(series.name, series_rows, outputs)
                    for note in list_notes(series):
                        print_message(note)
                        notes.append(note)
                    _update_atlas(atlas, series, series_rows)
            except InputError as error:
                failures.append(str(error))
                print_message(f"ERROR: {hide_secrets(str(error))}")
        options = [
            *(["--pattern", pattern] if pattern else []),
            *(["--tensors"] if tensors else []),
        ]
        command = shlex.join(["audit", *targets, *options])
        if rows or not failures:  # a failure replaces no earlier result
            _write_outputs(outputs, rows, ", ".join(targets), command, [*notes, *failures])
        _exit_by_verdicts(rows, has_failures=bool(failures))


def _exit_by_verdicts(rows: "Iterable[AtlasRow]", *, has_failures: bool = False) -> None:
    from shape_of_learning.checkpoints.verdict import Kind

    rows = list(rows)
    if any(row.is_fault for row in rows):
        raise typer.Exit(FAULT)
    if has_failures or any(row.parse_verdict().kind is Kind.UNKNOWN for row in rows):
        raise typer.Exit(NOT_KNOWN)


def _audit_results(
    targets: list[str],
    step: str,
    pattern: str,
    repository: str,
    sources: list[str],
    outputs: Outputs,
    atlas: Path | None,
) -> None:
    """Audit the published results of one training."""
    from shape_of_learning.audit.judge_results import make_rows
    from shape_of_learning.audit.results import STANDARD_ERROR, read_results
    from shape_of_learning.checkpoints.atlas import (
        find_model,
        find_suite,
        merge_published_rows,
        update_atlas,
    )
    from shape_of_learning.words import list_first

    if repository and re.fullmatch(r"[\w.-]+/[\w.-]+", repository) is None:
        raise InputError(f"--of `{repository}` is no repository; write ORGANISATION/NAME")
    for address in sources:
        if re.fullmatch(r"https://\S+", address) is None:
            raise InputError(f"--source `{address}` is no address; write it with https://")
    if atlas and not (repository and sources):
        raise InputError(
            "--atlas needs --of ORGANISATION/NAME, the repository of these steps, and --source ADDRESS, the address of "
            "the results with their commit; add them"
        )
    model = find_model(repository) if atlas else ""
    if atlas and not model:
        raise InputError(
            f"the atlas has no table of `{repository}`; leave --atlas out, or audit an entry"
        )
    results = read_results(targets, step, pattern)
    name = repository or results.name
    rows = make_rows(results, repository, sources)
    notes = [f"Compared, to the last digit: {results.describe()}."]
    if results.skipped_columns:
        names = [f"`{name}`" for name in results.skipped_columns if not STANDARD_ERROR.search(name)]
        errors = len(results.skipped_columns) - len(names)
        if errors:
            names.append(f"{errors:,} standard error{'s' * (errors != 1)}")
        notes.append(f"Not compared: {list_first(names)}.")
    _print_verdicts(name, rows, outputs)
    for note in notes:
        print_message(note)
    command = " ".join(["audit --results", *map(shlex.quote, targets)])
    for option, value in (("--step", step), ("--pattern", pattern), ("--of", repository)):
        if value:
            command += f" {option} {shlex.quote(value)}"
    _write_outputs(outputs, rows, name, command, notes)
    if atlas:
        update_atlas(atlas, find_suite(model), model, rows, merge_published_rows)
    _exit_by_verdicts(rows)


def is_on_this_machine(target: str) -> bool:
    """Return whether a target of an audit is a file or a folder of this machine, and no repository."""
    is_repository = target.count("/") == 1 and not target.startswith((".", "/", "~"))
    return (
        not is_repository
        or "{step}" in target
        or target.endswith(("/", ".yaml", ".yml"))
        or Path(target).exists()
    )


def _print_verdicts(name: str, rows: "list[AtlasRow]", outputs: Outputs) -> None:
    from shape_of_learning.audit.report import count_kinds, make_revision_table

    console = make_results_console(*outputs)
    console.print(f"{name}: {count_kinds(rows)}", soft_wrap=True, highlight=False)
    console.print(make_revision_table(rows))


def _write_outputs(
    outputs: Outputs, rows: "list[AtlasRow]", name: str, command: str, notes: list[str]
) -> None:
    """Write the files that the options ask for; Markdown states the name and the command as well."""
    from shape_of_learning.audit.report import write_json, write_markdown
    from shape_of_learning.checkpoints.atlas import write_atlas

    csv, json, markdown = outputs
    if csv:
        write_atlas(csv, rows)
    if json:
        write_json(json, rows)
    if markdown:
        write_markdown(markdown, name, command, rows, notes)


def _update_atlas(atlas: Path | None, series: "ListedSeries", rows: "list[AtlasRow]") -> None:
    from shape_of_learning.checkpoints.atlas import merge_rows, update_atlas

    if atlas and not series.suite:
        print_message(
            f"{series.name} belongs to no entry and no table of the atlas, so --atlas skips it; audit an entry"
        )
    elif atlas:
        update_atlas(atlas, series.suite, series.model, rows, merge_rows)


def where(
    model: Annotated[str, typer.Argument(help="A model of the atlas, such as pythia-2.8b.")],
    step: Annotated[int, typer.Argument(help="A training step.", min=0)],
) -> None:
    """Print the place of a step of a published training and the verdict on it, in one line."""
    with exit_on_input_error(code=NOT_KNOWN):
        revision = find(model, step)
    stdout.print(str(revision), soft_wrap=True, highlight=False)
    raise typer.Exit(revision.exit_code)
