"""Which tables and files belong to a figure, and what its function is told."""

from shape_of_learning.plan.figures import drawn_measures, drawn_models, opening_words, options_of
from shape_of_learning.plan.functions import named_function
from shape_of_learning.plan.paper_models import with_chosen_measures
from shape_of_learning.plan.papers import figures_of, tables_of

FIGURES = with_chosen_measures(figures_of(PAPERS), CONFIGURATION.settings)
TABLES = tables_of(PAPERS)
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


def checkpoints_of_figure(figure):
    """Whether a figure shows a training or each model's last checkpoint."""
    return "every_checkpoint" if figure.needs_training_steps else "last_checkpoint"


def estimated(figure):
    """The estimators of a figure that tables of estimates hold."""
    return [name for name in figure.estimators if name in MEASURES]


def function_of(wildcards):
    """The function that draws a figure or writes a table."""
    if "table" in wildcards.keys():
        table = TABLES[wildcards.table]
        return named_function(table.write, table.folder)
    figure = FIGURES[wildcards.figure]
    return named_function(figure.draw, figure.folder)


def tables_by_kind(kinds, models):
    """Tables of these models, by kind."""
    return {kind: [f"<results>/tables/{kind}/{name}.csv" for name in models] for kind in kinds}


def tables_of_figure(wildcards):
    """The tables that a figure reads."""
    figure = FIGURES[wildcards.figure]
    kinds = [*figure.reads, *(["estimates"] if estimated(figure) else [])]
    if figure.needs_training_steps:
        kinds += ["verdicts", "changes"] if estimated(figure) else ["verdicts"]
    return tables_by_kind(kinds, CONFIGURATION.figures[wildcards.figure])


def figure_as_drawn(wildcards):
    """What draw_figure.py is told of a figure."""
    figure, names = FIGURES[wildcards.figure], CONFIGURATION.figures[wildcards.figure]
    models = [MODELS[name] for name in names]
    measures = [CONFIGURATION.measures[name] for name in figure.estimators]
    is_last, settings = not figure.needs_training_steps, CONFIGURATION.settings
    revisions = {name: last_checkpoint(name).name for name in names if is_last}
    said = on_last_checkpoints(names) if is_last else ""
    return {
        "function": str(function_of(wildcards)),
        "models": drawn_models(models, revisions),
        "measures": drawn_measures(measures),
        "options": options_of(figure, names, settings),
        "caption": at_the_door(opening_words, figure, models, measures, settings, said),
    }


def on_last_checkpoints(models):
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


def tables_of_table(wildcards):
    """The tables of measured numbers that a table is made of."""
    return tables_by_kind(TABLES[wildcards.table].reads, CONFIGURATION.tables[wildcards.table])


def table_as_written(wildcards):
    """What write_table.py is told of a table and of its models."""
    table, entries = TABLES[wildcards.table], []
    for model in map(MODELS.get, CONFIGURATION.tables[wildcards.table]):
        shape = {"layers": model.shape.layers, "hidden_size": model.shape.hidden_size}
        named = {"name": model.name, "family": model.family} if table.reads else {}
        entries.append({"model": model.label, **shape, **named, **(model.table_1 or {})})
    return {"function": str(function_of(wildcards)), "entries": entries, "caption": table.caption}


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
