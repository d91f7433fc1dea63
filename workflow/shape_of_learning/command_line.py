"""The command ``shape-of-learning``: a model of yours in one minute, two models beside each other, this machine."""

import os
import platform
import select
from functools import partial
from importlib import metadata, util
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from shape_of_learning import __version__
from shape_of_learning.audit import command
from shape_of_learning.checkpoints.contact import endpoint
from shape_of_learning.console import (
    CONFIGURATION_WORDS,
    STANDARD_INPUT,
    exit_on_input_error,
    make_results_console,
    parse_input,
    parse_output,
    show_bar,
    shown,
    tell,
    told,
)
from shape_of_learning.errors import InputError
from shape_of_learning.files import find_descriptor, is_stream, write_table
from shape_of_learning.findings import find_sentences
from shape_of_learning.machine import count_cores, read_total_memory
from shape_of_learning.metrics.registry import DEFAULT_MEASURES
from shape_of_learning.metrics.tidy import ESTIMATE_COLUMNS
from shape_of_learning.one_model.defaults import (
    BATCH_VECTORS,
    BUILT_IN_TEXT,
    WINDOW_CHARACTERS,
    WINDOWS,
)
from shape_of_learning.results import (
    choose_picture_format,
    draw_plot,
    estimate_rows,
    make_explorer,
    read_estimates,
    write_objects,
    write_text,
)
from shape_of_learning.terminal_table import print_changes, print_estimates

if TYPE_CHECKING:
    from shape_of_learning.one_model.measured import MeasurementResult

EXIT_CODES = "Exit codes: 0, done; 1, what you gave cannot be used (see the last line); 2, a wrong command line."
ALL = "all"
COMPACT = "anisotropy,anisotropy_without_massive_tokens,two_nn,mada,mle"
EXAMPLES = (
    "average_cosine",
    "mom",
    "gride_4",
    "effective_rank",
    "linearity",
    "intra_window_cosine",
)
app = typer.Typer(
    help="The shape of what transformers learn: anisotropy and intrinsic dimension by layer.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # whose help has boxes, also where there is no terminal
    context_settings={"help_option_names": ["-h", "--help"]},
)
# What messages call by its key in the configuration.
OPTIONS = {
    "sampling.windows": "--windows",
    "sampling.window_characters": "--window-characters",
    "measurement.batch_vectors": "--batch-vectors",
    "corpus.sources": "--text",
    **CONFIGURATION_WORDS,
    "correct `layers`, `hidden_size` or `last_hidden_size` in config/models": "measure it in Python, by "
    "`shape_of_learning.measure`, which takes hidden states as they come",
    "the key `revision` of the entry or its `repository`": "the model's name or its revision",
    "remove the model from `models`, or say `gated: true` in its entry, so that it is left out": "and "
    "try again",
}
app.command(
    epilog=f"Example: shape-of-learning audit EleutherAI/pythia-2.8b --markdown issue.md. {command.EXIT_CODES}"
)(command.audit)
app.command(epilog="Example: shape-of-learning where pythia-2.8b 66000")(command.where)
# What an installation is for: a package that shows whether it is there, and the extra that brings it.
NEEDED = {
    "models, trainings, plots": ("transformers", "models"),
    "GGUF files": ("gguf", "models"),
    "the workflow": ("snakemake", "workflow"),
    "tasks from the Hub": ("datasets", "tasks"),
}
WRITER_SECONDS = 5  # in which somebody must have opened a pipe to write
LARGEST_STREAM = 1 << 30  # bytes of text from a pipe

Text = Annotated[
    Path | None,
    typer.Option(
        help="Plain text in UTF-8 to draw windows from, - for standard input; by default Python's own "
        "documentation.",
        parser=parse_input,
        metavar="FILE",
    ),
]
Measures = Annotated[
    str,
    typer.Option(
        help=f"Names with commas between, or {ALL} for those of the first paper. Others are such as "
        f"{', '.join(EXAMPLES)}; docs/reference/measures.md has all."
    ),
]
Windows = Annotated[int, typer.Option(help="Number of windows of text.", min=1)]
Characters = Annotated[int, typer.Option(help="Per window; fewer for a short context.", min=1)]
Vectors = Annotated[int, typer.Option(help="Per batch; dimensions depend on it.", min=129)]
Threads = Annotated[int | None, typer.Option(help="By default one per core.", min=1)]
Device = Annotated[
    str, typer.Option(help="Such as cpu or cuda:1; by default the first GPU, if any.")
]
BatchSize = Annotated[
    int | None,
    typer.Option(
        help="Windows that go through the model together; by default what is fast.", min=1
    ),
]
output_option = partial(typer.Option, parser=parse_output, metavar="FILE")
Csv = Annotated[
    Path | None,
    output_option(help="A CSV file with all digits, intervals and n; - for standard output."),
]


def _print_version(is_asked: bool) -> None:
    if is_asked:
        shown.print(f"shape-of-learning {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def main(
    _: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    """The shape of what transformers learn: anisotropy and intrinsic dimension by layer."""


class Sample(NamedTuple):
    """What is measured of a model, on which text, and where it runs."""

    text: Path | None
    measures: str
    windows: int
    window_characters: int
    batch_vectors: int
    threads: int | None
    device: str
    batch_size: int | None


@app.command(epilog="Example: shape-of-learning measure gpt2 --text my.txt --plot gpt2.png")
def measure(  # noqa: PLR0913 (options)
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...",
            help="Hub id, also as MODEL@REVISION, folder, GGUF file, or package:NAME/PATH.",
        ),
    ],
    revision: Annotated[str, typer.Option(help="Branch, tag or commit on the Hub.")] = "main",
    name: Annotated[str, typer.Option(help="The model's name in tables.")] = "",
    text: Text = None,
    measures: Measures = COMPACT,
    windows: Windows = WINDOWS,
    window_characters: Characters = WINDOW_CHARACTERS,
    batch_vectors: Vectors = BATCH_VECTORS,
    threads: Threads = None,
    device: Device = "",
    batch_size: BatchSize = None,
    csv: Csv = None,
    json: Annotated[
        Path | None, output_option(help="The same as a JSON list of objects; - likewise.")
    ] = None,
    plot: Annotated[
        Path | None, output_option(help="PNG, PDF or SVG: a panel per measure; - is a PNG.")
    ] = None,
    explorer: Annotated[
        Path | None, output_option(help="An interactive HTML page; - likewise.")
    ] = None,
) -> None:
    """Measure every layer of a model, or of several."""
    outputs = csv, json, plot, explorer
    with _explained(*outputs, inputs=(text,)), TemporaryDirectory() as temporary:
        picture = choose_picture_format(plot) if plot else ""
        for option, value, default in (("--revision", revision, "main"), ("--name", name, "")):
            if value != default and len(models) > 1:
                raise InputError(
                    f"{option} is for one model; write MODEL@REVISION, or measure one at a time"
                )
        text_name = BUILT_IN_TEXT
        if text is not None:
            text_name = _format_input(text) if is_stream(text) else text.name
        if text is not None and is_stream(text):  # which can be read once
            text = _read_stream(text, Path(temporary))
        sample = Sample(
            *(
                text,
                measures,
                windows,
                window_characters,
                batch_vectors,
                threads,
                device,
                batch_size,
            )
        )
        found = _measure_all(models, sample, revision, name)
        rows = [row for measured in found for row in measured.estimates]
        try:
            if csv:
                write_table(csv, ESTIMATE_COLUMNS, rows)
            if json:
                write_objects(json, rows)
            if plot:
                draw_plot(rows, plot, picture, text_name)
            if explorer:
                write_text(explorer, make_explorer(rows, text_name))
        finally:  # also where a file could not be written
            console = make_results_console(*outputs)
            for measured in found:
                own = estimate_rows(measured.estimates)
                if len(found) > 1:
                    console.print(measured.label, highlight=False)
                print_estimates(own, console)
                for sentence in find_sentences(measured.label, own):
                    console.print(sentence, soft_wrap=True, highlight=False)


@app.command(
    epilog="Example: shape-of-learning compare EleutherAI/pythia-70m@step0 EleutherAI/pythia-70m"
)
def compare(  # noqa: PLR0913 (options)
    first: Annotated[
        str,
        typer.Argument(metavar="A", help="As for `measure`; MODEL@REVISION for one on the Hub."),
    ],
    second: Annotated[str, typer.Argument(metavar="B", help="The model to compare with it.")],
    text: Text = None,
    measures: Measures = COMPACT,
    windows: Windows = WINDOWS,
    window_characters: Characters = WINDOW_CHARACTERS,
    batch_vectors: Vectors = BATCH_VECTORS,
    threads: Threads = None,
    device: Device = "",
    batch_size: BatchSize = None,
    csv: Csv = None,
) -> None:
    """Print B - A, how much higher the second model is on the same windows, with paired intervals."""
    with _explained(csv, inputs=(text,)), TemporaryDirectory() as temporary:
        if text is not None and is_stream(text):  # which can be read once
            text = _read_stream(text, Path(temporary))
        sample = Sample(
            *(
                text,
                measures,
                windows,
                window_characters,
                batch_vectors,
                threads,
                device,
                batch_size,
            )
        )
        one, other = _measure_all([first, second], sample, shares_batches=True)
        rows = one.compare(other)
        console = make_results_console(csv)
        console.print(f"B - A: {second} - {first}", highlight=False, soft_wrap=True)
        try:
            if csv:
                write_table(csv, [*rows[0]], [[*row.values()] for row in rows])
        finally:
            print_changes(rows, console)


@app.command(epilog="Example: shape-of-learning explore shape.csv shape.html")
def explore(
    table: Annotated[
        Path,
        typer.Argument(
            help="CSV of `measure`, or of a ShapeCallback; - for standard input.",
            parser=parse_input,
        ),
    ],
    page: Annotated[
        Path, typer.Argument(help="HTML file to write; - for standard output.", parser=parse_output)
    ],
) -> None:
    """Make an interactive page of a table."""
    with _explained(page, inputs=(table,)), TemporaryDirectory() as temporary:
        name = _format_input(table)
        if is_stream(table):
            table = _read_stream(table, Path(temporary))
        if not table.is_file():
            raise InputError(f"{name} is missing; correct the path")
        write_text(page, make_explorer(read_estimates(table, name)))


@app.command(epilog="Example: shape-of-learning doctor")
def doctor() -> None:
    """Say what this machine has: versions, BLAS, memory, GPU, and whether the Hub answers."""
    with _explained():
        tell(f"Asking {endpoint()} whether it answers.")
        from huggingface_hub import HfApi, constants

        from shape_of_learning.checkpoints import hub

        packages = (
            "shape-of-learning",
            "torch",
            "transformers",
            "huggingface-hub",
            "numpy",
            "scipy",
        )
        _print_fact("python", f"{platform.python_version()} on {platform.platform()}")
        for name in packages:
            try:
                _print_fact(name, metadata.version(name))
            except metadata.PackageNotFoundError:
                _print_fact(name, "not installed as a package")
        try:
            question = partial(HfApi().model_info, "gpt2")
            hub.ask_hub(question, "gpt2", "main", where="doctor", pauses=())
            answer = "answers"
        except hub.UnreachableError:
            offline = ": HF_HUB_OFFLINE is set" if constants.is_offline_mode() else ""
            answer = f"does not answer{offline}; check the network and HF_ENDPOINT"
        except InputError:
            answer = "answers, but does not show `gpt2`; check HF_ENDPOINT and HF_TOKEN"
        _print_fact("Hub", f"{endpoint()} {answer}")
        memory = read_total_memory()
        _print_fact("cores", f"{count_cores()}")
        _print_fact("memory", f"{memory / 1e9:.1f} GB" if memory else "not known")
        import torch
        from threadpoolctl import threadpool_info

        libraries = {f"{of['internal_api']} {of['version']}" for of in threadpool_info()}
        _print_fact("BLAS", ", ".join(sorted(libraries)))
        has_gpu = torch.cuda.is_available()
        _print_fact("GPU", torch.cuda.get_device_name() if has_gpu else "none")
        for purpose, (package, extra) in NEEDED.items():
            there = util.find_spec(package) is not None
            remedy = "" if there else f"; in a clone: `pip install '.[{extra}]'`"
            _print_fact(purpose, f"{'installed' if there else 'not installed'}{remedy}")


def _print_fact(key: str, value: str) -> None:
    shown.print(f"{key}: {value}", highlight=False, soft_wrap=True)


_explained = partial(exit_on_input_error, options=OPTIONS)


def _measure_all(
    given: list[str],
    sample: Sample,
    revision: str = "main",
    name: str = "",
    *,
    shares_batches: bool = False,
) -> "list[MeasurementResult]":
    """Fetch models and measure them, with a bar on the terminal; names that are wrong are refused first."""
    from shape_of_learning.checkpoints.local import find_checkpoint, is_local, local_name

    split = [_split_revision(model) for model in given]
    if revision != "main":
        [(model, named)] = split
        if named != "main":
            raise InputError(f"{given[0]} has a revision in its name; leave out --revision")
        split = [(model, revision)]
    for model, at in split:
        if not is_local(model):
            continue
        if at != "main":
            raise InputError(
                f"{model} is on this machine, and has no revision `{at}`; leave out `@{at}` or --revision, or name the "
                "folder of the checkpoint that you mean"
            )
        find_checkpoint(model, at)  # before any other is measured
    names = [local_name(model) if is_local(model) else Path(model).name for model, _ in split]
    found: list[MeasurementResult] = []
    for text, (model, at), last in zip(given, split, names, strict=True):
        own = name or (text if names.count(last) > 1 else "")
        shuffled_as = found[0].model.name if found and shares_batches else ""
        found.append(_measure(model, at, sample, own, shuffled_as))
    return found


def _measure(
    model: str, revision: str, sample: Sample, name: str, shuffled_as: str
) -> "MeasurementResult":
    if sample.measures.strip() == ALL:
        chosen = [*DEFAULT_MEASURES]
    else:
        chosen = [measure.strip() for measure in sample.measures.split(",") if measure.strip()]
    if not chosen:
        raise InputError(
            "--measures names no measure; leave it out, or name some of docs/reference/measures.md"
        )
    text = sample.text
    if text is not None and not text.is_file():
        wrong = "is a folder" if text.is_dir() else "is missing"
        raise InputError(f"{text} {wrong}; correct --text")
    from shape_of_learning.checkpoints.local import is_local

    if not is_local(model):
        tell(f"Asking {endpoint()} for `{model}` at `{revision}`.")
    from huggingface_hub.utils import disable_progress_bars

    from shape_of_learning.checkpoints.local import find_checkpoint
    from shape_of_learning.corpus.fetch import read_demo_text
    from shape_of_learning.one_model.checkpoint import measure_checkpoint

    if not told.is_terminal:
        disable_progress_bars()
    own, folder = find_checkpoint(model, revision)
    name = name or own
    with TemporaryDirectory() as temporary, show_bar(name) as progress:
        if text is None:
            tell("Text: the documentation that comes with Python; --text FILE takes another.")
            text = Path(temporary, "python_topics.txt")
            text.write_text(read_demo_text(), encoding="utf-8")
        return measure_checkpoint(
            *(folder, text),
            name=name,
            revision=revision,
            measures=chosen,
            windows=sample.windows,
            window_characters=sample.window_characters,
            batch_vectors=sample.batch_vectors,
            shuffled_as=shuffled_as,
            threads=sample.threads,
            device=sample.device or None,
            batch_size=sample.batch_size,
            progress=progress,
        )


def _split_revision(given: str) -> tuple[str, str]:
    """Split MODEL@REVISION; a folder may have the sign in its name."""
    from shape_of_learning.checkpoints.local import is_local

    model, _, revision = given.partition("@")
    if not revision or Path(given).exists() or (is_local(model) and not Path(model).exists()):
        return given, "main"
    return model, revision


def _format_input(path: Path) -> str:
    return "the standard input" if path == STANDARD_INPUT else str(path)


def _open_pipe(pipe: Path) -> tuple[int, bytes]:
    """Open a pipe to read, and return what has been read of it; refuse one that nobody writes to."""
    opened, first = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), b""
    if not select.select([opened], [], [], WRITER_SECONDS)[0]:
        try:
            first = os.read(opened, 1)
        except BlockingIOError:  # somebody has opened it, and will write
            pass
        else:
            if not first:
                os.close(opened)
                raise InputError(f"{pipe} is a pipe that nobody writes to; name a file")
    os.set_blocking(opened, True)
    return opened, first


def _read_stream(stream: Path, folder: Path) -> Path:
    """Copy what comes from the standard input, a pipe or a device to a file."""
    descriptor, name = find_descriptor(stream), _format_input(stream)
    if descriptor is None and not (stream.is_fifo() or stream == Path("/dev/null")):
        raise InputError(f"{name} is a device, and no file or pipe; name one")
    file = folder / ("standard input" if stream == STANDARD_INPUT else stream.name)
    first = b""
    if descriptor is not None:
        opened = os.dup(descriptor)
    elif stream.is_fifo():
        opened, first = _open_pipe(stream)
    else:
        opened = os.open(stream, os.O_RDONLY)
    with os.fdopen(opened, "rb") as source, file.open("wb") as copy:
        copy.write(first)
        while chunk := source.read(1 << 20):
            copy.write(chunk)
            if copy.tell() > LARGEST_STREAM:
                raise InputError(f"{name} gives more than 1 GB; write it to a file, and name that")
    return file
