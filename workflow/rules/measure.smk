"""The measures of checkpoints, from files of their hidden states or in memory.

REQUIRED INPUTS: the cleaned text and a checkpoint.
OUTPUTS:
    <results>/embeddings/{model}/{revision}/layer_{layer}.h5   all tokens; layer 0 is the embedding output
    <results>/measurements/{model}/{revision}/{family}/layer_{layer}.csv
        The tidy table: for each estimator of the family a row per batch, and a row of the layer with jackknife values.
        Without hidden states on disk, the same tables are in <results>/measurements_in_memory/.
    <results>/losses/{model}/{revision}.csv              loss (nats per predicted token), predicted_tokens, vocabulary
    <results>/checkpoints/{model}/{revision}.tensors.csv type, shape and digest of each tensor of the weights
    <results>/weights/{model}/{revision}.csv             a value for each matrix and each measure of weights
    <results>/weight_points/{model}/{revision}.csv       entries of the vocabulary in a plane
    <results>/massive/{model}/{revision}.csv             massive tokens of each layer and their share of the variance
        Each of the last three has rows only if a figure or table reads it, or if `measurement.estimators` has a
        measure of weights.
STEPS: dump_embeddings once per checkpoint, then measure once per layer and family, whose measures share an expensive
    step: a neighbour search (dimension), spectra (spectrum), the fit of a block (linearity). With
    `embeddings.dump: false` measure_checkpoint does all of it in one job, which writes no hidden states.
"""

from shape_of_learning.embeddings.protocol import CheckpointJob, DumpJob
from shape_of_learning.metrics.measure_entry import FAMILIES, drop_labels_and_rules
from shape_of_learning.metrics.protocol import MeasureJob


def make_measure_job(model, revision, family, layer):
    """Make the job of a layer; refuse a layer that the model does not have."""
    layers = MODELS[model].shape.layers
    if int(layer) > layers:
        raise InputError(f"model `{model}` has the layers 0 to {layers}, and no layer {layer}")
    measures = drop_labels_and_rules(RUN.list_measures(model, revision, family))
    return MeasureJob(int(layer), layers, family, measures, make_measuring_protocol(model))


def make_dump_job(model, revision):
    return DumpJob(
        RUN.describe_weights(model, revision),
        make_sampling_protocol(model),
        RUN.make_matrix_protocol(model, revision),
    )


def make_checkpoint_job(model, revision):
    return CheckpointJob(
        RUN.describe_weights(model, revision),
        make_sampling_protocol(model),
        RUN.make_matrix_protocol(model, revision),
        drop_labels_and_rules(RUN.list_measures(model, revision)),
        make_measuring_protocol(model),
    )


def digest_family(model, revision, family):
    return digest_measures("measure", RUN.list_measures(model, revision, family))


def digest_checkpoint(model, revision):
    measures = [*RUN.list_measures(model, revision), *WEIGHT_MEASURES]
    return digest_measures("measure_checkpoint", measures)


if SETTINGS.embeddings.dump:

    rule dump_embeddings:
        """Run the sampled windows through one checkpoint, store every layer and measure its loss.

        The job also compares the weights with the record of their download, and digests their tensors.
        """
        input:
            **CLEAN_CORPUS,
            checkpoint=ask_plan(list_weights_input, "model", "revision"),
        output:
            **CHECKPOINT_TABLE_FILES,
            embeddings=mark_temporary(
                directory("<results>/embeddings/{model}/{revision}"),
                SETTINGS.embeddings.keep,
            ),
            loss="<results>/losses/{model}/{revision}.csv",
            tensors="<results>/checkpoints/{model}/{revision}.tensors.csv",
        log:
            "<logs>/embeddings/{model}/{revision}.log",
        benchmark:
            "<benchmarks>/embeddings/{model}/{revision}.tsv"
        priority: 1
        conda:
            "../../envs/models.yaml"
        threads: count_forward_threads
        resources:
            **RUNTIME_RESOURCES,
            **request_resources(needs.estimate_forward),
        params:
            code=exit_on_input_error(digest_measures, "dump_embeddings", WEIGHT_MEASURES),
            job=ask_job(make_dump_job, "model", "revision"),
        script:
            "../scripts/dump_embeddings.py"

    rule measure:
        """Measure one layer with all estimators of a family that the run has for the checkpoint."""
        input:
            embeddings="<results>/embeddings/{model}/{revision}",
        output:
            "<results>/measurements/{model}/{revision}/{family}/layer_{layer}.csv",
        log:
            "<logs>/measurements/{model}/{revision}/{family}/layer_{layer}.log",
        benchmark:
            "<benchmarks>/measurements/{model}/{revision}/{family}/layer_{layer}.tsv"
        wildcard_constraints:
            family=match_any(FAMILIES),
        priority: 2
        conda:
            "../../envs/metrics.yaml"
        resources:
            **request_resources(needs.estimate_layer),
        params:
            code=ask_plan(digest_family, "model", "revision", "family"),
            job=ask_job(make_measure_job, "model", "revision", "family", "layer"),
        script:
            "../scripts/measure.py"

else:

    rule measure_checkpoint:
        """Run the sampled windows through one checkpoint and measure all layers in memory."""
        input:
            **CLEAN_CORPUS,
            checkpoint=ask_plan(list_weights_input, "model", "revision"),
        output:
            **CHECKPOINT_TABLE_FILES,
            measurements=directory("<results>/measurements_in_memory/{model}/{revision}"),
            loss="<results>/losses/{model}/{revision}.csv",
            tensors="<results>/checkpoints/{model}/{revision}.tensors.csv",
        log:
            "<logs>/measurements/{model}/{revision}.log",
        benchmark:
            "<benchmarks>/measurements/{model}/{revision}.tsv"
        priority: 1
        conda:
            "../../envs/models.yaml"
        threads: count_forward_threads
        resources:
            **RUNTIME_RESOURCES,
            **request_resources(needs.estimate_checkpoint),
        params:
            code=ask_plan(digest_checkpoint, "model", "revision"),
            job=ask_job(make_checkpoint_job, "model", "revision"),
        script:
            "../scripts/measure_checkpoint.py"
