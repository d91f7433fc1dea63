"""All results in one page.

REQUIRED INPUTS: the table of estimates, others of which it shows curves, the verdicts on checkpoints and on claims.
OUTPUTS:
    <results>/explorer.html     one file, to be opened by a browser as it is
STEPS: draw_explorer, and the target `explorer`.
"""


rule draw_explorer:
    """Put all results into one page that needs no server and no network."""
    input:
        estimates="<results>/tables/estimates.csv",
        verdicts=explorer_verdicts,
        further=explorer_further,
        claims=explorer_claims,
    output:
        report(
            EXPLORER,
            caption="../report/explorer.rst",
            category="Explorer",
            labels={"result": NAMES_OF_RESULTS["explorer"]},
        ),
    log:
        "<logs>/explorer.log",
    benchmark:
        "<benchmarks>/explorer.tsv"
    localrule: True
    conda:
        "../../envs/explorer.yaml"
    params:
        science=science("draw_explorer"),
        page=digest_of_page(),
        description=explorer_description,
        further=lambda wildcards, input: named_by_kind(input.further),
    message:
        "Drawing {output}"
    shell:
        'python "$SCRIPTS/draw_explorer.py" --description {params.description:q} --estimates {input.estimates:q}'
        " --verdicts {input.verdicts:q} --further {params.further:q} --claims {input.claims:q} --output {output:q} --log {log:q}"


rule explorer:
    """The explorer."""
    input:
        EXPLORER,
