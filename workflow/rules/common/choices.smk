"""Which claims are judged under which specifications, and what of which checkpoints that takes."""

from dataclasses import asdict

from shape_of_learning.claims.choices import thinned
from shape_of_learning.plan.choice_settings import claims_with_choices, read_choice_settings

CHOICE_SETTINGS = at_the_door(read_choice_settings, CONFIGURATION.settings)
CLAIMS_WITH_CHOICES, VARIANTS = at_the_door(
    claims_with_choices,
    CONFIGURATION.claims,
    CONFIGURATION.settings,
    CHOICE_SETTINGS,
    {name: evidence_model(name) for name in CONFIGURATION.models},
    [paper.name for paper in PAPERS],
)
# All that is measured for any of them, by the names of tables.
CHOICE_MEASURES = {name: measure for of in VARIANTS.values() for name, measure in of.items()}
CHOICE_FIGURES = [f"specification_{name}" for name in CLAIMS_WITH_CHOICES]
NAMES_OF_RESULTS |= {
    f"figures/{figure}": figure.replace("_", ": ", 1).replace("_", " ").capitalize()
    for figure in CHOICE_FIGURES
}
FIGURE_SUFFIXES = ("pdf", "png", "csv", "md")
all_choices = [
    *expand("<results>/claims/choices.{suffix}", suffix=("csv", "md")),
    *expand("<results>/figures/{figure}.{suffix}", figure=CHOICE_FIGURES, suffix=FIGURE_SUFFIXES),
]


def checkpoints_of_claim(claim, model):
    """At which checkpoints of a model a claim is judged, of a long training at some."""
    if claim.checkpoints == "last":
        return [last_checkpoint(model)]
    bad = curve(model).bad()
    sound = [c for c in checkpoints(model) if c.step is not None and c.name not in bad]
    if len(sound) < 2:
        return []
    return thinned(sound, setting("choices", "checkpoints"))


@cache
def wanted_of(model):
    """Estimators that claims ask of each checkpoint of a model, in the order of training."""
    wanted = {}
    for of, models in CLAIMS_WITH_CHOICES.values():
        for checkpoint in checkpoints_of_claim(of.claim, model) if model in models else ():
            wanted.setdefault(checkpoint.name, set()).update(VARIANTS[of.claim.name])
    return {c.name: sorted(wanted[c.name]) for c in checkpoints(model) if c.name in wanted}


# The folder of each text.
CHOICE_TEXTS = {
    text: f"<results>/corpus/{text if text in setting('corpus', 'sources') else setting('corpus', 'source')}"
    for text in setting("choices", "text")
}


def choice_measures(wildcards):
    """All that a checkpoint is measured with."""
    names = wanted_of(wildcards.model)[wildcards.revision]
    return [CHOICE_MEASURES[name] for name in names]


def choice_step(wildcards):
    own = [c.step for c in checkpoints(wildcards.model) if c.name == wildcards.revision]
    return own[0]


def choice_science(wildcards):
    return science_of_measures("measure_choices", choice_measures(wildcards))


def choice_memory(wildcards, threads, attempt):
    on_gpu = is_on_gpu("measure_choices")
    needed = needs.checkpoint_memory_mb(work_of(wildcards.model), threads, on_gpu=on_gpu, pairs=1)
    return needs.asked_mb(needed, attempt)


def choice_minutes(wildcards, threads, attempt):
    """Minutes of one checkpoint, as often as there are sets of rows."""
    on_gpu = is_on_gpu("measure_choices")
    work = work_of(wildcards.model)
    minutes = needs.checkpoint_minutes(work, threads=threads, on_gpu=on_gpu, pairs=1)
    # With one vector per token type or half of the windows, it is much less.
    return needs.asked_minutes(minutes * max(1, len(CHOICE_SETTINGS.sets_of_rows()) / 2), attempt)


def models_with_choices():
    return list(dict.fromkeys(m for _, models in CLAIMS_WITH_CHOICES.values() for m in models))


def measured_choices(wildcards):
    """The tables of all models and checkpoints."""
    return [
        f"<results>/choices/{model}/{revision}.csv"
        for model in models_with_choices()
        for revision in wanted_of(model)
    ]


def choice_verdicts(wildcards):
    """What says which checkpoints are sound."""
    judged = [name for name in models_with_choices() if is_judged(name)]
    return expand("<results>/tables/verdicts/{model}.csv", model=judged)


def choice_protocol(wildcards):
    """What the captions of curves say of the sample."""
    return {
        **CONFIGURATION.settings["sampling"],
        "source": setting("corpus", "source"),
        "batch_vectors": setting("measurement", "batch_vectors"),
        "checkpoints": setting("choices", "checkpoints"),
    }
