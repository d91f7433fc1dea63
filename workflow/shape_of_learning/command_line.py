"""The command ``shape-of-learning``: a model of yours in one minute, two models beside each other, this machine."""

import os
import platform
from functools import partial
from importlib import metadata
from json import dumps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from rich.table import Table

from shape_of_learning.audit import command
from shape_of_learning.checkpoints.local import PACKAGE
from shape_of_learning.console import bar, explained, shown, told
from shape_of_learning.errors import InputError
from shape_of_learning.files import atomic_write, write_table
from shape_of_learning.metrics.measure_entry import FAMILIES, Measure
from shape_of_learning.metrics.registry import MEASURES, OF_THE_PAPER, find_measure, measure_names
from shape_of_learning.metrics.tidy import CHANGE_COLUMNS, ESTIMATE_COLUMNS
from shape_of_learning.one_model.measured import BATCH_VECTORS, WINDOW_CHARACTERS, WINDOWS, Measured

EXIT_CODES = "Exit codes: 0, done; 1, what you gave cannot be used (see the last line); 2, a wrong command line."
ALL = ",".join(OF_THE_PAPER)
KNOWN = [n for n, m in MEASURES.items() if m.family in FAMILIES and "last_layer" not in m.rows]
app = typer.Typer(
    help="The shape of what transformers learn: anisotropy and intrinsic dimension by layer.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # whose help has boxes, also where there is no terminal
)
# What messages call by its key in the configuration.
OPTIONS = {
    "sampling.windows": "--windows",
    "sampling.window_characters": "--window-characters",
    "measurement.batch_vectors": "--batch-vectors",
    "corpus.sources": "--text",
}
app.command(
    epilog=f"Example: shape-of-learning audit EleutherAI/pythia-2.8b --markdown issue.md. {command.EXIT_CODES}"
)(command.audit)
app.command(epilog="Example: shape-of-learning where pythia-2.8b 66000")(command.where)
MARKS = {
    "*": "most nearest neighbours are copies or the same token: the value says more about the text "
    "than about the model",
    "~": "no interval: none is known to hold, or few windows decide the value",
}

Text = Annotated[
    Path | None,
    typer.Option(
        help="Plain text in UTF-8 to draw windows from; by default Python's own documentation."
    ),
]
Measures = Annotated[
    str, typer.Option(help=f"Names, with commas between: {', '.join(KNOWN)}.", show_default=False)
]
Windows = Annotated[int, typer.Option(help="Number of windows of text.", min=1)]
Characters = Annotated[int, typer.Option(help="Per window; fewer for a short context.", min=1)]
Vectors = Annotated[int, typer.Option(help="Per batch; dimensions depend on it.", min=129)]
Threads = Annotated[int | None, typer.Option(help="By default one per core.", min=1)]
Csv = Annotated[Path | None, typer.Option(help="A CSV file with all digits, intervals and n.")]


@app.command(epilog="Example: shape-of-learning measure gpt2 --text my.txt --plot gpt2.png")
def measure(  # noqa: PLR0913 (options)
    model: Annotated[str, typer.Argument(help="Hub id, folder, GGUF file, or package:NAME/PATH.")],
    revision: Annotated[str, typer.Option(help="Branch, tag or commit on the Hub.")] = "main",
    name: Annotated[str, typer.Option(help="The model's name in tables.")] = "",
    text: Text = None,
    measures: Measures = ALL,
    windows: Windows = WINDOWS,
    window_characters: Characters = WINDOW_CHARACTERS,
    batch_vectors: Vectors = BATCH_VECTORS,
    threads: Threads = None,
    csv: Csv = None,
    json: Annotated[Path | None, typer.Option(help="The same as a JSON list of objects.")] = None,
    plot: Annotated[Path | None, typer.Option(help="PNG or PDF: a panel per measure.")] = None,
    explorer: Annotated[Path | None, typer.Option(help="An interactive HTML page.")] = None,
) -> None:
    """Measure every layer of one model."""
    with _explained(csv, json, plot, explorer):
        if plot and plot.suffix.lower() not in (".png", ".pdf"):
            raise InputError(f"{plot} must end in .png or .pdf; correct --plot")
        sample = windows, window_characters, batch_vectors
        found = _measure(model, revision, text, measures, sample, threads, name)
        table = found.table()
        _print(table)
        if csv:
            write_table(csv, ESTIMATE_COLUMNS, found.estimates)
        if json:
            objects = table.astype(object).where(table.notna(), None).to_dict("records")
            _write(json, f"{dumps(objects, indent=1)}\n")
        if plot:
            _plot(found, plot)
        if explorer:
            with TemporaryDirectory() as temporary:
                estimates = Path(temporary, "estimates.csv")
                write_table(estimates, ESTIMATE_COLUMNS, found.estimates)
                _write(explorer, _explorer_page(estimates))


@app.command(
    epilog="Example: shape-of-learning compare EleutherAI/pythia-70m@step0 EleutherAI/pythia-70m"
)
def compare(  # noqa: PLR0913 (options)
    first: Annotated[
        str, typer.Argument(help="As for `measure`; MODEL@REVISION for one on the Hub.")
    ],
    second: Annotated[str, typer.Argument(help="The model to compare with it.")],
    text: Text = None,
    measures: Measures = ALL,
    windows: Windows = WINDOWS,
    window_characters: Characters = WINDOW_CHARACTERS,
    batch_vectors: Vectors = BATCH_VECTORS,
    threads: Threads = None,
    csv: Csv = None,
) -> None:
    """Say how much higher the second model is than the first on the same windows, with paired intervals."""
    with _explained(csv):
        both: list[Measured] = []
        names = (first, second) if Path(first).name == Path(second).name else ("", "")
        for given, name in zip((first, second), names, strict=True):
            is_here = given.startswith(PACKAGE) or Path(given).expanduser().exists()
            model, _, revision = (given, "", "") if is_here else given.partition("@")
            how = (windows, window_characters, batch_vectors), threads, name
            shuffled_as = both[0].model.name if both else ""
            both.append(
                _measure(model, revision or "main", text, measures, *how, shuffled_as=shuffled_as)
            )
        table = both[0].compared(both[1])
        _print(table, "difference")
        if csv:
            with atomic_write(csv) as partial:
                table.to_csv(partial, columns=CHANGE_COLUMNS, index=False, lineterminator="\n")


@app.command(epilog="Example: shape-of-learning explore shape.csv shape.html")
def explore(
    table: Annotated[Path, typer.Argument(help="CSV of `measure`, or of a ShapeCallback.")],
    page: Annotated[Path, typer.Argument(help="HTML file to write.")],
) -> None:
    """Make an interactive page of a table."""
    with _explained(page):
        if not table.is_file():
            raise InputError(f"{table} is missing; correct the path")
        _write(page, _explorer_page(table))


@app.command(epilog="Example: shape-of-learning doctor")
def doctor() -> None:
    """Say what this machine has: versions, BLAS, memory, GPU, and whether the Hub answers."""
    import torch
    from huggingface_hub import HfApi, constants
    from threadpoolctl import threadpool_info

    packages = ("shape-of-learning", "torch", "transformers", "huggingface-hub", "numpy", "scipy")
    facts = {"python": f"{platform.python_version()} on {platform.platform()}"}
    for name in packages:
        try:
            facts[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            facts[name] = "not installed as a package"
    facts["BLAS"] = ", ".join(
        sorted({f"{of['internal_api']} {of['version']}" for of in threadpool_info()})
    )
    facts["cores"] = str(len(os.sched_getaffinity(0)))
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    facts["memory"] = f"{pages / 1e9:.1f} GB"
    facts["GPU"] = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    try:
        HfApi().model_info("gpt2", timeout=10)
        facts["Hub"] = f"{constants.ENDPOINT} answers"
    except Exception as error:  # whatever a network does
        facts["Hub"] = f"{constants.ENDPOINT} does not answer ({type(error).__name__})"
    for key, value in facts.items():
        shown.print(f"{key}: {value}", highlight=False, soft_wrap=True)


_explained = partial(explained, options=OPTIONS)


def _measure(
    model: str,
    revision: str,
    text: Path | None,
    measures: str,
    sample: tuple[int, int, int],
    threads: int | None,
    name: str = "",
    *,
    shuffled_as: str = "",
) -> Measured:
    """Fetch what is meant, and measure it, with a bar on the terminal."""
    from huggingface_hub.utils import disable_progress_bars

    from shape_of_learning.checkpoints.local import named_checkpoint
    from shape_of_learning.corpus.fetch import demo_text
    from shape_of_learning.one_model.checkpoint import measure_checkpoint

    if not told.is_terminal:
        disable_progress_bars()
    if text is not None and not text.is_file():
        raise InputError(f"{text} is missing; correct --text")
    own, folder = named_checkpoint(model, revision)
    name = name or own
    with TemporaryDirectory() as temporary, bar(name) as progress:
        if text is None:
            told.print("Text: the documentation that comes with Python; --text FILE takes another.")
            text = Path(temporary, "python_topics.txt")
            text.write_text(demo_text(), encoding="utf-8")
        return measure_checkpoint(
            *(folder, text),
            name=name,
            revision=revision,
            measures=[each.strip() for each in measures.split(",")],
            windows=sample[0],
            window_characters=sample[1],
            batch_vectors=sample[2],
            shuffled_as=shuffled_as,
            threads=threads,
            progress=progress,
        )


def _print(table: Any, value: str = "value") -> None:
    """Print for each family a row per layer and a column per measure: the value and half of its interval."""
    named = {name: find_measure(name).chosen(name, {}) for name in table["estimator"].unique()}
    table = table.assign(place=table["layer"].astype("string").fillna("mean"))
    marks = dict.fromkeys("*~", False)

    def cell(row: Any) -> str:
        half = (row["high"] - row["low"]) / 2
        is_suspect, has_none = bool(row["suspect"]), half != half and row[value] == row[value]
        marks["*"] |= is_suspect
        marks["~"] |= has_none
        return f"{row[value]:.3g}{'*' * is_suspect} " + ("~" if half != half else f"±{half:.1g}")

    for family in dict.fromkeys(each.family for each in named.values()):
        own = [name for name, each in named.items() if each.family == family]
        printed = Table(box=None, pad_edge=False)
        for label in ("layer", *(named[name].label for name in own)):
            printed.add_column(label, justify="right", max_width=16)
        for place, rows in table[table["estimator"].isin(own)].groupby("place", sort=False):
            by_name = {row["estimator"]: row for _, row in rows.iterrows()}
            printed.add_row(place, *(cell(by_name[n]) if n in by_name else "" for n in own))
        shown.print(printed)
    for mark, said in MARKS.items():
        if marks[mark]:
            shown.print(f"{mark} {said}", soft_wrap=True, highlight=False)


def _measures(found: Measured) -> list[Measure]:
    names = [curve.estimator for curve, _ in found.curves]
    return [find_measure(name).chosen(name, {}) for name in names]


def _write(path: Path, content: str) -> None:
    with atomic_write(path) as partial:
        partial.write_text(content, encoding="utf-8", newline="\n")


def _plot(found: Measured, path: Path) -> None:
    """Draw a panel per measure."""
    from shape_of_learning.figures.by_layer import overview
    from shape_of_learning.figures.inputs import DrawnMeasure, DrawnModel, FigureInputs, read_tables
    from shape_of_learning.figures.style import theme
    from shape_of_learning.plan.figures import drawn_measures

    model = DrawnModel(found.model.name, found.model.name, found.model.name, found.model.role)
    with TemporaryDirectory() as temporary, theme():
        estimates = Path(temporary, "estimates.csv")
        write_table(estimates, ESTIMATE_COLUMNS, found.estimates)
        inputs = FigureInputs(
            models=[model],
            measures=[DrawnMeasure(**each) for each in drawn_measures(_measures(found))],
            tables=read_tables({"estimates": [estimates]}),
        )
        drawing = overview(inputs)
        with atomic_write(path) as partial:
            drawing.figure.savefig(partial, format=path.suffix[1:].lower())


def _explorer_page(estimates: Path) -> str:
    """The explorer of a table of estimates."""
    import pandas as pd

    from shape_of_learning.explorer.explorer_page import content_of, explorer_page

    try:
        table = pd.read_csv(estimates, usecols=list(ESTIMATE_COLUMNS))
        if table.empty or not set(table["estimator"]) <= set(measure_names()):
            raise ValueError("it has no row, or one of an unknown measure")
    except ValueError as error:
        raise InputError(
            f"{estimates} is no table of estimates ({error}); give one that `measure --csv` "
            "or a ShapeCallback wrote"
        ) from error
    keys = ("name", "label", "axis", "description", "suspect_above")
    measures = [find_measure(n).chosen(n, {}) for n in table["estimator"].unique()]
    description = {
        "models": [{"name": name, "label": name} for name in table["model"].unique()],
        "measures": [{key: getattr(each, key) for key in keys} for each in measures],
        **{"papers": [], "claims": [], "claimed": {}, "notes": []},
    }
    return explorer_page(content_of(description, estimates, [], [], []))
