"""Claims under every combination of choices of the analysis: section `choices` of the configuration.

REQUIRED INPUTS: the texts and some checkpoints of the models that claims are on.
OUTPUTS:
    <results>/choices/{model}/{revision}.csv   the tidy table of a checkpoint, for every set of rows
    <results>/claims/choices.csv and .md       which choice flips which verdict
    <results>/figures/specification_{claim}.pdf, .png, .csv, .md
STEPS: measure_choices, one job per checkpoint and one forward pass per text; judge_choices. They are part of `all` if
    `choices.judged` is true, and a target, `choices`, in any case.
"""

from dataclasses import asdict

from shape_of_learning.plan.choice_settings import RunChoices

CHOICES = at_the_door(RunChoices, RUN)
# The folder of each text.
TEXTS = {
    text: f"<results>/corpus/{text}" if text in SETTINGS["corpus"]["sources"] else _CORPUS
    for text in SETTINGS["choices"]["text"]
}
all_choices = [
    *expand("<results>/claims/choices.{suffix}", suffix=("csv", "md")),
    *expand("<results>/figures/{figure}.{suffix}", figure=CHOICES.figures, suffix=FIGURE_SUFFIXES),
]


def measured_choices(wildcards):
    """The tables of all models and checkpoints."""
    return [
        f"<results>/choices/{model}/{revision}.csv"
        for model in CHOICES.models
        for revision in at_the_door(CHOICES.wanted_of, model)
    ]


def step_of(model, revision):
    return next(each.step for each in RUN.checkpoints(model) if each.name == revision)


def minutes_of_choices(work, threads):
    """One checkpoint, as often as there are sets of rows; of one vector per token type it is much less."""
    sets = len(CHOICES.settings.sets_of_rows())
    return needs.checkpoint_minutes(work, threads) * max(1, sets / 2)


rule measure_choices:
    """Run the windows of each text through a checkpoint, and measure all sets of rows."""
    input:
        texts=[f"{folder}/text.txt" for folder in TEXTS.values()],
        checkpoint=told(weights_input, "model", "revision"),
    output:
        "<results>/choices/{model}/{revision}.csv",
    log:
        "<logs>/choices/{model}/{revision}.log",
    benchmark:
        "<benchmarks>/choices/{model}/{revision}.tsv"
    conda:
        "../../envs/models.yaml"
    threads: forward_threads
    resources:
        **RUNNING,
        mem_mb=memory(needs.checkpoint_memory),
        runtime=minutes(minutes_of_choices),
    params:
        code=lambda wildcards: code_of_measures(
            "measure_checkpoint", CHOICES.measures_at(*wildcards)
        ),
        step=told(step_of, "model", "revision"),
        weights=told(RUN.weights, "model", "revision"),
        sample=told(sample, "model"),
        texts=list(TEXTS),
        measuring=lambda wildcards: {
            "measures": [each.for_jobs() for each in CHOICES.measures_at(*wildcards)],
            "protocol": MEASURING,
            "choices": [vars(rows) for rows in CHOICES.settings.sets_of_rows()],
        },
    message:
        "Measuring choices of {wildcards.model} at {wildcards.revision}"
    script:
        "../scripts/measure_checkpoint.py"


rule judge_choices:
    """Judge claims under all specifications, and draw their curves."""
    input:
        measured=measured_choices,
        verdicts=expand("<results>/tables/verdicts/{model}.csv", model=CHOICES.models),
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
                    labels={"result": CHOICES.figures[figure]},
                )
                if suffix == "png"
                else f"<results>/figures/{figure}.{suffix}"
            )
            for figure in CHOICES.figures
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
        code=code("judge_choices"),
        claims=[asdict(of) for of, _ in CHOICES.claims.values()],
        models=RUN.evidence_models(),
        suspect_above=suspect_above(CHOICES.measures),
        protocol=CHOICES.protocol(),
    message:
        "Judging claims under every specification"
    script:
        "../scripts/judge_choices.py"


rule choices:
    """Claims under every combination of choices."""
    input:
        all_choices,
