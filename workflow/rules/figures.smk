"""Figures and tables of the papers, each figure with the numbers that it draws.

REQUIRED INPUTS: the tables of the models that a figure shows, and no others.
OUTPUTS:
    <results>/figures/{figure}.pdf, .png, .csv, and its caption, .md
    <results>/tables/{table}.csv, .md
STEPS: draw_figure, write_table. What they draw is said in workflow/papers/*/paper.yaml, whose figures and tables
are targets: `snakemake --cores 1 figure_3` makes one figure.
"""


rule draw_figure:
    """Draw one figure from tables alone."""
    input:
        unpack(tables_of_figure),
    output:
        pdf="<results>/figures/{figure}.pdf",
        png=report(
            "<results>/figures/{figure}.png",
            caption="../report/figure.rst",
            category=paper_title,
            labels=shown_as("figure"),
        ),
        csv=report(
            "<results>/figures/{figure}.csv",
            caption="../report/figure.rst",
            category=paper_title,
            labels=shown_as("its numbers"),
        ),
        markdown="<results>/figures/{figure}.md",
    log:
        "<logs>/figures/{figure}.log",
    benchmark:
        "<benchmarks>/figures/{figure}.tsv"
    wildcard_constraints:
        figure=any_of(CONFIGURATION.figures),
    localrule: True
    conda:
        "../../envs/figures.yaml"
    params:
        code=lambda wildcards: science("draw_figure", function_of(wildcards).file),
        figure=figure_as_drawn,
    message:
        "Drawing {output.pdf}"
    script:
        "../scripts/draw_figure.py"


rule write_table:
    """Write one table on the models, from their entries or from tables of measured numbers."""
    input:
        unpack(tables_of_table),
    output:
        csv=report(
            "<results>/tables/{table}.csv",
            caption="../report/page.rst",
            category=paper_title,
            labels=shown_as("table"),
        ),
        markdown="<results>/tables/{table}.md",
    log:
        "<logs>/tables/{table}.log",
    benchmark:
        "<benchmarks>/tables/{table}.tsv"
    wildcard_constraints:
        table=any_of(CONFIGURATION.tables),
    localrule: True
    conda:
        "../../envs/figures.yaml"
    params:
        code=lambda wildcards: science("write_table", function_of(wildcards).file),
        table=table_as_written,
    message:
        "Writing {output.markdown}"
    script:
        "../scripts/write_table.py"


for target in (*FIGURES, *TABLES):

    rule:
        name:
            target
        input:
            files_of_target(target),
