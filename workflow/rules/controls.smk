"""Null models beside the models of figures that draw them: is a curve more than what they give, too?

REQUIRED INPUTS: the cleaned text and a checkpoint.
OUTPUTS:
    <results>/controls/{model}/{revision}.csv   the tidy table of each control of a checkpoint
    <results>/tables/controls/{model}.csv       of the checkpoints of a model
STEPS: measure_controls, one job per checkpoint, in memory; gather_controls.
"""


def control_kinds(model, revision):
    """Untrained weights are the same at every checkpoint, so they are measured at the last one alone."""
    last = RUN.control_checkpoints(model)[-1].name
    return [
        kind for kind in SETTINGS["controls"]["kinds"] if kind != "untrained" or revision == last
    ]


def checkpoint_named(model, revision):
    """What rows of a table say of a checkpoint."""
    return next(
        (model, MODELS[model].shape.role, each.name, each.step, each.tokens)
        for each in RUN.checkpoints(model)
        if each.name == revision
    )


def controls_of_model(model):
    return [
        f"<results>/controls/{model}/{each.name}.csv" for each in RUN.control_checkpoints(model)
    ]


rule measure_controls:
    """Run windows through a checkpoint as each control has them, and measure all layers in memory."""
    input:
        **CLEAN_CORPUS,
        checkpoint=told(weights_input, "model", "revision"),
    output:
        "<results>/controls/{model}/{revision}.csv",
    log:
        "<logs>/controls/{model}/{revision}.log",
    benchmark:
        "<benchmarks>/controls/{model}/{revision}.tsv"
    priority: 1
    conda:
        "../../envs/models.yaml"
    threads: forward_threads
    resources:
        **RUNNING,
        **asked(needs.controls),
    params:
        code=lambda wildcards: code_of_measures(
            "measure_controls", at_the_door(RUN.control_measures, *wildcards)
        ),
        weights=told(RUN.weights, "model", "revision"),
        sample=told(sample, "model"),
        checkpoint_named=told(checkpoint_named, "model", "revision"),
        kinds=told(control_kinds, "model", "revision"),
        measuring=lambda wildcards: {
            "measures": [m.for_jobs() for m in at_the_door(RUN.control_measures, *wildcards)],
            "protocol": MEASURING,
        },
    script:
        "../scripts/measure_controls.py"


rule gather_controls:
    """Gather the controls of one model over its checkpoints."""
    input:
        told(controls_of_model, "model"),
    output:
        "<results>/tables/controls/{model}.csv",
    log:
        "<logs>/tables/controls/{model}.log",
    benchmark:
        "<benchmarks>/tables/controls/{model}.tsv"
    priority: 3
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    params:
        code=code("gather_tables"),
        kind="controls",
    script:
        "../scripts/gather_tables.py"
