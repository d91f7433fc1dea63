"""Which tables and files belong to a figure."""

AVERAGE_OVER = ["--average-over", setting("figures", "average_over")]


def figure_tables(figure):
    """The tables that a figure reads."""
    specification = FIGURES[figure]
    selection = "every_checkpoint" if specification.needs_training_steps else "last_checkpoint"
    return expand(
        f"<results>/tables/{selection}/{{model}}/{{estimator}}.csv",
        model=CONFIGURATION.figures.get(figure, ()),
        estimator=specification.estimators,
    )


def figure_verdicts(figure):
    """What is known of the checkpoints of a figure's models."""
    models = CONFIGURATION.figures.get(figure, ())
    return expand("<results>/tables/verdicts/{model}.csv", model=models)


def figure_roles(figure):
    return ["--roles", *(MODELS[name].role for name in CONFIGURATION.figures.get(figure, ()))]


def protocol_sentences(figure):
    """What a caption must say of the protocol that the table does not."""
    norm = setting("forward", "last_layer").replace("_", " ").replace("final", "the model's final")
    sentences = [
        f"{setting('sampling', 'windows')} windows of {setting('sampling', 'window_characters')} "
        f"characters of {setting('corpus', 'source')}.",
    ]
    if not FIGURES[figure].estimators:
        return sentences[0]  # nothing is drawn but the loss
    sentences.append(f"The last layer is taken {norm}, where it has one.")
    if setting("sampling", "special_tokens") == "drop":
        sentences.append("Special tokens are left out.")
    if setting("sampling", "first_token") == "drop":
        sentences.append("The first token of each window is left out.")
    return " ".join(sentences)


def figure_options(figure):
    """The options by which a script is told what to show, and how to name it."""
    models = [MODELS[name] for name in CONFIGURATION.figures.get(figure, ())]
    return (
        ["--models", *(model.name for model in models)]
        + ["--labels", *(model.label for model in models)]
        + ["--families", *(model.family for model in models)]
        + ["--protocol", protocol_sentences(figure)]
    )


def substitutions(figure):
    """Name the models of which another checkpoint than the last is drawn, or one that is bad."""
    sentences = []
    for name in CONFIGURATION.figures.get(figure, ()):
        drawn, last, bad = last_checkpoint(name), curve(name).checkpoints[-1], curve(name).bad()
        if drawn.name != last.name:
            reason = f"its last, {last.name}, is left out ({bad[last.name]})"
            sentences.append(f"{MODELS[name].label} is drawn at {drawn.name}: {reason}.")
        elif drawn.name in bad:
            sentences.append(f"{MODELS[name].label} is suspect: {bad[drawn.name]}.")
    return " ".join(sentences)


def options_of_last_checkpoints(figure):
    """The options of a figure that draws one checkpoint of each model; asked when its job is planned."""

    def options(wildcards):
        *known, protocol = figure_options(figure)
        return [*known, " ".join(filter(None, [substitutions(figure), protocol]))]

    return options


def figure_files(figure):
    return [f"<results>/figures/{figure}.{suffix}" for suffix in ("pdf", "png", "csv")]


def figure_target(figure):
    """What the named target of a figure asks for; says so if the configuration leaves it out."""

    def files(wildcards):
        if figure not in CONFIGURATION.figures:
            reason = next(n for n in CONFIGURATION.notices if n.startswith(figure))
            fail(f"{reason}; add one to key `models`")
        return figure_files(figure)

    return files


def all_figures(wildcards):
    return [file for figure in CONFIGURATION.figures for file in figure_files(figure)]
