"""Hidden states of all layers, and the loss that says whether the checkpoint is one.

REQUIRED INPUTS: the cleaned text and a checkpoint.
OUTPUTS:
    <results>/embeddings/{model}/{revision}/layer_{layer}.h5   all tokens; layer 0 is the embedding output
    <results>/embeddings/{model}/{revision}/weights.h5         the model's own matrices: embeddings and final norm
    <results>/losses/{model}/{revision}.csv   loss (nats per predicted token), predicted_tokens, vocabulary
    <results>/checkpoints/{model}/{revision}.tensors.csv      type, shape and digest of each tensor of the weights
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
        mem_mb=forward_memory,
        runtime=forward_minutes,
        gpu=forward_gpus,
        # All of its GPUs on one.
        nodes=1,
    params:
        **SAMPLE_PARAMETERS,
        science=science("dump_embeddings", "embeddings.model_weights"),
    message:
        "Dumping hidden states of {wildcards.model} at {wildcards.revision}"
    shell:
        'python "$SCRIPTS/dump_embeddings.py" --checkpoint {params.checkpoint:q} {params.receipt:q} --text {input.text:q}'
        " --model {wildcards.model:q} --revision {wildcards.revision:q}"
        " --protocol {params.protocol:q} --shape {params.shape:q} --threads {threads:q}"
        " --output {output.embeddings:q} --loss {output.loss:q} --tensors {output.tensors:q} --log {log:q}"
