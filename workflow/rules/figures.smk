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
        estimates=figure_tables,
        changes=figure_changes,
        verdicts=figure_verdicts,
        reads=figure_reads,
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
        caption="<results>/figures/{figure}.md",
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
        science=figure_science,
        function=figure_function,
        figure=figure_inputs,
        caption=figure_caption,
        reads=figure_reads_named,
    message:
        "Drawing {output.pdf}"
    shell:
        'python "$SCRIPTS/draw_figure.py" --function {params.function:q} --figure {params.figure:q}'
        " --caption={params.caption:q} --estimates {input.estimates:q} --changes {input.changes:q}"
        " --verdicts {input.verdicts:q} --tables {params.reads:q} --output {output:q} --log {log:q}"


rule write_table:
    """Write one table on the models, from their entries or from tables of measured numbers."""
    input:
        reads=table_reads,
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
        science=table_science,
        function=table_function,
        entries=table_entries,
        caption=table_caption,
        reads=table_reads_named,
    message:
        "Writing {output.markdown}"
    shell:
        'python "$SCRIPTS/write_table.py" --function {params.function:q} --entries {params.entries:q}'
        " --caption={params.caption:q} --tables {params.reads:q} --csv {output.csv:q} --markdown {output.markdown:q} --log {log:q}"


for target in (*FIGURES, *TABLES):

    rule:
        name:
            target
        input:
            files_of_target(target),
