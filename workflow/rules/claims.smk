"""Verdicts on what the papers claim.

REQUIRED INPUTS: what the run has measured anyway, with groups of windows left out; a claim asks for no measurement.
OUTPUTS: <results>/claims/{paper}.csv and .md
STEPS: judge_claims, one job per paper. Claims are in workflow/papers/*/claims.yaml.
"""


rule judge_claims:
    """Judge the claims of one paper, by rules that were written down beforehand."""
    input:
        left_out=claimed_values,
        tables=claimed_tables,
        alphabet=CLEAN_CORPUS["alphabet"],
    output:
        csv="<results>/claims/{paper}.csv",
        markdown=report(
            "<results>/claims/{paper}.md",
            caption="../report/page.rst",
            category="Claims",
            labels=lambda wildcards: {"result": TITLES_OF_PAPERS[wildcards.paper]},
        ),
    log:
        "<logs>/claims/{paper}.log",
    benchmark:
        "<benchmarks>/claims/{paper}.tsv"
    wildcard_constraints:
        paper=any_of(CONFIGURATION.claims),
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    params:
        code=science("judge_claims"),
        title=lambda wildcards: TITLES_OF_PAPERS[wildcards.paper],
        claims=lambda wildcards: [vars(claim) for claim in claims_of(wildcards.paper)],
        models=lambda wildcards: [evidence_model(name) for name in CONFIGURATION.models],
        suspect_above=lambda wildcards: suspect_above(MEASURES),
    message:
        "Judging the claims of {wildcards.paper}"
    script:
        "../scripts/judge_claims.py"


rule claims:
    """Verdicts on the claims of all papers of the configuration."""
    input:
        all_claims,
