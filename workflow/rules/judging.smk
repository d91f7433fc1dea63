"""Verdicts on the claims in workflow/papers/*/claims.yaml, by the rules there and under all combinations of choices.

REQUIRED INPUTS: the tables of the run; for section `choices`, the texts and some checkpoints.
OUTPUTS:
    <results>/claims/{paper}.csv and .md       the verdicts on the claims of a paper
    <results>/claims/family.csv and .md        the verdicts on the claims of all papers as one family
    <results>/choices/{model}/{revision}.csv   the tidy table of a checkpoint, for every sample variant
    <results>/figures/specification_{claim}.pdf, .png, .csv, .md   the specification curve of a claim
    <results>/claims/choices/{claim}.csv       the choices that flip the verdict on a claim
    <results>/claims/choices.csv and .md       the choices that flip verdicts, of all claims
STEPS: judge_claims, one job per paper, and gather_claims; measure_choices, one job per checkpoint, with a forward pass
    per text; judge_choices, one job per claim, and gather_choices. The target `choices` runs the last three; so does
    `all` if `choices.judged` is true. Other targets do not plan choices.
"""

from dataclasses import replace

from shape_of_learning.claims.claim import ClaimsJob, SpecificationsJob
from shape_of_learning.embeddings.protocol import ChoicesJob
from shape_of_learning.metrics.measure_entry import drop_labels_and_rules
from shape_of_learning.plan.choices import RunGrid
from shape_of_learning.plan.jobs import describe_sampling

CLAIMS = RUN.claims
TITLES = {paper.name: paper.title for paper in RUN.papers}
all_claims = expand("<results>/claims/{paper}.{suffix}", paper=CLAIMS, suffix=("csv", "md"))
if CLAIMS:
    all_claims += expand("<results>/claims/family.{suffix}", suffix=("csv", "md"))


def list_statistics(papers):
    """List the statistics modules of papers."""
    files = [WORKFLOW / f"papers/{paper}/statistics.py" for paper in papers]
    return [f"papers.{file.parent.name}.statistics" for file in files if file.exists()]


def make_claims_job(paper):
    return ClaimsJob(
        title=TITLES[paper],
        claims=tuple(CLAIMS[paper].values()),
        models=RUN.list_evidence_models(),
        near_duplicate_limits=collect_near_duplicate_limits(RUN.measures),
    )


rule judge_claims:
    """Judge the claims of one paper, by the rules of its claims.yaml."""
    input:
        jackknife=lambda wildcards: expand(
            "<results>/tables/jackknife/{model}.csv",
            model=RUN.list_claimed_models(wildcards.paper),
        ),
        tables=lambda wildcards: list_table_files(RUN.list_claimed_tables(wildcards.paper)),
        controls=lambda wildcards: expand(
            "<results>/tables/controls/{model}.csv",
            model=[
                model
                for _, model in RUN.list_tables_read(["controls"])
                if model in RUN.list_claimed_models(wildcards.paper)
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
    """Estimate how many of the verdicts on all claims may be false."""
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


@cache
def plan_choices() -> RunGrid:
    """Plan the specifications of all claims, when a rule first asks for them."""
    return RunGrid(RUN)


def list_choice_results():
    """List the specification curves of claims, and the table and page of the choices that flip verdicts."""
    return [
        *expand("<results>/claims/choices.{suffix}", suffix=("csv", "md")),
        *expand(
            "<results>/figures/specification_{claim}.{suffix}",
            claim=plan_choices().claims,
            suffix=FIGURE_SUFFIXES,
        ),
    ]


def name_specification(claim):
    """Name the specification curve of a claim for readers."""
    return f"Specification: {claim.replace('_', ' ')}"


def list_texts():
    """List the file of each text; a text that is no source of the corpus is read from the corpus of the run."""
    plan_choices()  # this refuses an unknown text
    sources = SETTINGS.corpus.sources
    return [
        f"<results>/corpus/{text}/text.txt" if text in sources else CLEAN_CORPUS["text"]
        for text in dict.fromkeys(SETTINGS.choices.text)
    ]


def list_choice_measurements():
    """List the tables of all checkpoints, since a claim may read models that only another claim needs."""
    choices = plan_choices()
    return [
        f"<results>/choices/{model}/{revision}.csv"
        for model in choices.models
        for revision in choices.list_estimators(model)
    ]


def make_choices_job(model, revision):
    sampling = make_sampling_protocol(model)
    return ChoicesJob(
        RUN.describe_weights(model, revision),
        RUN.find_checkpoint(model, revision).step,
        texts=tuple(dict.fromkeys(SETTINGS.choices.text)),
        sampling=replace(sampling, last_layer="both"),
        measures=drop_labels_and_rules(plan_choices().list_measures(model, revision)),
        protocol=make_measuring_protocol(model),
        variants=tuple(plan_choices().grid.list_sample_variants()),
    )


def digest_choices(model, revision):
    return digest_measures("measure_choices", plan_choices().list_measures(model, revision))


def estimate_choices(*job):
    """Estimate the needs of a checkpoint that is measured in every sample variant.

    The time is half of that of as many measurements, since one vector per token type takes much less time.
    """
    variants = len(plan_choices().grid.list_sample_variants())
    checkpoint_needs = needs.estimate_checkpoint(*job)
    return checkpoint_needs._replace(minutes=checkpoint_needs.minutes * max(1, variants / 2))


rule measure_choices:
    """Run the windows of each text through a checkpoint, and measure all sample variants."""
    input:
        texts=ask_plan(list_texts),
        checkpoint=ask_plan(list_weights_input, "model", "revision"),
    output:
        "<results>/choices/{model}/{revision}.csv",
    log:
        "<logs>/choices/{model}/{revision}.log",
    benchmark:
        "<benchmarks>/choices/{model}/{revision}.tsv"
    conda:
        "../../envs/models.yaml"
    threads: count_forward_threads
    resources:
        **RUNTIME_RESOURCES,
        **request_resources(estimate_choices),
    params:
        code=ask_plan(digest_choices, "model", "revision"),
        job=ask_job(make_choices_job, "model", "revision"),
    script:
        "../scripts/measure_choices.py"


def make_specifications_job(claim):
    choices = plan_choices()
    return SpecificationsJob(
        grid=choices.make_grid(claim),
        models=RUN.list_evidence_models(),
        near_duplicate_limits=collect_near_duplicate_limits(choices.measures),
        sample=describe_sampling([RUN.models[name] for name in choices.models], SETTINGS),
    )


rule judge_choices:
    """Judge a claim under all specifications, and draw its specification curve."""
    input:
        measurements=ask_plan(list_choice_measurements),
        verdicts=ask_plan(
            lambda: expand("<results>/tables/verdicts/{model}.csv", model=plan_choices().models)
        ),
    output:
        flips="<results>/claims/choices/{claim}.csv",
        pdf="<results>/figures/specification_{claim}.pdf",
        png=list_in_report(
            "<results>/figures/specification_{claim}.png",
            "Claims",
            "figure",
            lambda wildcards: {"result": name_specification(wildcards.claim)},
        ),
        csv="<results>/figures/specification_{claim}.csv",
        markdown="<results>/figures/specification_{claim}.md",
    log:
        "<logs>/claims/choices/{claim}.log",
    benchmark:
        "<benchmarks>/claims/choices/{claim}.tsv"
    wildcard_constraints:
        claim=match_any(claim for claims in CLAIMS.values() for claim in claims),
    localrule: True
    conda:
        "../../envs/figures.yaml"
    params:
        code=lambda wildcards: digest_code("judge_choices", *list_statistics(CLAIMS)),
        job=ask_job(make_specifications_job, "claim"),
    script:
        "../scripts/judge_choices.py"


rule gather_choices:
    """Gather the choices that flip the verdicts on all claims."""
    input:
        ask_plan(
            lambda: expand("<results>/claims/choices/{claim}.csv", claim=plan_choices().claims)
        ),
    output:
        csv="<results>/claims/choices.csv",
        markdown=list_in_report("<results>/claims/choices.md", "Claims", "page"),
    log:
        "<logs>/claims/choices.log",
    benchmark:
        "<benchmarks>/claims/choices.tsv"
    localrule: True
    conda:
        "../../envs/figures.yaml"
    params:
        code=lambda wildcards: digest_code("gather_choices"),
    script:
        "../scripts/gather_choices.py"


rule claims:
    """Judge the claims of all papers of the configuration."""
    input:
        all_claims,


rule choices:
    """Judge claims under every combination of choices."""
    input:
        ask_plan(list_choice_results),
