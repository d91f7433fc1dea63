"""Verdicts on what the papers claim.

REQUIRED INPUTS: what the run has measured anyway, with groups of windows left out; a claim asks for no measurement.
OUTPUTS: <results>/claims/{paper}.csv and .md
STEPS: judge_claims, one job per paper. Claims are in workflow/papers/*/claims.yaml.
"""

CLAIMS = RUN.claims
TITLES = {paper.name: paper.title for paper in RUN.papers}
all_claims = expand("<results>/claims/{paper}.{suffix}", paper=CLAIMS, suffix=("csv", "md"))


rule judge_claims:
    """Judge the claims of one paper, by rules that were written down beforehand."""
    input:
        left_out=lambda wildcards: expand(
            "<results>/tables/left_out/{model}.csv", model=RUN.claimed_models(wildcards.paper)
        ),
        tables=lambda wildcards: paths(
            "<results>/tables/{kind}/{model}.csv", RUN.claimed_tables(wildcards.paper)
        ),
        alphabet=CLEAN_CORPUS["alphabet"],
    output:
        csv="<results>/claims/{paper}.csv",
        markdown=report(
            "<results>/claims/{paper}.md",
            caption="../report/page.rst",
            category="Claims",
            labels=lambda wildcards: {"result": TITLES[wildcards.paper]},
        ),
    log:
        "<logs>/claims/{paper}.log",
    benchmark:
        "<benchmarks>/claims/{paper}.tsv"
    wildcard_constraints:
        paper=any_of(CLAIMS),
    localrule: True
    conda:
        "../../envs/figures.yaml"
    params:
        code=code("judge_claims"),
        title=lambda wildcards: TITLES[wildcards.paper],
        claims=lambda wildcards: [vars(claim) for claim in CLAIMS[wildcards.paper].values()],
        models=RUN.evidence_models(),
        suspect_above=suspect_above(RUN.measures),
    message:
        "Judging the claims of {wildcards.paper}"
    script:
        "../scripts/judge_claims.py"


rule claims:
    """Verdicts on the claims of all papers of the configuration."""
    input:
        all_claims,
