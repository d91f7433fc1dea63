"""Verdicts on what the papers claim, in workflow/papers/*/claims.yaml, and under all combinations of choices.

REQUIRED INPUTS: what the run has measured anyway; for section `choices`, the texts and some checkpoints.
OUTPUTS:
    <results>/claims/{paper}.csv and .md       verdicts
    <results>/claims/family.csv and .md        all of them as one family
    <results>/choices/{model}/{revision}.csv   the tidy table of a checkpoint, for every set of rows
    <results>/claims/choices.csv and .md, <results>/figures/specification_{claim}.pdf, .png, .csv, .md
STEPS: judge_claims, one job per paper, and gather_claims; measure_choices, one per checkpoint, a forward pass per text; judge_choices.
    The last two are part of `all` if `choices.judged` is true, and a target, `choices`, in any case.
"""

from dataclasses import replace

from shape_of_learning.claims.claim import ClaimsJob, SpecificationsJob
from shape_of_learning.embeddings.protocol import ChoicesJob
from shape_of_learning.metrics.measure_entry import strip_presentation
from shape_of_learning.plan.specifications import RunGrid
from shape_of_learning.plan.jobs import describe_sample

CLAIMS = RUN.claims
TITLES = {paper.name: paper.title for paper in RUN.papers}
CHOICES: RunGrid = exit_on_input_error(RunGrid, RUN)
# The folder of each text.
TEXTS = {
    text: f"<results>/corpus/{text}" if text in SETTINGS["corpus"]["sources"] else _CORPUS
    for text in SETTINGS["choices"]["text"]
}
all_claims = expand("<results>/claims/{paper}.{suffix}", paper=CLAIMS, suffix=("csv", "md"))
if CLAIMS:
    all_claims += expand("<results>/claims/family.{suffix}", suffix=("csv", "md"))
all_choices = [
    *expand("<results>/claims/choices.{suffix}", suffix=("csv", "md")),
    *expand("<results>/figures/{figure}.{suffix}", figure=CHOICES.figures, suffix=FIGURE_SUFFIXES),
]


def list_statistics(papers):
    """List the modules of papers that have statistics of their own."""
    files = [WORKFLOW / f"papers/{paper}/statistics.py" for paper in papers]
    return [f"papers.{file.parent.name}.statistics" for file in files if file.exists()]


def make_claims_job(paper):
    return ClaimsJob(
        title=TITLES[paper],
        claims=tuple(CLAIMS[paper].values()),
        models=RUN.list_evidence_models(),
        suspect_above=collect_suspect_limits(RUN.measures),
    )


rule judge_claims:
    """Judge the claims of one paper, by the rules of its claims.yaml."""
    input:
        left_out=lambda wildcards: expand(
            "<results>/tables/left_out/{model}.csv", model=RUN.list_claimed_models(wildcards.paper)
        ),
        tables=lambda wildcards: list_paths(
            "<results>/tables/{kind}/{model}.csv", RUN.list_claimed_tables(wildcards.paper)
        ),
        controls=lambda wildcards: expand(
            "<results>/tables/controls/{model}.csv",
            model=[
                m
                for m in RUN.list_controlled_models()
                if m in RUN.list_claimed_models(wildcards.paper)
            ],
        ),
    output:
        csv="<results>/claims/{paper}.csv",
        markdown=list_in_report(
            "<results>/claims/{paper}.md",
            "Claims",
            "page",
            lambda wildcards: {"result": TITLES[wildcards.paper]},
        ),
    log:
        "<logs>/claims/{paper}.log",
    benchmark:
        "<benchmarks>/claims/{paper}.tsv"
    wildcard_constraints:
        paper=match_any(CLAIMS),
    localrule: True
    conda:
        "../../envs/figures.yaml"
    params:
        code=lambda wildcards: digest_code("judge_claims", *list_statistics([wildcards.paper])),
        job=ask_job(make_claims_job, "paper"),
    script:
        "../scripts/judge_claims.py"


rule gather_claims:
    """Say how many of the verdicts on all claims may be false."""
    input:
        expand("<results>/claims/{paper}.csv", paper=CLAIMS),
    output:
        csv="<results>/claims/family.csv",
        markdown=list_in_report("<results>/claims/family.md", "Claims", "page"),
    log:
        "<logs>/claims/family.log",
    benchmark:
        "<benchmarks>/claims/family.tsv"
    localrule: True
    conda:
        "../../envs/figures.yaml"
    params:
        code=lambda wildcards: digest_code("gather_claims"),
    script:
        "../scripts/gather_claims.py"


def list_measured_choices(wildcards):
    return [
        f"<results>/choices/{model}/{revision}.csv"
        for model in CHOICES.models
        for revision in exit_on_input_error(CHOICES.list_estimators, model)
    ]


def make_choices_job(model, revision):
    sampling = make_sampling_protocol(model)
    return ChoicesJob(
        make_weights(model, revision),
        RUN.find_checkpoint(model, revision).step,
        texts=tuple(TEXTS),
        sampling=replace(sampling, last_layer="both"),
        measures=strip_presentation(CHOICES.list_measures(model, revision)),
        protocol=make_measuring_protocol(model),
        variants=tuple(CHOICES.settings.list_row_sets()),
    )


def digest_choices(model, revision):
    return digest_measures("measure_choices", CHOICES.list_measures(model, revision))


def estimate_choices(*job):
    """One checkpoint, as often as there are sets of rows; of one vector per token type it is much less."""
    one, sets = needs.estimate_checkpoint(*job), len(CHOICES.settings.list_row_sets())
    return one._replace(minutes=one.minutes * max(1, sets / 2))


rule measure_choices:
    """Run the windows of each text through a checkpoint, and measure all sets of rows."""
    input:
        texts=[f"{folder}/text.txt" for folder in TEXTS.values()],
        checkpoint=ask_plan(weights_input, "model", "revision"),
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
        **RUNTIME_PARAMS,
        **request_resources(estimate_choices),
    params:
        code=ask_plan(digest_choices, "model", "revision"),
        job=ask_job(make_choices_job, "model", "revision"),
    script:
        "../scripts/measure_choices.py"


def make_specifications_job():
    models = [RUN.models[name] for name in CHOICES.models]
    return SpecificationsJob(
        grids=CHOICES.list_grids(),
        models=RUN.list_evidence_models(),
        suspect_above=collect_suspect_limits(CHOICES.measures),
        sample=describe_sample(models, SETTINGS),
    )


rule judge_choices:
    """Judge claims under all specifications, and draw their curves."""
    input:
        measured=list_measured_choices,
        verdicts=expand("<results>/tables/verdicts/{model}.csv", model=CHOICES.models),
    output:
        matrix="<results>/claims/choices.csv",
        page=list_in_report("<results>/claims/choices.md", "Claims", "page"),
        curves=[
            list_in_report(
                f"<results>/figures/{figure}.png", "Claims", "specification", {"result": title}
            )
            for figure, title in CHOICES.figures.items()
        ],
        beside_curves=expand(
            "<results>/figures/{figure}.{suffix}",
            figure=CHOICES.figures,
            suffix=[suffix for suffix in FIGURE_SUFFIXES if suffix != "png"],
        ),
    log:
        "<logs>/claims/choices.log",
    benchmark:
        "<benchmarks>/claims/choices.tsv"
    localrule: True
    conda:
        "../../envs/figures.yaml"
    params:
        code=lambda wildcards: digest_code("judge_choices", *list_statistics(CLAIMS)),
        job=ask_job(make_specifications_job),
    script:
        "../scripts/judge_choices.py"


rule claims:
    """Verdicts on the claims of all papers of the configuration."""
    input:
        all_claims,


rule choices:
    """Claims under every combination of choices."""
    input:
        all_choices,
