"""Claims under every combination of choices of the analysis: section `choices` of the configuration.

REQUIRED INPUTS: the texts and some checkpoints of the models that claims are on.
OUTPUTS:
    <results>/choices/{model}/{revision}.csv   the tidy table of a checkpoint, for every set of rows
    <results>/claims/choices.csv and .md       which choice flips which verdict
    <results>/figures/specification_{claim}.pdf, .png, .csv, .md
STEPS: measure_choices, one job per checkpoint and one forward pass per text; judge_choices. They are part of `all` if
    `choices.judged` is true, and a target, `choices`, in any case.
"""


rule measure_choices:
    """Run the windows of each text through a checkpoint, and measure all sets of rows."""
    input:
        texts=[f"{folder}/text.txt" for folder in CHOICE_TEXTS.values()],
        checkpoint=checkpoint_inputs,
    output:
        "<results>/choices/{model}/{revision}.csv",
    log:
        "<logs>/choices/{model}/{revision}.log",
    benchmark:
        "<benchmarks>/choices/{model}/{revision}.tsv"
    wildcard_constraints:
        model=any_of(MODELS),
    conda:
        "../../envs/models.yaml"
    threads: forward_threads
    resources:
        **SAMPLE_RESOURCES,
        mem_mb=choice_memory,
        runtime=choice_minutes,
    params:
        code=choice_science,
        step=choice_step,
        weights=weights,
        sample=sample_of_checkpoint,
        texts=list(CHOICE_TEXTS),
        choices=[vars(rows) for rows in CHOICE_SETTINGS.sets_of_rows()],
        measures=lambda wildcards: [each.for_jobs() for each in choice_measures(wildcards)],
        measuring=MEASURING,
    message:
        "Measuring choices of {wildcards.model} at {wildcards.revision}"
    script:
        "../scripts/measure_choices.py"


rule judge_choices:
    """Judge claims under all specifications, and draw their curves."""
    input:
        measured=measured_choices,
        verdicts=choice_verdicts,
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
        code=science("judge_choices"),
        claims=[asdict(of) for of, _ in CLAIMS_WITH_CHOICES.values()],
        models=[evidence_model(name) for name in CONFIGURATION.models],
        suspect_above=suspect_above(CHOICE_MEASURES),
        protocol=choice_protocol,
    message:
        "Judging claims under every specification"
    script:
        "../scripts/judge_choices.py"


rule choices:
    """Claims under every combination of choices."""
    input:
        all_choices,
