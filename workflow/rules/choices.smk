"""Claims under every combination of choices of the analysis: section `choices` of the configuration.

REQUIRED INPUTS: the texts and some checkpoints of the models that claims are on.
OUTPUTS:
    <results>/choices/{model}/{part}.csv   values of some checkpoints for every set of rows, with values without
                                           each group of windows
    <results>/claims/choices.csv and .md   which choice flips which verdict
    <results>/figures/specification_{claim}.pdf, .png, .csv, .md
STEPS: measure_choices, one forward pass per checkpoint and text; judge_choices. They are part of `all` if
    `choices.judged` is true, and a target, `choices`, in any case.
"""


rule measure_choices:
    """Run the windows of each text through some checkpoints, and measure all sets of rows."""
    input:
        texts=[ancient(f"{folder}/text.txt") for folder in CHOICE_TEXTS.values()],
        alphabets=[f"{folder}/alphabet.json" for folder in CHOICE_TEXTS.values()],
        checkpoints=of_part(checkpoint_inputs),
    output:
        "<results>/choices/{model}/{part}.csv",
    log:
        "<logs>/choices/{model}/{part}.log",
    benchmark:
        "<benchmarks>/choices/{model}/{part}.tsv"
    wildcard_constraints:
        model=any_of(MODELS),
        part=r"\d+",
    conda:
        "../../envs/models.yaml"
    threads: forward_threads
    resources:
        mem_mb=choice_memory,
        runtime=choice_minutes,
        gpu=forward_gpus,
        nodes=1,
    params:
        checkpoints=choice_checkpoints,
        weights=lambda wildcards: [weights(c) for c in checkpoints_of_part(wildcards)],
        texts=choice_texts,
        protocol=sampling_protocol,
        shape=model_shape,
        wanted=choice_wanted,
        science=choice_science,
    message:
        "Measuring choices of {wildcards.model}, part {wildcards.part}"
    shell:
        # Each layer is measured by one thread, which must not start others.
        "export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1; "
        'python "$SCRIPTS/measure_choices.py" --model {wildcards.model:q} --checkpoints {params.checkpoints:q}'
        " --texts {params.texts:q} --protocol {params.protocol:q} --shape {params.shape:q} --threads {threads:q}"
        " --wanted {params.wanted:q} --output {output:q} --log {log:q}"


rule judge_choices:
    """Judge claims under all specifications, and draw their curves."""
    input:
        measured=measured_choices,
        verdicts=choice_verdicts,
        alphabet=CLEAN_CORPUS["alphabet"],
    output:
        matrix="<results>/claims/choices.csv",
        page=report(
            "<results>/claims/choices.md",
            caption="../report/page.rst",
            category="Claims",
            labels={"result": NAMES_OF_RESULTS["claims/choices"]},
        ),
        figures=[
            (
                report(
                    f"<results>/figures/{figure}.png",
                    caption="../report/specification.rst",
                    category="Claims",
                    labels={"result": NAMES_OF_RESULTS[f"figures/{figure}"]},
                )
                if suffix == "png"
                else f"<results>/figures/{figure}.{suffix}"
            )
            for figure in CHOICE_FIGURES
            for suffix in FIGURE_SUFFIXES
        ],
    log:
        "<logs>/claims/choices.log",
    benchmark:
        "<benchmarks>/claims/choices.tsv"
    localrule: True
    conda:
        "../../envs/figures.yaml"
    params:
        science=science("judge_choices", *STATISTICS),
        judged=judged_choices,
        # Of digests of weights, which are there where the run has measured.
        checkpoints=own_path("<results>/checkpoints"),
    message:
        "Judging claims under every specification"
    shell:
        'python "$SCRIPTS/judge_choices.py" --judged {params.judged:q} --measured {input.measured:q}'
        " --verdicts {input.verdicts:q} --places {params.checkpoints:q} {input.alphabet:q} --matrix {output.matrix:q} --page {output.page:q}"
        " --figures {output.figures:q} --log {log:q}"


rule choices:
    """Claims under every combination of choices."""
    input:
        all_choices,
