"""Hidden states of all layers, and the loss that says whether the checkpoint is one.

REQUIRED INPUTS: the cleaned text and a checkpoint.
OUTPUTS:
    <results>/embeddings/{model}/{revision}/layer_{layer}.h5   layer 0 is the embedding output
    <results>/losses/{model}/{revision}.csv   loss (nats per predicted token), predicted_tokens, vocabulary
STEPS: dump_embeddings, one forward pass per checkpoint.
"""


rule dump_embeddings:
    """Run the sampled windows through one checkpoint, store every layer and measure its loss."""
    input:
        checkpoint=checkpoint_inputs,
        text=CLEAN_TEXT,
        script=script("dump_embeddings"),
        library=dump_library(),
    output:
        embeddings=unless_kept(directory("<results>/embeddings/{model}/{revision}")),
        loss="<results>/losses/{model}/{revision}.csv",
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
    params:
        checkpoint=checkpoint_folder,
        role=model_role,
        widths=hidden_state_widths,
        precision=forward_precision,
        last_layer=setting("forward", "last_layer"),
        batch_size=setting("forward", "batch_size"),
        dtype=setting("embeddings", "dtype"),
        windows=setting("sampling", "windows"),
        window_characters=setting("sampling", "window_characters"),
        special_tokens=setting("sampling", "special_tokens"),
        first_token=setting("sampling", "first_token"),
        seed=CONFIGURATION.settings["seed"],
    message:
        "Dumping hidden states of {wildcards.model} at {wildcards.revision}"
    shell:
        "python {input.script:q} --checkpoint {params.checkpoint:q} --text {input.text:q}"
        " --model {wildcards.model} --revision {wildcards.revision} --role {params.role} --widths {params.widths}"
        " --windows {params.windows} --window-characters {params.window_characters}"
        " --special-tokens {params.special_tokens} --first-token {params.first_token}"
        " --precision {params.precision} --last-layer {params.last_layer}"
        " --batch-size {params.batch_size} --dtype {params.dtype}"
        " --seed {params.seed} --threads {threads} --output {output.embeddings:q}"
        " --loss {output.loss:q} --log {log:q}"
