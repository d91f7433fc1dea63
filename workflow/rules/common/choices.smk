"""Which claims are judged under which specifications, and what of which checkpoints that takes."""

from dataclasses import asdict
from types import SimpleNamespace

from shape_of_learning.claims.choices import WantedMeasures
from shape_of_learning.claims.claim_choices import thinned
from shape_of_learning.metrics.measure_entry import Measure
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


def choice_parts(model):
    """The checkpoints of a model, as many together as one job measures."""
    names, size = list(wanted_of(model)), setting("choices", "checkpoints_per_job")
    return [names[start : start + size] for start in range(0, len(names), size)]


def checkpoints_of_part(wildcards):
    """The checkpoints of one job, each as the rules of a single one know it."""
    names = choice_parts(wildcards.model)[int(wildcards.part)]
    return [SimpleNamespace(model=wildcards.model, revision=name) for name in names]


def of_part(function):
    """What a function says of each of these checkpoints, as one list."""
    return lambda wildcards: [item for c in checkpoints_of_part(wildcards) for item in function(c)]


# The folder of each text; as of the run's own, the small file beside it says whether it is another.
CHOICE_TEXTS = {
    text: f"<results>/corpus/{text if text in setting('corpus', 'sources') else setting('corpus', 'source')}"
    for text in setting("choices", "text")
}


def choice_texts(wildcards, input):
    """The file of each text, as JSON."""
    return json.dumps(dict(zip(CHOICE_TEXTS, input.texts, strict=True)))


def choice_checkpoints(wildcards):
    """What measure_choices.py is told of its checkpoints, as JSON."""
    return json.dumps(
        [
            {
                "revision": c.revision,
                "folder": checkpoint_folder(c),
                "receipt": MODELS[c.model].source.receipt(c.revision, PLACES),
                "estimators": wanted_of(c.model)[c.revision],
            }
            for c in checkpoints_of_part(wildcards)
        ]
    )


def choice_measures(wildcards):
    """All estimators that these checkpoints are measured with, each with its parameters."""
    names = {
        name for c in checkpoints_of_part(wildcards) for name in wanted_of(c.model)[c.revision]
    }
    every = {name: measure for of in VARIANTS.values() for name, measure in of.items()}
    return {name: Measure(**every[name].for_jobs()) for name in sorted(names)}


def choice_wanted(wildcards):
    """What is measured of them, as JSON."""
    return WantedMeasures(
        choice_measures(wildcards),
        CHOICE_SETTINGS.rows,
        setting("measurement", "batch_vectors"),
        setting("measurement", "neighbours"),
    ).to_json()


def choice_science(wildcards):
    measures = choice_measures(wildcards).values()
    return science_of_measures("measure_choices", measures)


def choice_memory(wildcards, threads, attempt):
    on_gpu = is_on_gpu("measure_choices")
    needed = needs.checkpoint_memory_mb(work_of(wildcards.model), threads, on_gpu=on_gpu, pairs=1)
    return needs.asked_mb(needed, attempt)


def choice_minutes(wildcards, threads, attempt):
    """Minutes of one checkpoint, as often as there are checkpoints and sets of rows."""
    on_gpu = is_on_gpu("measure_choices")
    work = work_of(wildcards.model)
    minutes = needs.checkpoint_minutes(work, threads=threads, on_gpu=on_gpu, pairs=1)
    sets = len(CHOICE_SETTINGS.sets_of_rows()) * len(checkpoints_of_part(wildcards))
    # With one vector per token type or half of the windows, it is much less.
    return needs.asked_minutes(minutes * max(1, sets / 2), attempt)


def models_with_choices():
    return list(dict.fromkeys(m for _, models in CLAIMS_WITH_CHOICES.values() for m in models))


def measured_choices(wildcards):
    """The tables of all models, of all parts of their training."""
    return [
        f"<results>/choices/{model}/{part}.csv"
        for model in models_with_choices()
        for part in range(len(choice_parts(model)))
    ]


def choice_verdicts(wildcards):
    """What says which checkpoints are sound."""
    judged = [name for name in models_with_choices() if is_judged(name)]
    return expand("<results>/tables/verdicts/{model}.csv", model=judged)


def judged_choices(wildcards):
    """What judge_choices.py is told, as JSON."""
    models = models_with_choices()
    steps = {
        model: {
            c.name: (c.step, c.tokens) for c in checkpoints(model) if c.name in wanted_of(model)
        }
        for model in models
    }
    every = {name: measure for of in VARIANTS.values() for name, measure in of.items()}
    limits = {name: m.suspect_above for name, m in every.items() if m.suspect_above is not None}
    return json.dumps(
        {
            "claims": [asdict(of) for of, _ in CLAIMS_WITH_CHOICES.values()],
            "models": [evidence_model(name) for name in CONFIGURATION.models],
            "steps": steps,
            "suspect_above": limits,
            "protocol": {
                **CONFIGURATION.settings["sampling"],
                "source": setting("corpus", "source"),
                "batch_vectors": setting("measurement", "batch_vectors"),
                "checkpoints": setting("choices", "checkpoints"),
            },
        }
    )
