"""Figures and tables of the papers, each figure with the numbers that it draws.

REQUIRED INPUTS: only the tables of the models that a figure shows.
OUTPUTS:
    <results>/figures/{figure}.pdf, .png, .csv, and its caption, .md
    <results>/tables/{table}.csv, .md
STEPS: draw_figure, write_table. The figures and tables in workflow/papers/*/paper.yaml are targets:
`snakemake --cores 1 figure_3` makes one figure.
"""

from shape_of_learning.plan import jobs as plan_jobs

DRAWN_FIGURES = [target for target in RUN.shown_models if target in RUN.figures]
WRITTEN_TABLES = [target for target in RUN.shown_models if target in RUN.tables]


def show_in_report(file, kind, page="figure"):
    """Mark a file of a figure or a table for the report, under the title of its paper."""

    def find_target(wildcards):
        return wildcards.get("figure") or wildcards.get("table")

    return list_in_report(
        file,
        lambda wildcards: RUN.find_paper(find_target(wildcards)).title,
        page,
        lambda wildcards: {"result": RUN.name_in_paper(find_target(wildcards)), "as": kind},
    )


def list_input_tables(target):
    """List by kind the tables of measured numbers that a figure or a table reads."""
    return {
        kind: [f"<results>/tables/{kind}/{model}.csv" for model in models]
        for kind, models in plan_jobs.list_models_by_table(RUN, target).items()
    }


def list_target_files(target):
    """List the files of a figure or of a table."""
    if target in RUN.figures:
        return [f"<results>/figures/{target}.{suffix}" for suffix in FIGURE_SUFFIXES]
    return [f"<results>/tables/{target}.{suffix}" for suffix in ("csv", "md")]


rule draw_figure:
    """Draw one figure from tables."""
    input:
        unpack(ask_plan(list_input_tables, "figure")),
    output:
        pdf="<results>/figures/{figure}.pdf",
        png=show_in_report("<results>/figures/{figure}.png", "figure"),
        csv=show_in_report("<results>/figures/{figure}.csv", "its numbers"),
        markdown="<results>/figures/{figure}.md",
    log:
        "<logs>/figures/{figure}.log",
    benchmark:
        "<benchmarks>/figures/{figure}.tsv"
    wildcard_constraints:
        figure=match_any(DRAWN_FIGURES),
    priority: 3
    localrule: True
    conda:
        "../../envs/figures.yaml"
    resources:
        text=SETTINGS.corpus.source,
    params:
        code=lambda wildcards: digest_code(
            "draw_figure", RUN.figures[wildcards.figure].draw.split(":")[0]
        ),
        job=ask_job(lambda figure: plan_jobs.make_figure_job(RUN, figure), "figure"),
    script:
        "../scripts/draw_figure.py"


rule write_table:
    """Write one table on the models, from their entries or from tables of measured numbers."""
    input:
        unpack(ask_plan(list_input_tables, "table")),
    output:
        csv=show_in_report("<results>/tables/{table}.csv", "table", "page"),
        markdown="<results>/tables/{table}.md",
    log:
        "<logs>/tables/{table}.log",
    benchmark:
        "<benchmarks>/tables/{table}.tsv"
    wildcard_constraints:
        table=match_any(WRITTEN_TABLES),
    localrule: True
    conda:
        "../../envs/figures.yaml"
    params:
        code=lambda wildcards: digest_code(
            "write_table", RUN.tables[wildcards.table].write.split(":")[0]
        ),
        job=ask_job(lambda table: plan_jobs.make_table_job(RUN, table), "table"),
    script:
        "../scripts/write_table.py"


def list_requested_files(target):
    """Return an input function that lists the files of a target, and refuses a target that the configuration omits."""

    def list_files(wildcards):
        exit_on_input_error(plan_jobs.require_target, RUN, target)
        return list_target_files(target)

    return list_files


for target in (*RUN.figures, *RUN.tables):

    rule:
        name:
            target
        input:
            list_requested_files(target),
