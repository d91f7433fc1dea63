"""Make the parameters of jobs that draw and describe: figures, tables, the explorer, findings and reports.

rules/figures.smk makes the paths of a figure's inputs from :func:`list_models_by_table`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from pydantic import BaseModel

from shape_of_learning.claims.claim import Claim
from shape_of_learning.code_digest import digest_code
from shape_of_learning.errors import InputError
from shape_of_learning.explorer.job import (
    ExplorerJob,
    ShownClaim,
    ShownModel,
    ShownPaper,
    make_shown_measures,
)
from shape_of_learning.figures.job import DrawnModel, FigureJob, TableJob, make_drawn_measures
from shape_of_learning.findings import FindingsJob, NamedCheckpoint
from shape_of_learning.metrics.measure_entry import Measure
from shape_of_learning.metrics.tidy import GROUPS
from shape_of_learning.plan.entries import Entry
from shape_of_learning.plan.papers import FigureEntry, Paper, sort_by_family_and_size
from shape_of_learning.plan.run import Run
from shape_of_learning.plan.settings import Corpus, Settings
from shape_of_learning.words import capitalise

DROPPED_TOKENS = {
    "special_tokens": "special tokens",
    "first_token": "the first token of each window",
    "massive_tokens": "those longer than five times the median in any layer",
}
BUILTIN_TEXTS = {"python_topics": "Python's documentation"}
SEQUENCES = {"last_token": "the last token", "mean": "the mean of the tokens"}


def make_drawn_models(
    models: Iterable[Entry], revisions: Mapping[str, str]
) -> tuple[DrawnModel, ...]:
    """Describe models in the order in which a figure draws them.

    `revisions` has the checkpoint of each model of which only one is drawn.
    """
    return tuple(
        DrawnModel(
            name=model.name,
            label=model.label,
            family=model.family,
            role=model.shape.role,
            revision=revisions.get(model.name),
            width=model.shape.hidden_size,
            seeds_of=model.seeds_of,
        )
        for model in sort_by_family_and_size(models)
    )


def format_opening(
    figure: FigureEntry, models: Sequence[Entry], measures: Sequence[Measure], settings: Settings
) -> str:
    """Write the part of a caption that does not depend on tables.

    Raises
    ------
    InputError
        If the caption names a setting that the configuration does not have.
    """
    curves = [
        model.label.rpartition(", seed")[0] if model.seeds_of else model.label for model in models
    ]
    labels = {
        "measures": _list_labels([measure.label for measure in measures]),
        "models": _list_labels(curves),
    }
    return _fill_in_settings("caption", figure.caption, settings, **labels)


def describe_measures(measures: Iterable[Measure]) -> str:
    """Describe the definitions of measures, and how estimators of the intrinsic dimension count equal vectors."""
    measures = list(measures)
    clauses = dict.fromkeys(measure.description for measure in measures if measure.description)
    sentences = [f"{capitalise(clause)}." for clause in clauses]
    dimensions = {measure.name for measure in measures if measure.family == "dimension"}
    if dimensions - {"two_nn_authors"}:
        other = (
            ", other than in TwoNN by the authors' code" if "two_nn_authors" in dimensions else ""
        )
        sentences.append(f"Equal vectors count once{other}.")
    return " ".join(sentences)


def _fill_in_settings(key: str, words: str, settings: Settings, **labels: str) -> str:
    """Fill settings and labels into a sentence of a paper.yaml; the name of a built-in text becomes words."""
    values = settings.model_dump()
    values["corpus"]["source"] = _name_text(settings.corpus)
    where = f"the {key} {words!r}"
    try:
        return words.format(**values | labels)
    except KeyError as error:
        names = "".join(f" nor `{label}`" for label in labels)
        kind = f"{'neither a' if names else 'no'} setting of the configuration{names}"
        raise InputError(
            f"{where} has {error}, which is {kind}; correct it in paper.yaml"
        ) from None
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise InputError(
            f"{where} has wrong braces ({error}); write a setting as `{{sampling[windows]}}` in paper.yaml"
        ) from None


def _name_text(corpus: Corpus) -> str:
    """Name the source of the corpus, or describe it in words if it is built in."""
    return BUILTIN_TEXTS.get(corpus.sources[corpus.source].builtin or "", corpus.source)


def _list_labels(labels: Sequence[str]) -> str:
    """Write labels in a row, each once, separated by semicolons if a label has a comma."""
    labels = list(dict.fromkeys(labels))
    return ("; " if any("," in label for label in labels) else ", ").join(labels)


def describe_protocol(run: Run) -> list[str]:
    """Describe the sample, tokens, batches, intervals and measures that all figures of a run share."""
    measurement = run.settings.measurement
    models = [run.models[name] for name in run.measured_models]
    last_layer = run.settings.forward.last_layer.replace("both", "after_final_norm")
    norm = last_layer.replace("_", " ").replace("final", "the model's final")
    dropped_tokens = [
        words for key, words in DROPPED_TOKENS.items() if getattr(measurement, key) == "drop"
    ]
    tokens = "All tokens are measured, special ones and first ones, too."
    if dropped_tokens:
        tokens = f"Left out of the tokens: {' and '.join(dropped_tokens)}."
    if measurement.same_window == "drop":
        tokens += " Neighbours from a vector's own window do not count."
    if measurement.token_types == "one":
        tokens += " Of each token type one vector is measured, drawn at random."
    if vector := SEQUENCES.get(measurement.sequence, ""):
        tokens += f" One vector is measured of each window: {vector}."
    exception = ", or all that massive tokens leave" * (measurement.massive_tokens == "drop")
    return [
        f"{describe_sampling(models, run.settings)}. The last layer is taken {norm}, if the model has one. {tokens}",
        "n is the number of vectors of a batch, averaged over batches. A batch has at least "
        f"{measurement.batch_vectors:,}{exception}; fewer than twice as many vectors are one batch. Intervals are "
        f"of 95 %, from leaving out each of {GROUPS} groups of windows; the papers draw the standard deviation over "
        "batches, in the column batch_sd where there are several.",
        describe_measures(run.all_measures.values()),
        *(
            f"{paper.title}: {_fill_in_settings('protocol', paper.protocol, run.settings)}"
            for paper in run.papers
            if paper.protocol and {*paper.figures, *paper.tables} & {*run.shown_models}
        ),
    ]


def describe_sampling(models: Iterable[Entry], settings: Settings) -> str:
    """Describe the number, the length and the text of the windows."""
    sampling = settings.sampling
    widths = [model.shape.hidden_size for model in models]
    numbers = {sampling.count_windows(width) for width in widths} or {sampling.windows}
    windows = " to ".join(map(str, sorted({min(numbers), max(numbers)})))
    characters = sampling.window_characters
    source = _name_text(settings.corpus)
    vector = SEQUENCES.get(settings.measurement.sequence, "")
    return f"{windows} windows of {characters} characters of {source}{vector and f', {vector} of each'}"


def list_models_by_table(run: Run, target: str) -> dict[str, list[str]]:
    """List the models of each kind of table that a figure or a table of the run reads."""
    if target in run.tables:
        kinds = run.tables[target].reads
    else:
        figure = run.figures[target]
        kinds = [*figure.reads, *(["estimates"] if run.list_estimators(figure) else [])]
        if figure.draws_every_checkpoint:
            kinds.append("verdicts")
    return {kind: list(run.shown_models[target]) for kind in kinds}


def make_figure_job(run: Run, target: str) -> FigureJob:
    """Make the job of a figure."""
    figure = run.figures[target]
    names = run.shown_models[target]
    models = [run.models[name] for name in names]
    measures = [run.all_measures[name] for name in figure.estimators]
    sample = _fill_in_settings("sample", figure.sample, run.settings)
    last = {}
    if not figure.draws_every_checkpoint:
        last = {name: run.find_last_checkpoint(name).name for name in names}
    return FigureJob(
        function=figure.draw,
        models=make_drawn_models(models, last),
        measures=make_drawn_measures(measures),
        options={
            **figure.options,
            **{k: getattr(run.settings.figures, k) for k in figure.settings},
        },
        caption=format_opening(figure, models, measures, run.settings),
        note=_describe_checkpoints(run, figure, names),
        sample=sample or describe_sampling(models, run.settings),
        protocol=describe_measures(
            measure for measure in measures if measure.family == "dimension"
        ),
    )


def _describe_checkpoints(run: Run, figure: FigureEntry, names: Sequence[str]) -> str:
    """Write the notes of models for a figure by step, or notes on bad last checkpoints for another figure."""
    if figure.draws_every_checkpoint:  # many models may have the same note
        return " ".join(filter(None, dict.fromkeys(run.models[name].note for name in names)))
    sentences = []
    for name in names:
        revision = run.find_last_checkpoint(name).name
        last = run.resolve_checkpoints(name).checkpoints[-1].name
        bad = run.list_bad_verdicts(name)
        label = run.models[name].label
        if revision != last:
            reason = f"its last checkpoint, {last}, is left out ({bad[last]})"
            sentences.append(f"{label} is drawn at {revision}: {reason}.")
        elif revision in bad:
            sentences.append(f"{label} is suspect: {bad[revision]}.")
    return " ".join(sentences)


def make_table_job(run: Run, target: str) -> TableJob:
    """Make the job of a table."""
    table = run.tables[target]
    entries = []
    for model in (run.models[name] for name in run.shown_models[target]):
        shape = {"layers": model.shape.layers, "hidden_size": model.shape.hidden_size}
        names = {"name": model.name, "family": model.family} if table.reads else {}
        entries.append({"model": model.label, **shape, **names, **(model.table_columns or {})})
    return TableJob(table.write, tuple(entries), table.caption)


def require_target(run: Run, target: str) -> None:
    """Refuse a figure or table that the run leaves out, with the reason."""
    if target in run.shown_models:
        return
    for notice in run.notices:
        if notice.target == target:
            raise InputError(f"{notice}; correct key `models` or `figures.{target}`")
    remedy = "name the paper in key `papers`"
    if run.settings.papers is None:
        remedy += f", or its models in keys `models` and `figures.{target}`"
    raise InputError(f"{target} belongs to the paper `{run.find_paper(target).name}`; {remedy}")


def make_explorer_job(run: Run) -> ExplorerJob:
    """Describe a run for the explorer, which reads the numbers from tables."""
    main_paper_first = sorted(run.papers, key=lambda paper: paper.prefix != "")
    models = [run.models[name] for name in run.measured_models]
    return ExplorerJob(
        models=tuple(
            ShownModel(m.name, m.label, "fine-tuning" if m.kind == "finetuning" else "")
            for m in models
        ),
        measures=make_shown_measures(run.all_measures.values()),
        sample=describe_sampling(models, run.settings),
        papers=tuple(
            _describe_paper(run, paper)
            for paper in main_paper_first
            if paper.name in run.claims or {*paper.figures} & {*run.shown_models}
        ),
        claims={
            (paper, name): _describe_claim(run, claim)
            for paper, claims in run.claims.items()
            for name, claim in claims.items()
        },
        notes=tuple(describe_protocol(run)),
        curves=collect_curves(run.papers),
    )


def collect_curves(papers: Iterable[Paper]) -> dict[str, dict[str, str]]:
    """Collect the tables of papers whose curves the explorer shows."""
    return {kind: columns for paper in papers for kind, columns in paper.curves.items()}


def make_findings_job(run: Run) -> FindingsJob:
    """Name the last checkpoints of downloaded or local models, or of all models if this run trains them all."""
    published_models = [
        name for name in run.measured_models if run.models[name].kind in ("repository", "path")
    ]
    return FindingsJob(
        tuple(
            NamedCheckpoint(name, run.models[name].label, run.find_last_checkpoint(name).name)
            for name in published_models or run.measured_models
        )
    )


def _describe_paper(run: Run, paper: Paper) -> ShownPaper:
    """Describe the models, measures and further tables that the figures of a paper show."""
    figure_names = [name for name in paper.figures if name in run.shown_models]
    models = {model for name in figure_names for model in run.shown_models[name]}
    figures = [run.figures[name] for name in figure_names]
    measures = {name for figure in figures for name in figure.estimators}
    tables = {kind for figure in figures for kind in figure.reads if not figure.estimators}
    if any(figure.draws_every_checkpoint for figure in figures):
        tables.add("verdicts")  # they have the losses
    return ShownPaper(
        name=paper.name,
        title=paper.title,
        models=tuple(name for name in run.measured_models if name in models),
        measures=tuple(name for name in run.all_measures if name in measures),
        tables=tuple(sorted(tables)),
    )


def _describe_claim(run: Run, claim: Claim) -> ShownClaim:
    """Describe the measures or tables of a claim, and the figures that show them."""
    table_kinds = set(claim.reads)
    figures = [
        n for n in run.shown_models if n in run.figures and table_kinds & {*run.figures[n].reads}
    ]
    return ShownClaim(
        measures=tuple(claim.estimators),
        tables=() if claim.estimators else tuple(claim.reads),
        view="layer" if claim.checkpoints == "last" and not claim.reads else "step",
        figures=tuple(run.name_in_paper(name) for name in figures),
    )


def digest_measures(script: str, measures: Iterable[Measure]) -> str:
    """Return a digest of a script and of the modules of its measures."""
    return digest_code(script, *sorted({measure.module for measure in measures}))


class ReportText(str):
    """Text for reports, whose `repr` has no sign that begins a tag."""

    __slots__ = ()

    def __repr__(self) -> str:
        return super().__repr__().replace("<", r"\x3c")

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return str, (str(self),)  # a job gets plain text


def escape_for_report(value: Any) -> Any:
    """Return an equal value, such as a job, in which text that could begin a tag is :class:`ReportText`."""
    if isinstance(value, str):
        return ReportText(value) if "<" in value else value
    if isinstance(value, dict):
        return {escape_for_report(key): escape_for_report(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [escape_for_report(inner) for inner in value]
    if isinstance(value, tuple):
        inner = map(escape_for_report, value)
        return type(value)(*inner) if hasattr(value, "_fields") else tuple(inner)
    if isinstance(value, BaseModel):
        return value.model_copy(update=escape_for_report(dict(value)))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{f.name: escape_for_report(getattr(value, f.name)) for f in fields(value)}
        )
    return value
