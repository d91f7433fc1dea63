"""Hidden states of all layers, and the loss that says whether the checkpoint is one.

REQUIRED INPUTS: the cleaned text and a checkpoint.
OUTPUTS:
    <results>/embeddings/{model}/{revision}/layer_{layer}.h5   all tokens; layer 0 is the embedding output
    <results>/losses/{model}/{revision}.csv   loss (nats per predicted token), predicted_tokens, vocabulary
    <results>/checkpoints/{model}/{revision}.tensors.csv      type, shape and digest of each tensor of the weights
    <results>/weights/{model}/{revision}.csv          one value per matrix of the model and estimator of weights
    <results>/weight_points/{model}/{revision}.csv    where entries of the vocabulary lie; both where figures read them
STEPS: dump_embeddings, one forward pass per checkpoint.
"""


rule dump_embeddings:
    """Run the sampled windows through one checkpoint, store every layer and measure its loss.

    The weights are read once more for it, compared with what came and digested tensor by tensor.
    """
    input:
        **CLEAN_CORPUS,
        checkpoint=checkpoint_inputs,
    output:
        **WEIGHT_FILES,
        embeddings=unless_kept(directory("<results>/embeddings/{model}/{revision}")),
        loss="<results>/losses/{model}/{revision}.csv",
        tensors="<results>/checkpoints/{model}/{revision}.tensors.csv",
    log:
        "<logs>/embeddings/{model}/{revision}.log",
    benchmark:
        "<benchmarks>/embeddings/{model}/{revision}.tsv"
    wildcard_constraints:
        model=any_of(MODELS),
    conda:
        "../../envs/models.yaml"
    threads: forward_threads
    resources:
        **SAMPLE_RESOURCES,
        mem_mb=forward_memory,
        runtime=forward_minutes,
    params:
        code=[science("dump_embeddings"), *WEIGHT_SCIENCE],
        weights=weights,
        sample=sample_of_checkpoint,
        matrices=measured_matrices,
    message:
        "Dumping hidden states of {wildcards.model} at {wildcards.revision}"
    script:
        "../scripts/dump_embeddings.py"
