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
        science=science("judge_claims", *STATISTICS),
        title=lambda wildcards: TITLES_OF_PAPERS[wildcards.paper],
        claims=claims_of_paper,
        models=models_of_claims,
        suspect_above=suspect_above,
        tables=lambda wildcards, input: named_by_kind(input.tables),
        # Of digests of weights, which are there where the values are.
        checkpoints=own_path("<results>/checkpoints"),
    message:
        "Judging the claims of {wildcards.paper}"
    shell:
        'python "$SCRIPTS/judge_claims.py" --title {params.title:q} --claims {params.claims:q}'
        " --models {params.models:q} --suspect-above {params.suspect_above:q} --left-out {input.left_out:q}"
        " --tables {params.tables:q} --places {params.checkpoints:q} {input.alphabet:q} --output {output:q} --log {log:q}"


rule claims:
    """Verdicts on the claims of all papers of the configuration."""
    input:
        all_claims,
