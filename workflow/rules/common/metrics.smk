"""What is measured of each checkpoint: the estimators of the configuration, and what figures ask for besides."""

from shape_of_learning.metrics.measure_entry import FAMILIES, WEIGHTS
from shape_of_learning.plan.measures import curves_of_a_run, science_of_measures

# What is measured of a model itself, not of its layers, is in no table of estimates.
MEASURES = {name: each for name, each in CONFIGURATION.measures.items() if each.family != WEIGHTS}
MEASURING = {
    "windows": setting("sampling", "windows"),
    "seed": CONFIGURATION.settings["seed"],
    "batch_vectors": setting("measurement", "batch_vectors"),
    "neighbours": setting("measurement", "neighbours"),
    "selection": {
        key: setting("measurement", key) for key in ("special_tokens", "first_token", "token_types")
    },
}


def is_measured_whole(model):
    """Whether all estimators of the configuration are measured at every checkpoint of a model."""
    return model not in setting("measurement", "for_figures_only")


@cache
def measured_in_the_run():
    """Models and estimators, and whether these are measured at every checkpoint or at the last one."""
    figures = [
        (models, FIGURES[name].estimators, checkpoints_of_figure(FIGURES[name]))
        for name, models in CONFIGURATION.figures.items()
    ]
    of_all = [name for name in CONFIGURATION.estimators if name in MEASURES]
    whole = [name for name in CONFIGURATION.models if is_measured_whole(name)]
    return curves_of_a_run(whole, of_all, figures, MEASURES)


@cache
def estimators_at(model):
    """By checkpoint of a model, the estimators that are wanted of it."""
    last = last_checkpoint(model).name
    return {
        each.name: [
            estimator
            for (name, estimator), which in measured_in_the_run().items()
            if name == model and (which == "every_checkpoint" or each.name == last)
        ]
        for each in checkpoints(model)
    }


@cache
def measures_at(model, revision, family=None):
    """The same, of one family or of all, in an order that is not that of the configuration."""
    names = sorted(estimators_at(model)[revision])
    return [MEASURES[name] for name in names if family in (None, MEASURES[name].family)]


def measures_of_family(wildcards):
    """All that values of a family depend on."""
    found = measures_at(wildcards.model, wildcards.revision, wildcards.family)
    return [measure.for_jobs() for measure in found]


def measuring_of_checkpoint(wildcards):
    """The same of all families, and how they are measured."""
    found = measures_at(wildcards.model, wildcards.revision)
    return {"measures": [measure.for_jobs() for measure in found], "protocol": MEASURING}


def science_of_family(wildcards):
    measures = measures_at(wildcards.model, wildcards.revision, wildcards.family)
    return science_of_measures("measure", measures)


def science_of_checkpoint(wildcards):
    measures = measures_at(wildcards.model, wildcards.revision)
    return [*science_of_measures("measure_checkpoint", measures), *WEIGHT_SCIENCE]


def model_layers(wildcards):
    return MODELS[wildcards.model].shape.layers
