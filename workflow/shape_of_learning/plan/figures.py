"""What the job of a figure is told: models, measures, options, and how its caption begins."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shape_of_learning.claims.claim import Claim
from shape_of_learning.errors import InputError
from shape_of_learning.metrics.measure_entry import Measure
from shape_of_learning.plan.models import Model
from shape_of_learning.plan.paper_models import by_family_and_size
from shape_of_learning.plan.papers import FigureSpecification, Paper
from shape_of_learning.plan.run import Run

KEPT_WORDS = ("name", "label", "axis", "interval", "suspect_above")
LEFT_OUT = {
    "special_tokens": "special tokens",
    "first_token": "the first token of each window",
    "massive_tokens": "those longer than five times the median",
}


def drawn_models(models: Iterable[Model], revisions: Mapping[str, str]) -> list[dict[str, Any]]:
    """Describe models in the order in which they are drawn, with the one checkpoint that is, if it is one."""
    return [
        {
            **{"name": model.name, "label": model.label, "family": model.family},
            **{"role": model.shape.role, "revision": revisions.get(model.name)},
            "width": model.shape.hidden_size,
        }
        for model in by_family_and_size(models)
    ]


def drawn_measures(measures: Iterable[Measure]) -> list[dict[str, Any]]:
    """Describe measures in the order of panels; axes of dimensions need not begin at 0."""
    return [
        {
            **{key: getattr(measure, key) for key in KEPT_WORDS},
            "from_zero": not (measure.depends_on_n and measure.family == "dimension"),
            "per_dimension": measure.depends_on_n and measure.family == "linearity",
            "parameters": dict(measure.arguments),
        }
        for measure in measures
    ]


def opening_words(
    figure: FigureSpecification,
    models: Sequence[Model],
    measures: Sequence[Measure],
    settings: Mapping[str, Any],
    on_checkpoints: str = "",
) -> str:
    """Say what a caption can before the tables are read.

    Parameters
    ----------
    on_checkpoints : str
        Of a figure of last checkpoints, which of them are not the last.

    Raises
    ------
    InputError
        If the caption names a setting that the configuration does not have.
    """
    labels = {"measures": _listed(measures), "models": _listed(models)}
    try:
        words = figure.caption.format(**{**settings, **labels})
    except (KeyError, ValueError) as error:
        raise InputError(
            f"the caption {figure.caption!r} has {error}, which is no setting of the configuration, nor "
            "`models` or `measures`; correct it in paper.yaml"
        ) from None
    details = "; ".join(measure.description for measure in measures if measure.description)
    details = f"{details[:1].upper()}{details[1:]}." if details else ""
    if figure.needs_training_steps:  # many models may have the same note
        on_checkpoints = " ".join(filter(None, dict.fromkeys(model.note for model in models)))
    return " ".join(
        filter(
            None, [words, details, on_checkpoints, *_protocol(figure, models, measures, settings)]
        )
    )


def _listed(named: Sequence[Model] | Sequence[Measure]) -> str:
    """Labels in a row, which may have commas themselves."""
    labels = [each.label for each in named]
    return ("; " if any("," in label for label in labels) else ", ").join(labels)


def _protocol(
    figure: FigureSpecification,
    models: Sequence[Model],
    measures: Sequence[Measure],
    settings: Mapping[str, Any],
) -> list[str]:
    """Sentences on the protocol, which the tables do not tell."""
    if figure.reads and (not measures or all(measure.family == "weights" for measure in measures)):
        return []  # of whatever samples its tables are, or of no tokens at all
    measurement = settings["measurement"]
    sentences = [f"{_sample(models, settings)}."]
    if not measures:
        return sentences  # nothing is drawn but the loss
    last_layer = settings["forward"]["last_layer"].replace("both", "after_final_norm")
    norm = last_layer.replace("_", " ").replace("final", "the model's final")
    sentences.append(f"The last layer is taken {norm}, where it has one.")
    left_out = [words for key, words in LEFT_OUT.items() if measurement[key] == "drop"]
    if left_out:
        sentences.append(f"Left out of the tokens: {' and '.join(left_out)}.")
    elif measurement["token_types"] == "all":
        sentences.append("All tokens are measured, special ones and first ones, too.")
    if measurement["same_window"] == "drop":
        sentences.append("Neighbours in the window of a vector itself do not count.")
    if measurement["token_types"] == "one":
        sentences.append("Of each token type one vector is measured, drawn at random.")
    return sentences


def _sample(models: Iterable[Model], settings: Mapping[str, Any]) -> str:
    """Windows of which text, of models that may have different numbers of them."""
    sampling = settings["sampling"]
    numbers = {model.windows(sampling) for model in models} or {sampling["windows"]}
    windows = " to ".join(map(str, sorted({min(numbers), max(numbers)})))
    characters, source = sampling["window_characters"], settings["corpus"]["source"]
    return f"{windows} windows of {characters} characters of {source}"


def tables_of(run: Run, target: str) -> dict[str, list[str]]:
    """Kinds of tables that a figure or a table of the run reads -> of which models."""
    if target in run.tables:
        kinds = run.tables[target].reads
    else:
        figure = run.figures[target]
        kinds = [*figure.reads, *(["estimates"] if run.estimated(figure) else [])]
        if figure.needs_training_steps:
            kinds.append("verdicts")
    return {kind: list(run.shown[target]) for kind in kinds}


def figure_as_drawn(run: Run, target: str) -> dict[str, Any]:
    """What draw_figure.py is told of a figure."""
    figure, names = run.figures[target], run.shown[target]
    models = [run.models[name] for name in names]
    measures = [run.every_measure[name] for name in figure.estimators]
    last = {} if figure.needs_training_steps else {n: run.last_checkpoint(n).name for n in names}
    words = (figure, models, measures, run.settings, _on_last_checkpoints(run, last))
    return {
        "function": figure.draw,
        "models": drawn_models(models, last),
        "measures": drawn_measures(measures),
        "options": {**figure.options, **{k: run.settings["figures"][k] for k in figure.settings}},
        "caption": opening_words(*words),
    }


def _on_last_checkpoints(run: Run, drawn: Mapping[str, str]) -> str:
    """Name the models of which another checkpoint than the last is drawn, or one that is bad."""
    sentences = []
    for name, revision in drawn.items():
        last, bad, label = (
            run.curve(name).checkpoints[-1].name,
            run.bad(name),
            run.models[name].label,
        )
        if revision != last:
            reason = f"its last, {last}, is left out ({bad[last]})"
            sentences.append(f"{label} is drawn at {revision}: {reason}.")
        elif revision in bad:
            sentences.append(f"{label} is suspect: {bad[revision]}.")
    return " ".join(sentences)


def table_as_written(run: Run, target: str) -> dict[str, Any]:
    """What write_table.py is told of a table and of its models."""
    table, entries = run.tables[target], []
    for model in (run.models[name] for name in run.shown[target]):
        shape = {"layers": model.shape.layers, "hidden_size": model.shape.hidden_size}
        named = {"name": model.name, "family": model.family} if table.reads else {}
        entries.append({"model": model.label, **shape, **named, **(model.table_1 or {})})
    return {"function": table.write, "entries": entries, "caption": table.caption}


def require_shown(run: Run, target: str) -> None:
    """Refuse a target that the configuration leaves out, with the reason."""
    if target in run.shown:
        return
    for notice in run.notices:
        if notice.startswith(f"{target} "):
            raise InputError(f"{notice}; correct key `models` or `figures.{target}`")
    raise InputError(
        f"{target} belongs to the paper `{run.paper_of(target).name}`; name the paper in key "
        f"`papers`, or its models in keys `models` and `figures.{target}`"
    )


def explored(run: Run) -> dict[str, Any]:
    """What the explorer says that tables do not."""
    keys = ("name", "label", "axis", "description", "suspect_above")
    measures = run.every_measure.values()
    sample = _sample([run.models[name] for name in run.measured], run.settings)
    return {
        "models": [{"name": name, "label": run.models[name].label} for name in run.measured],
        "measures": [{key: getattr(measure, key) for key in keys} for measure in measures],
        "papers": [
            _explored_paper(run, paper)
            for paper in run.papers
            if paper.name in run.claims or {*paper.figures} & {*run.shown}
        ],
        "claimed": {
            paper: {name: _explored_claim(run, claim) for name, claim in of_paper.items()}
            for paper, of_paper in run.claims.items()
        },
        "notes": [f"{sample}. n is the mean number of vectors of a batch."],
    }


def _explored_paper(run: Run, paper: Paper) -> dict[str, Any]:
    """The models, measures and further tables that the figures of a paper show."""
    drawn = [name for name in paper.figures if name in run.shown]
    models = {model for name in drawn for model in run.shown[name]}
    figures = [run.figures[name] for name in drawn]
    measures = {name for figure in figures for name in figure.estimators}
    tables = {kind for figure in figures for kind in figure.reads if not figure.estimators}
    if any(figure.needs_training_steps for figure in figures):
        tables.add("verdicts")  # they have the losses
    return {
        **{"name": paper.name, "title": paper.title, "tables": sorted(tables)},
        "models": [name for name in run.measured if name in models],
        "measures": [name for name in run.every_measure if name in measures],
    }


def _explored_claim(run: Run, claim: Claim) -> dict[str, Any]:
    """Which measures a claim is of, or of all of which tables, and what shows them."""
    read = set(claim.reads)
    figures = [n for n in run.shown if n in run.figures and read & {*run.figures[n].reads}]
    return {
        "measures": list(claim.estimators),
        "tables": [] if claim.estimators else list(claim.reads),
        "view": "layer" if claim.checkpoints == "last" and not claim.reads else "step",
        "figures": [run.name_in_paper(name) for name in figures],
    }
