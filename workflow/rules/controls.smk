"""Null models for the models of some figures. They show a curve without training or without word order.

REQUIRED INPUTS: the cleaned text and a checkpoint.
OUTPUTS:
    <results>/controls/{model}/{revision}.csv   the tidy table of the null models of a checkpoint
    <results>/tables/controls/{model}.csv       the same table of all checkpoints of a model
STEPS: measure_controls, one job per checkpoint, in memory; gather_controls.
"""

from shape_of_learning.embeddings.protocol import ControlsJob
from shape_of_learning.metrics.measure_entry import drop_labels_and_rules
from shape_of_learning.metrics.series import TablesJob


def list_control_kinds(model, revision):
    """List the null models of a checkpoint; untrained weights are the same at all steps, so only the last has them."""
    control_checkpoints = RUN.list_control_checkpoints(model)
    if not control_checkpoints:
        raise InputError(
            f"no figure of this run draws null models of model `{model}`; name it in one that does"
        )
    last = control_checkpoints[-1].name
    kinds = SETTINGS.controls.kinds
    return tuple(kind for kind in kinds if kind != "untrained" or revision == last)


def make_controls_job(model, revision):
    """Make the job that measures the null models of a checkpoint."""
    control_checkpoint = RUN.find_checkpoint(model, revision)
    return ControlsJob(
        RUN.describe_weights(model, revision),
        control_checkpoint.step,
        control_checkpoint.tokens,
        make_sampling_protocol(model),
        measures=drop_labels_and_rules(RUN.list_control_measures(model, revision)),
        protocol=make_measuring_protocol(model),
        kinds=list_control_kinds(model, revision),
    )


def digest_controls(model, revision):
    return digest_measures("measure_controls", RUN.list_control_measures(model, revision))


def list_control_files(model):
    return [
        f"<results>/controls/{model}/{checkpoint.name}.csv"
        for checkpoint in RUN.list_control_checkpoints(model)
    ]


rule measure_controls:
    """Compute the hidden states of the null models of a checkpoint in memory, and measure all layers."""
    input:
        **CLEAN_CORPUS,
        checkpoint=ask_plan(list_weights_input, "model", "revision"),
    output:
        "<results>/controls/{model}/{revision}.csv",
    log:
        "<logs>/controls/{model}/{revision}.log",
    benchmark:
        "<benchmarks>/controls/{model}/{revision}.tsv"
    priority: 2  # before other checkpoints, since it takes long, and the weights are kept until it has ended
    conda:
        "../../envs/models.yaml"
    threads: count_forward_threads
    resources:
        **RUNTIME_RESOURCES,
        **request_resources(needs.estimate_controls),
    params:
        code=ask_plan(digest_controls, "model", "revision"),
        job=ask_job(make_controls_job, "model", "revision"),
    script:
        "../scripts/measure_controls.py"


rule gather_controls:
    """Gather the measures of null models over the checkpoints of one model."""
    input:
        ask_plan(list_control_files, "model"),
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
        code=lambda wildcards: digest_code("gather_tables"),
        job=ask_job(lambda: TablesJob("controls")),
    script:
        "../scripts/gather_tables.py"
