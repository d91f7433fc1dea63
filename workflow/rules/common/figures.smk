"""Which tables and files belong to a figure, and what its function is told."""

from shape_of_learning.plan.paper_models import by_family_and_size, with_chosen_measures
from shape_of_learning.plan.papers import CAPTION_SECTIONS, figures_of, tables_of

FIGURES = with_chosen_measures(figures_of(PAPERS), CONFIGURATION.settings)
TABLES = tables_of(PAPERS)
SETTINGS_OF_CAPTIONS = {key: CONFIGURATION.settings[key] for key in CAPTION_SECTIONS}
PAPER_OF = {target: paper.name for paper in PAPERS for target in (*paper.figures, *paper.tables)}
TITLES = {target: paper.title for paper in PAPERS for target in (*paper.figures, *paper.tables)}
# How readers call other results, by their paths without suffixes.
NAMES_OF_RESULTS = {
    "tables/measurements": "Measurements: every value of every batch",
    "tables/estimates": "Estimates: every value with its interval",
    "tables/changes": "Changes from step to step, with their intervals",
    "tables/weights": "What is measured of the models' own matrices",
    "tables/protocol": "Protocol: the configuration of the run",
    "claims/choices": "Which choices flip a verdict",
    "explorer": "All estimates and verdicts in one page",
}


def paper_title(wildcards):
    """The title under which a report shows a figure or a table."""
    return TITLES[wildcards.get("figure") or wildcards.get("table")]


def name_in_paper(target):
    """How readers call a figure or a table of a paper: Figure 1, Loss by step."""
    prefix = next(paper.prefix for paper in PAPERS if paper.name == PAPER_OF[target])
    name = target.removeprefix(prefix).replace("_", " ")
    return f"{name[:1].upper()}{name[1:]}"


def shown_as(kind):
    """How a report names a file of a figure or a table."""

    def labels(wildcards):
        return {
            "result": name_in_paper(wildcards.get("figure") or wildcards.get("table")),
            "as": kind,
        }

    return labels


def drawn_by(wildcards):
    """The specification of a figure, and the models that it draws."""
    return FIGURES[wildcards.figure], CONFIGURATION.figures[wildcards.figure]


def checkpoints_of_figure(figure):
    """Which tables a figure reads."""
    return "every_checkpoint" if figure.needs_training_steps else "last_checkpoint"


def estimated(figure):
    """The estimators of a figure that tables of estimates hold."""
    return [name for name in figure.estimators if name in MEASURES]


def figure_tables(wildcards, table="estimates"):
    """The tables of estimates, or of another kind, that a figure reads."""
    figure, models = drawn_by(wildcards)
    return expand(
        f"<results>/tables/{checkpoints_of_figure(figure)}/{{model}}/{{estimator}}/{table}.csv",
        model=models,
        estimator=estimated(figure),
    )


def figure_changes(wildcards):
    """The changes between checkpoints, of a figure by training step."""
    figure, _ = drawn_by(wildcards)
    return figure_tables(wildcards, "changes") if figure.needs_training_steps else []


def figure_verdicts(wildcards):
    """What is known of the checkpoints of a figure by training step."""
    figure, models = drawn_by(wildcards)
    named = models if figure.needs_training_steps else ()
    return expand("<results>/tables/verdicts/{model}.csv", model=named)


def figure_reads(wildcards):
    """The tables that a figure reads besides, one of each kind and model."""
    figure, models = drawn_by(wildcards)
    return expand("<results>/tables/{read}/{model}.csv", read=figure.reads, model=models)


def figure_reads_named(wildcards, input):
    """The same, each with the name by which the figure's function knows its kind."""
    kinds = [kind for kind in drawn_by(wildcards)[0].reads for _ in drawn_by(wildcards)[1]]
    return [f"{kind}={path}" for kind, path in zip(kinds, input.reads)]


def figure_science(wildcards):
    return science("draw_figure", FIGURES[wildcards.figure].folder / "figures.py")


def figure_function(wildcards):
    figure = FIGURES[wildcards.figure]
    return f"{figure.folder.name}:{figure.draw}"


def figure_inputs(wildcards):
    """What draw_figure.py is told of models and measures, as JSON."""
    figure, models = drawn_by(wildcards)
    settings = {key: setting("figures", key) for key in figure.settings}
    measures = [CONFIGURATION.measures[name] for name in figure.estimators]
    keys = ("name", "label", "axis", "depends_on_n", "interval", "suspect_above", "parameters")
    return json.dumps(
        {
            "models": [
                {"name": m.name, "label": m.label, "family": m.family, "role": m.shape.role}
                for m in by_family_and_size(MODELS[name] for name in models)
            ],
            "measures": [
                # Other batches are as large as the sample makes them; the caption says how large.
                {key: getattr(measure, key) for key in keys}
                | {"depends_on_n": measure.depends_on_n and measure.family == "dimension"}
                for measure in measures
            ],
            "options": {**figure.options, **settings, **published_options(figure, models)},
        }
    )


def published_options(figure, models):
    """The argument that holds what is published of a figure's models."""
    rows = [row for row in figure.published if row["model"] in models]
    return {"published": rows} if figure.published else {}


def figure_caption(wildcards):
    """What a caption says before the tables are read: what is drawn, by what measures, how it was measured."""
    figure, models = drawn_by(wildcards)
    measures = [CONFIGURATION.measures[name] for name in figure.estimators]
    labels = {
        "measures": listed([measure.label for measure in measures]),
        "models": listed([MODELS[name].label for name in models]),
    }
    try:
        words = figure.caption.format(**labels, **SETTINGS_OF_CAPTIONS)
    except KeyError as error:
        fail(
            f"{figure.folder / 'paper.yaml'}: the caption of `{wildcards.figure}` names the key {error}, which "
            "the configuration does not have; correct it"
        )
    details = "; ".join(measure.description for measure in measures if measure.description)
    details = f"{details[:1].upper()}{details[1:]}." if details else ""
    if figure.needs_training_steps:
        notes = dict.fromkeys(MODELS[name].note for name in models)  # many may have the same
        of_models = " ".join(filter(None, notes))
    else:
        of_models = substitutions(models)
    return " ".join(filter(None, [words, details, of_models, protocol_sentences(figure)]))


def listed(labels):
    """Labels in a row, which may have commas themselves."""
    return ("; " if any("," in label for label in labels) else ", ").join(labels)


def protocol_sentences(figure):
    """What a caption must say of the protocol that the tables do not."""
    if figure.reads and not figure.estimators:
        return ""  # of whatever samples its tables are
    of = {CONFIGURATION.measures[name].family for name in figure.estimators}
    if of == {"weights"}:
        return ""  # of no tokens at all
    last_layer = setting("forward", "last_layer").replace("both", "after_final_norm")
    norm = last_layer.replace("_", " ").replace("final", "the model's final")
    sentences = [
        f"{setting('sampling', 'windows')} windows of {setting('sampling', 'window_characters')} "
        f"characters of {setting('corpus', 'source')}.",
    ]
    if not figure.estimators:
        return sentences[0]  # nothing is drawn but the loss
    sentences.append(f"The last layer is taken {norm}, where it has one.")
    left_out = [
        words
        for key, words in {
            "special_tokens": "special tokens",
            "first_token": "the first token of each window",
        }.items()
        if setting("measurement", key) == "drop"
    ]
    if left_out:
        sentences.append(f"Left out of the tokens: {' and '.join(left_out)}.")
    elif setting("measurement", "token_types") == "all":
        sentences.append("All tokens are measured, special ones and first ones, too.")
    if setting("measurement", "token_types") == "one":
        sentences.append("Of each token type one vector is measured, drawn at random.")
    return " ".join(sentences)


def substitutions(models):
    """Name the models of which another checkpoint than the last is drawn, or one that is bad."""
    sentences = []
    for name in models:
        drawn, last, bad = last_checkpoint(name), curve(name).checkpoints[-1], curve(name).bad()
        if drawn.name != last.name:
            reason = f"its last, {last.name}, is left out ({bad[last.name]})"
            sentences.append(f"{MODELS[name].label} is drawn at {drawn.name}: {reason}.")
        elif drawn.name in bad:
            sentences.append(f"{MODELS[name].label} is suspect: {bad[drawn.name]}.")
    return " ".join(sentences)


def table_science(wildcards):
    return science("write_table", TABLES[wildcards.table].folder / "figures.py")


def table_function(wildcards):
    table = TABLES[wildcards.table]
    return f"{table.folder.name}:{table.write}"


def table_entries(wildcards):
    """What a table says of its models, as JSON."""
    entries = []
    for name in CONFIGURATION.tables[wildcards.table]:
        model = MODELS[name]
        shape = {"layers": model.shape.layers, "hidden_size": model.shape.hidden_size}
        named = {"name": name, "family": model.family} if TABLES[wildcards.table].reads else {}
        entries.append({"model": model.label, **shape, **named, **(model.table_1 or {})})
    return json.dumps(entries)


def table_reads(wildcards):
    """The tables of measured numbers that a table is made of, one of each kind and model."""
    models = CONFIGURATION.tables[wildcards.table]
    reads = TABLES[wildcards.table].reads
    return expand("<results>/tables/{read}/{model}.csv", read=reads, model=models)


def table_reads_named(wildcards, input):
    """The same, each with the name of its kind."""
    models = CONFIGURATION.tables[wildcards.table]
    kinds = [kind for kind in TABLES[wildcards.table].reads for _ in models]
    return [f"{kind}={path}" for kind, path in zip(kinds, input.reads)]


def table_caption(wildcards):
    return TABLES[wildcards.table].caption


def target_files(target):
    """The files of a figure or of a table."""
    folder, suffixes = (
        ("figures", ("pdf", "png", "csv", "md")) if target in FIGURES else ("tables", ("csv", "md"))
    )
    return [f"<results>/{folder}/{target}.{suffix}" for suffix in suffixes]


def files_of_target(target):
    """What a named target asks for; says so if the configuration leaves it out."""

    def files(wildcards):
        if target not in CONFIGURATION.figures and target not in CONFIGURATION.tables:
            known = (n for n in CONFIGURATION.notices if n.startswith(f"{target} "))
            reason = next(known, None)
            if reason is None and target in FIGURES and FIGURES[target].published:
                names = dict.fromkeys(f"`{row['model']}`" for row in FIGURES[target].published)
                fail(
                    f"{target} shows {' and '.join(names)}, and key `models` names none of these; add one"
                )
            if reason is None:
                fail(
                    f"{target} belongs to the paper `{PAPER_OF[target]}`, which this configuration does not "
                    f"choose; name the paper in key `papers`, or its models in key `figures.{target}`"
                )
            fail(f"{reason}; correct key `models` or `figures.{target}`")
        return target_files(target)

    return files


def all_figures_and_tables(wildcards):
    return [
        file
        for target in (*CONFIGURATION.figures, *CONFIGURATION.tables)
        for file in target_files(target)
    ]
