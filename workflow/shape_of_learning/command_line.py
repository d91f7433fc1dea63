"""The command ``shape-of-learning``: measure or compare models, explore a table, check this machine."""

import os
import platform
import select
from functools import partial
from importlib import metadata, util
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

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
    print_message,
    show_bar,
    stderr,
    stdout,
)
from shape_of_learning.errors import InputError
from shape_of_learning.files import expand_home, find_descriptor, is_stream, write_table
from shape_of_learning.findings import find_sentences
from shape_of_learning.machine import count_cores, read_total_memory
from shape_of_learning.metrics.registry import DEFAULT_MEASURES
from shape_of_learning.one_model.options import (
    BATCH_VECTORS,
    BUILT_IN_TEXT,
    UNKNOWN_TEXT,
    WINDOW_CHARACTERS,
    WINDOWS,
    MeasurementOptions,
)
from shape_of_learning.results import (
    choose_picture_format,
    draw_plot,
    make_explorer,
    name_cells,
    print_changes,
    print_estimates,
    read_estimates,
    write_estimates,
    write_objects,
    write_text,
)

if TYPE_CHECKING:
    from shape_of_learning.one_model.measurement import MeasurementResult
    from shape_of_learning.one_model.measurement_record import RecordedEstimates
    from shape_of_learning.one_model.sources import ModelSource

EXIT_CODES = (
    "Exit codes: 0, done; 1, an input cannot be used (see the last line); 2, a wrong command line."
)
DIFFERENT, NOT_VERIFIED = 1, 2  # exit codes of `verify`
ALL = "all"
COMPACT = "anisotropy,anisotropy_without_massive_tokens,two_nn,mada_median,mle"
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
    rich_markup_mode=None,  # rich would draw boxes in the help, even without a terminal
    context_settings={"help_option_names": ["-h", "--help"]},
)
# Keys of the configuration in errors, and the options that replace them.
OPTIONS = {
    "sampling.windows": "--windows",
    "sampling.window_characters": "--window-characters",
    "measurement.batch_vectors": "--batch-vectors",
    "corpus.sources": "--text",
    **CONFIGURATION_WORDS,
    "correct `layers`, `hidden_size` or `last_hidden_size` in config/models": "measure it in Python, by "
    "`shape_of_learning.measure`, which takes hidden states of any width",
    "the key `revision` of the entry or its `repository`": "the model's name or its revision",
    "remove the model from `models`, or say `gated: true` in its entry, so that it is left out": "and "
    "try again",
}
app.command(
    epilog=f"Example: shape-of-learning audit EleutherAI/pythia-2.8b --markdown issue.md. {command.EXIT_CODES}"
)(command.audit)
app.command(epilog="Example: shape-of-learning where pythia-2.8b 66000")(command.where)
# Use of an installation -> a package that it needs, and the extra that installs the package.
REQUIREMENTS = {
    "models, trainings, plots": ("transformers", "models"),
    "GGUF files": ("gguf", "models"),
    "the workflow": ("snakemake", "workflow"),
    "tasks from the Hub": ("datasets", "tasks"),
}
WRITER_SECONDS = 5  # time for a writer to open a pipe
LARGEST_STREAM = 1 << 30  # largest text from a pipe, in bytes

Text = Annotated[
    Path | None,
    typer.Option(
        help="Plain text in UTF-8, from which windows are drawn; - for standard input. By default Python's "
        "documentation.",
        parser=parse_input,
        metavar="FILE",
    ),
]
Measures = Annotated[
    str,
    typer.Option(
        help=f"Names separated by commas, or {ALL} for those of the first paper. Further names are "
        f"{', '.join(EXAMPLES)}; docs/reference/measures.md lists all."
    ),
]
Windows = Annotated[int, typer.Option(help="Number of windows of text.", min=1)]
Characters = Annotated[int, typer.Option(help="Per window; fewer for a short context.", min=1)]
Vectors = Annotated[int, typer.Option(help="Per batch; dimensions depend on it.", min=129)]
Threads = Annotated[int | None, typer.Option(help="By default one per core.", min=1)]
Device = Annotated[
    str, typer.Option(help="For example cpu or cuda:1; by default the first GPU, if any.")
]
BatchSize = Annotated[
    int | None,
    typer.Option(
        help="Windows that go through the model together; by default a fast number.", min=1
    ),
]
output_option = partial(typer.Option, parser=parse_output, metavar="FILE")
Csv = Annotated[
    Path | None,
    output_option(help="CSV file with all digits, intervals and n; - for standard output."),
]


def _print_version(is_requested: bool) -> None:
    if is_requested:
        stdout.print(f"shape-of-learning {__version__}", highlight=False)
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


@app.command(epilog="Example: shape-of-learning measure gpt2 --text my.txt --plot gpt2.png")
def measure(  # noqa: PLR0913 (options)
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...",
            help="Hub id, also as MODEL@REVISION, folder, GGUF file, package:NAME/PATH, or a file of vectors "
            "(.npy, .npz, .pt, .safetensors, .parquet).",
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
        Path | None, output_option(help="JSON list of objects, likewise; - for standard output.")
    ] = None,
    plot: Annotated[
        Path | None,
        output_option(help="PNG, PDF or SVG: a panel per measure; - for PNG on standard output."),
    ] = None,
    explorer: Annotated[
        Path | None, output_option(help="Interactive HTML page; - for standard output.")
    ] = None,
) -> None:
    """Measure every layer of one model or of several."""
    outputs = csv, json, plot, explorer
    inputs = (text, *_list_model_files(models))
    with _exit_on_input_error(*outputs, inputs=inputs), TemporaryDirectory() as temporary:
        picture = choose_picture_format(plot) if plot else ""
        for option, value, default in (("--revision", revision, "main"), ("--name", name, "")):
            if value != default and len(models) > 1:
                raise InputError(
                    f"{option} is for one model; write MODEL@REVISION, or measure one model at a time"
                )
        text_name = BUILT_IN_TEXT
        if text is not None:
            text_name = _format_input(text) if is_stream(text) else text.name
        options = _make_options(
            measures, windows, window_characters, batch_vectors, threads, device, batch_size
        )
        _refuse_options_of_models(models, text, options)
        checkpoints = _choose_checkpoints(models, revision)
        if duplicate := next((m for m in models if models.count(m) > 1), ""):
            raise InputError(f"`{duplicate}` is named twice; name it once")
        text_argument = text
        text = _prepare_text(text, Path(temporary), models)
        if not text.is_file():
            text_name = UNKNOWN_TEXT
        measurements = _measure_all(models, checkpoints, text, options, name)
        results = [result for _, result in measurements]
        rows = [row for result in results for row in result.estimates]
        try:
            if csv or json:
                estimates = _record_estimates(measurements, text_argument, text, options)
            if csv:
                write_estimates(csv, estimates)
            if json:
                write_objects(json, estimates)
            if plot:
                draw_plot(rows, plot, picture, text_name)
            if explorer:
                write_text(explorer, make_explorer(rows, text_name))
        finally:  # print the results even if a file could not be written
            console = make_results_console(*outputs)
            for result in results:
                estimates = name_cells(result.estimates)
                if len(results) > 1:
                    console.print(result.label, highlight=False)
                print_estimates(estimates, console)
                for sentence in find_sentences(result.label, estimates):
                    console.print(sentence, soft_wrap=True, highlight=False)


@app.command(
    epilog="Example: shape-of-learning compare EleutherAI/pythia-70m@step0 EleutherAI/pythia-70m"
)
def compare(  # noqa: PLR0913 (options)
    first: Annotated[
        str,
        typer.Argument(metavar="A", help="A model as for `measure`; MODEL@REVISION on the Hub."),
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
    """Print the differences B - A of two models on the same windows, with paired intervals."""
    inputs = (text, *_list_model_files([first, second]))
    with _exit_on_input_error(csv, inputs=inputs), TemporaryDirectory() as temporary:
        options = _make_options(
            measures, windows, window_characters, batch_vectors, threads, device, batch_size
        )
        models = [first, second]
        _refuse_options_of_models(models, text, options)
        checkpoints = _choose_checkpoints(models)
        text = _prepare_text(text, Path(temporary), models)
        (_, result), (_, second_result) = _measure_all(
            models, checkpoints, text, options, shares_batches=True
        )
        rows = result.compare(second_result)
        console = make_results_console(csv)
        console.print(f"B - A: {second_result.label} - {result.label}", highlight=False)
        try:
            if csv:
                write_table(csv, [*rows[0]], [[*row.values()] for row in rows])
        finally:
            print_changes(rows, console)
            blocks, other_blocks = result.model.layers, second_result.model.layers
            if blocks != other_blocks:
                console.print(
                    f"Means alone, since A has {blocks} blocks and B {other_blocks}",
                    highlight=False,
                )


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
    """Make an interactive page from a table."""
    with _exit_on_input_error(page, inputs=(table,)), TemporaryDirectory() as temporary:
        name = _format_input(table)
        if is_stream(table):
            table = _read_stream(table, Path(temporary))
        if not table.is_file():
            raise InputError(f"{name} is missing; correct the path")
        write_text(page, make_explorer(read_estimates(table, name)))


@app.command(
    epilog="Example: shape-of-learning verify gpt2.csv. Exit codes: 0, the file holds; 1, values differ or the file "
    "was edited; 2, it could not be verified, or a wrong command line."
)
def verify(
    file: Annotated[
        Path,
        typer.Argument(
            help="CSV or JSON file of `measure`; - for standard input.", parser=parse_input
        ),
    ],
    text: Annotated[
        Path | None,
        typer.Option(
            help="The text, if it has moved since the file was written, or came from a pipe.",
            parser=parse_input,
            metavar="FILE",
        ),
    ] = None,
    model: Annotated[
        str, typer.Option(help="The model, if it has moved since the file was written.")
    ] = "",
    threads: Threads = None,
    device: Annotated[
        str, typer.Option(help="By default that of the file, if this machine has it.")
    ] = "",
) -> None:
    """Measure again what a file of `measure` states, and say whether its values hold."""
    inputs = (file, text)
    with _exit_on_input_error(inputs=inputs, code=NOT_VERIFIED), TemporaryDirectory() as temporary:
        from shape_of_learning.verification import (
            Agreement,
            EditedFileError,
            find_recorded_inputs,
            format_verification,
            read_recorded_estimates,
            verify_estimates,
        )

        name = _format_input(file)
        folder = Path(temporary)
        if is_stream(file):
            file = _read_stream(file, folder)
        if not file.is_file():
            raise InputError(f"{name} is missing; correct the path")
        try:
            estimates = read_recorded_estimates(file, name)
        except EditedFileError as error:
            print_message(f"ERROR: {error}")
            raise typer.Exit(DIFFERENT) from None
        if model and len(estimates) > 1:
            raise InputError(
                f"{name} has {len(estimates)} models, and --model is for one; leave it out"
            )
        if text is not None and is_stream(text):
            text = _read_stream(text, folder)
        for model_estimates in estimates:
            if model_estimates.record.commit and not model:
                print_message(f"Asking {endpoint()} for `{model_estimates.record.model}`.")
        inputs = find_recorded_inputs(estimates, model, text, folder)
        agreements = []
        for model_estimates, recorded_inputs in zip(estimates, inputs, strict=True):
            with show_bar(recorded_inputs.source.model) as progress:
                verification = verify_estimates(
                    model_estimates,
                    recorded_inputs,
                    device=device,
                    threads=threads,
                    progress=progress,
                )
            for line in format_verification(verification):
                stdout.print(line, soft_wrap=True, highlight=False)
            agreements.append(verification.agreement)
        if Agreement.DIFFERENT in agreements:
            raise typer.Exit(DIFFERENT)


@app.command(epilog="Example: shape-of-learning doctor")
def doctor() -> None:
    """Print versions, BLAS, memory and GPU of this machine, and whether the Hub answers."""
    with _exit_on_input_error():
        print_message(f"Asking {endpoint()} whether it answers.")
        from huggingface_hub import HfApi, constants

        from shape_of_learning.checkpoints import hub

        _print_fact("python", f"{platform.python_version()} on {platform.platform()}")
        _print_fact("shape-of-learning", f"{__version__} in {Path(__file__).parent}")
        for name in ("torch", "transformers", "huggingface-hub", "numpy", "scipy"):
            try:
                _print_fact(name, metadata.version(name))
            except metadata.PackageNotFoundError:
                _print_fact(name, "not installed")
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

        libraries = {f"{info['internal_api']} {info['version']}" for info in threadpool_info()}
        _print_fact("BLAS", ", ".join(sorted(libraries)))
        has_gpu = torch.cuda.is_available()
        _print_fact("GPU", torch.cuda.get_device_name() if has_gpu else "none")
        for purpose, (package, extra) in REQUIREMENTS.items():
            if util.find_spec(package) is not None:
                _print_fact(purpose, "installed")
            else:
                _print_fact(purpose, f"not installed; in a clone: `pip install '.[{extra}]'`")


def _print_fact(key: str, value: str) -> None:
    stdout.print(f"{key}: {value}", highlight=False, soft_wrap=True)


_exit_on_input_error = partial(exit_on_input_error, options=OPTIONS)


def _make_options(
    measures: str,
    windows: int,
    window_characters: int,
    batch_vectors: int,
    threads: int | None,
    device: str,
    batch_size: int | None,
) -> MeasurementOptions:
    """Make the options of a measurement from the options of `measure` and `compare`."""
    return MeasurementOptions(
        measures=_split_measures(measures),
        windows=windows,
        window_characters=window_characters,
        batch_vectors=batch_vectors,
        threads=threads,
        device=device or None,
        batch_size=batch_size,
    )


def _split_measures(names: str) -> list[str]:
    if names.strip() == ALL:
        return [*DEFAULT_MEASURES]
    measures = [name.strip() for name in names.split(",") if name.strip()]
    if not measures:
        raise InputError(
            "--measures names no measure; leave it out, or name some of docs/reference/measures.md"
        )
    return measures


def _refuse_options_of_models(
    models: list[str], text: Path | None, options: MeasurementOptions
) -> None:
    """Raise InputError for options of a forward pass if all models are files of vectors."""
    from shape_of_learning.one_model.vector_files import is_vector_file

    if not all(map(is_vector_file, models)):
        return
    has_option = {
        "--text": text is not None,
        "--windows": options.windows != WINDOWS,
        "--window-characters": options.window_characters != WINDOW_CHARACTERS,
        "--device": options.device is not None,
        "--batch-size": options.batch_size is not None,
    }
    for option, is_given in has_option.items():
        if is_given:
            raise InputError(
                f"a file of vectors needs no text and no forward pass ({', '.join(models)}); leave out {option}"
            )


def _prepare_text(text: Path | None, folder: Path, models: list[str]) -> Path:
    """Return the file of the text: the option's, a copy of a stream, or the documentation of Python."""
    from shape_of_learning.one_model.vector_files import is_vector_file

    if all(map(is_vector_file, models)):
        return folder
    if text is None:
        from shape_of_learning.corpus.fetch import read_demo_text

        print_message("Text: the documentation that comes with Python; --text FILE takes another.")
        text = folder / "python_topics.txt"
        text.write_text(read_demo_text(), encoding="utf-8")
    elif is_stream(text):  # a stream can be read only once
        text = _read_stream(text, folder)
    elif not text.is_file():
        problem = "is a folder" if text.is_dir() else "is missing"
        raise InputError(f"{text} {problem}; correct --text")
    return text


def _list_model_files(models: list[str]) -> list[Path]:
    """List the files of models on this machine, which no output may replace."""
    from shape_of_learning.checkpoints.shapes import ADAPTER, CONFIGURATION, TOKENIZER

    models = [str(expand_home(model)) for model in models]
    names = {CONFIGURATION, ADAPTER, *TOKENIZER}
    # For names that are too long for a file, these functions return False, whereas methods of Path raise an error.
    files = [Path(model) for model in models if os.path.isfile(model)]  # noqa: PTH113
    for folder in (Path(model) for model in models if os.path.isdir(model)):  # noqa: PTH112
        files += [
            file
            for file in folder.glob("*")
            if file.name in names or file.name.endswith((".safetensors", ".bin", ".index.json"))
        ]
    return files


def _choose_checkpoints(models: list[str], revision: str = "main") -> list[tuple[str, str]]:
    """Return the model and the revision of each argument; InputError, before any download, if one is wrong."""
    from shape_of_learning.checkpoints.local import find_checkpoint_folder, is_local
    from shape_of_learning.one_model.vector_files import is_vector_file

    checkpoints = [_split_revision(model) for model in models]
    if revision != "main":
        [(model, stated_revision)] = checkpoints
        if stated_revision != "main":
            raise InputError(f"{models[0]} has a revision in its name; leave out --revision")
        checkpoints = [(model, revision)]
    for model, revision in checkpoints:
        has_vectors = is_vector_file(model)
        if not has_vectors and not is_local(model):
            print_message(f"Asking {endpoint()} for `{model}` at `{revision}`.")
            continue
        if revision != "main":
            raise InputError(
                f"{model} is on this machine, and has no revision `{revision}`; leave out `@{revision}` or "
                "--revision, or name the folder of the checkpoint that you mean"
            )
        if not has_vectors:
            find_checkpoint_folder(model, revision)
    return checkpoints


def _measure_all(
    models: list[str],
    checkpoints: list[tuple[str, str]],
    text: Path,
    options: MeasurementOptions,
    name: str = "",
    *,
    shares_batches: bool = False,
) -> "list[tuple[ModelSource, MeasurementResult]]":
    """Fetch and measure models with a progress bar."""
    from huggingface_hub.utils import disable_progress_bars

    from shape_of_learning.checkpoints.local import is_local, name_local
    from shape_of_learning.one_model.sources import find_source, measure_source

    if not stderr.is_terminal:
        disable_progress_bars()
    short_names = [
        name_local(model) if is_local(model) else Path(model).name for model, _ in checkpoints
    ]
    measurements: list[tuple[ModelSource, MeasurementResult]] = []
    for argument, (model, revision), short_name in zip(
        models, checkpoints, short_names, strict=True
    ):
        namesakes = {
            other_model
            for (other_model, _), other_name in zip(checkpoints, short_names, strict=True)
            if other_name == short_name
        }
        label = name or (argument if len(namesakes) > 1 else short_name)
        source = find_source(model, revision)
        with show_bar(label) as progress:
            result = measure_source(
                source,
                text,
                options,
                name=label,
                revision=revision,
                shuffle_name=measurements[0][1].model.name
                if measurements and shares_batches
                else "",
                progress=progress,
            )
        measurements.append((source, result))
    return measurements


def _record_estimates(
    measurements: "list[tuple[ModelSource, MeasurementResult]]",
    argument: Path | None,
    text: Path,
    options: MeasurementOptions,
) -> "list[RecordedEstimates]":
    """Join the estimates of each model with a record; `argument` is the option --text, `text` the file to read."""
    from shape_of_learning.file_hashes import remember_sha256
    from shape_of_learning.one_model.measurement_record import (
        RecordedEstimates,
        TextKind,
        TextSource,
        make_record,
    )

    text_source = None
    if text.is_file():
        kind: TextKind = "built-in"
        if argument is not None:
            kind = "stream" if is_stream(argument) else "file"
        path = _format_input(argument) if argument else ""
        text_source = TextSource(source=kind, path=path, sha256=remember_sha256(text))
    return [
        RecordedEstimates(result.estimates, make_record(source, text_source, options))
        for source, result in measurements
    ]


def _split_revision(argument: str) -> tuple[str, str]:
    """Split MODEL@REVISION, unless the argument is a folder whose name contains @."""
    from shape_of_learning.checkpoints.local import is_local

    model, _, revision = argument.partition("@")
    if not revision or Path(argument).exists() or (is_local(model) and not Path(model).exists()):
        return argument, "main"
    return model, revision


def _format_input(path: Path) -> str:
    return "the standard input" if path == STANDARD_INPUT else str(path)


def _open_pipe(pipe: Path) -> tuple[int, bytes]:
    """Open a pipe, and return its descriptor and first bytes; InputError if it has no writer."""
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    first = b""
    if not select.select([reader], [], [], WRITER_SECONDS)[0]:
        try:
            first = os.read(reader, 1)
        except BlockingIOError:  # a writer has opened the pipe
            pass
        else:
            if not first:
                os.close(reader)
                raise InputError(f"{pipe} is a pipe that nobody writes to; name a file")
    os.set_blocking(reader, True)
    return reader, first


def _read_stream(stream: Path, folder: Path) -> Path:
    """Copy the standard input, a pipe or an open file into a file of the folder."""
    descriptor = find_descriptor(stream)
    name = _format_input(stream)
    if descriptor is None and not (stream.is_fifo() or stream == Path("/dev/null")):
        raise InputError(f"{name} is a device; name a file or a pipe")
    file = folder / ("standard input" if stream == STANDARD_INPUT else stream.name)
    first = b""
    if descriptor is not None:
        reader = os.dup(descriptor)
    elif stream.is_fifo():
        reader, first = _open_pipe(stream)
    else:
        reader = os.open(stream, os.O_RDONLY)
    with os.fdopen(reader, "rb") as source, file.open("wb") as copy:
        copy.write(first)
        while chunk := source.read(1 << 20):
            copy.write(chunk)
            if copy.tell() > LARGEST_STREAM:
                raise InputError(
                    f"{name} gives more than 1 GB; write it to a file, and name the file"
                )
    return file
