"""Null models beside the models of figures that draw them: is a curve more than what they give, too?

REQUIRED INPUTS: the cleaned text and a checkpoint.
OUTPUTS:
    <results>/controls/{model}/{revision}.csv   the tidy table of each control of a checkpoint
    <results>/tables/controls/{model}.csv       of the checkpoints of a model
STEPS: measure_controls, one job per checkpoint, in memory; gather_controls.
"""


def list_control_kinds(model, revision):
    """Untrained weights are the same at every checkpoint, so they are measured at the last one alone."""
    last = RUN.list_control_checkpoints(model)[-1].name
    return [
        kind for kind in SETTINGS["controls"]["kinds"] if kind != "untrained" or revision == last
    ]


def describe_checkpoint(model, revision):
    """What rows of a table say of a checkpoint."""
    return next(
        (model, MODELS[model].shape.role, each.name, each.step, each.tokens)
        for each in RUN.list_checkpoints(model)
        if each.name == revision
    )


def list_controls(model):
    return [
        f"<results>/controls/{model}/{each.name}.csv"
        for each in RUN.list_control_checkpoints(model)
    ]


rule measure_controls:
    """Run windows through a checkpoint as each control has them, and measure all layers in memory."""
    input:
        **CLEAN_CORPUS,
        checkpoint=ask_plan(weights_input, "model", "revision"),
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
        **RUNTIME_PARAMS,
        **request_resources(needs.estimate_controls),
    params:
        code=lambda wildcards: digest_measures(
            "measure_controls", exit_on_input_error(RUN.list_control_measures, *wildcards)
        ),
        weights=ask_plan(RUN.describe_weights, "model", "revision"),
        sample=ask_plan(sample_params, "model"),
        checkpoint_named=ask_plan(describe_checkpoint, "model", "revision"),
        kinds=ask_plan(list_control_kinds, "model", "revision"),
        measuring=lambda wildcards: {
            "measures": [
                m.make_job() for m in exit_on_input_error(RUN.list_control_measures, *wildcards)
            ],
            "protocol": MEASUREMENT_PARAMS,
        },
    script:
        "../scripts/measure_controls.py"


rule gather_controls:
    """Gather the controls of one model over its checkpoints."""
    input:
        ask_plan(list_controls, "model"),
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
        code=digest_code("gather_tables"),
        kind="controls",
    script:
        "../scripts/gather_tables.py"
