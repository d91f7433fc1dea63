"""All results on one page.

REQUIRED INPUTS: the table of estimates, other tables with curves, the verdicts on checkpoints and on claims; and, if
choices of the analysis are judged, the choices that flip verdicts and the specification curves of all claims.
OUTPUTS:
    <results>/findings.txt      findings on the models that were not trained here, or else on all models, a sentence
                                per line
    <results>/explorer.html     the page, one file for a browser
STEPS: write_findings, draw_explorer, and the target `explorer`.
"""

import os

from shape_of_learning.explorer.explorer_page import KINDS, VERDICTS, digest_page

EXPLORER = "<results>/explorer.html"
FINDINGS = "<results>/findings.txt"
LAST_RULES = ("write_findings", "draw_explorer")  # their results are shown at the end of a run


def list_explorer_tables():
    """List the tables with curves that the page shows, apart from estimates and verdicts."""
    kinds = {**KINDS, **plan_jobs.collect_curves(RUN.papers)}
    tables = RUN.list_tables_read(kind for kind in kinds if kind != VERDICTS)
    return list_table_files(tables)


def list_choice_tables():
    """List the table of flipped verdicts and the specification curves of claims; empty if choices are not judged."""
    if not SETTINGS.choices.judged:
        return []
    claims = plan_choices().claims
    curves = expand("<results>/figures/specification_{claim}.csv", claim=claims)
    return ["<results>/claims/choices.csv", *curves]


rule write_findings:
    """Write findings on the last checkpoints of the models that were not trained here, or else of all models."""
    input:
        "<results>/tables/estimates.csv",
    output:
        FINDINGS,
    log:
        "<logs>/findings.log",
    benchmark:
        "<benchmarks>/findings.tsv"
    localrule: True
    conda:
        "../../envs/metrics.yaml"
    params:
        code=lambda wildcards: digest_code("write_findings"),
        job=ask_job(lambda: plan_jobs.make_findings_job(RUN)),
    script:
        "../scripts/write_findings.py"


rule draw_explorer:
    """Put all results on one page that needs no server and no network."""
    input:
        estimates="<results>/tables/estimates.csv",
        findings=FINDINGS,
        verdicts=expand("<results>/tables/verdicts/{model}.csv", model=RUN.measured_models),
        tables=ask_plan(list_explorer_tables),
        claims=expand("<results>/claims/{paper}.csv", paper=CLAIMS),
        choices=ask_plan(list_choice_tables),
    output:
        list_in_report(EXPLORER, "Explorer", "explorer"),
    log:
        "<logs>/explorer.log",
    benchmark:
        "<benchmarks>/explorer.tsv"
    localrule: True
    conda:
        "../../envs/explorer.yaml"
    params:
        code=lambda wildcards: digest_code("draw_explorer"),
        page=lambda wildcards: digest_page(),
        job=ask_job(lambda: plan_jobs.make_explorer_job(RUN)),
    script:
        "../scripts/draw_explorer.py"


rule explorer:
    """Make the explorer."""
    input:
        EXPLORER,


def show_findings(jobs):
    """Print the findings and the path of the explorer, if the targets of the run needed findings."""
    outputs = {job.rule.name: job.output[0] for job in jobs if job.rule.name in LAST_RULES}
    if "write_findings" not in outputs or os.environ.get("FINDINGS") == "later":  # make sets it
        return
    if not Path(outputs["write_findings"]).exists():  # after --touch
        return
    logger.info(f"\n{Path(outputs['write_findings']).read_text(encoding='utf-8')}")
    if "draw_explorer" in outputs:
        logger.info(f"In one page, for a browser: {outputs['draw_explorer']}")
