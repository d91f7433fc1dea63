"""Figures, each with the numbers that it draws.

REQUIRED INPUTS: the tables of the models that a figure shows, and no others.
OUTPUTS:
    <results>/figures/{figure}.pdf, .png, .csv
STEPS: one rule per figure; `snakemake --cores 1 figure_3` makes one figure.
"""


rule plot_figure_1:
    """Anisotropy by relative depth, encoders beside decoders; the pattern of the rules below."""
    input:
        tables=figure_tables("figure_1"),
        script=f"{SCRIPTS}/plot_figure_1.py",
    output:
        pdf="<results>/figures/figure_1.pdf",
        png=report(
            "<results>/figures/figure_1.png", caption="../report/figure_1.rst", category="Figures"
        ),
        csv="<results>/figures/figure_1.csv",
    log:
        "<logs>/figures/figure_1.log",
    benchmark:
        "<benchmarks>/figures/figure_1.tsv"
    localrule: True
    conda:
        "../../envs/figures.yaml"
    params:
        options=options_of_last_checkpoints("figure_1"),
    message:
        "Drawing {output.pdf}"
    shell:
        "python {input.script:q} --measurements {input.tables:q} {params.options:q}"
        " --pdf {output.pdf:q} --png {output.png:q} --csv {output.csv:q} --log {log:q}"


rule plot_figure_2:
    """A figure by training step: as above, without the checkpoints that are not what they should be."""
    input:
        tables=figure_tables("figure_2"),
        verdicts=figure_verdicts("figure_2"),
        script=f"{SCRIPTS}/plot_training_profile.py",
    output:
        pdf="<results>/figures/figure_2.pdf",
        png=report(
            "<results>/figures/figure_2.png", caption="../report/figure_2.rst", category="Figures"
        ),
        csv="<results>/figures/figure_2.csv",
    log:
        "<logs>/figures/figure_2.log",
    benchmark:
        "<benchmarks>/figures/figure_2.tsv"
    localrule: True
    conda:
        "../../envs/figures.yaml"
    params:
        options=figure_options("figure_2"),
    message:
        "Drawing {output.pdf}"
    shell:
        "python {input.script:q} --measurements {input.tables:q} --verdicts {input.verdicts:q} {params.options:q}"
        " --pdf {output.pdf:q} --png {output.png:q} --csv {output.csv:q} --log {log:q}"


use rule plot_figure_2 as plot_figure_3 with:
    input:
        tables=figure_tables("figure_3"),
        verdicts=figure_verdicts("figure_3"),
        script=f"{SCRIPTS}/plot_training_profile.py",
    output:
        pdf="<results>/figures/figure_3.pdf",
        png=report(
            "<results>/figures/figure_3.png", caption="../report/figure_3.rst", category="Figures"
        ),
        csv="<results>/figures/figure_3.csv",
    log:
        "<logs>/figures/figure_3.log",
    benchmark:
        "<benchmarks>/figures/figure_3.tsv"
    localrule: True
    params:
        options=figure_options("figure_3"),


use rule plot_figure_2 as plot_figure_4 with:
    input:
        tables=figure_tables("figure_4"),
        verdicts=figure_verdicts("figure_4"),
        script=f"{SCRIPTS}/plot_dimension_by_step.py",
    output:
        pdf="<results>/figures/figure_4.pdf",
        png=report(
            "<results>/figures/figure_4.png", caption="../report/figure_4.rst", category="Figures"
        ),
        csv="<results>/figures/figure_4.csv",
    log:
        "<logs>/figures/figure_4.log",
    benchmark:
        "<benchmarks>/figures/figure_4.tsv"
    localrule: True
    params:
        options=figure_options("figure_4") + AVERAGE_OVER,


use rule plot_figure_2 as plot_figure_5 with:
    input:
        tables=figure_tables("figure_5"),
        verdicts=figure_verdicts("figure_5"),
        script=f"{SCRIPTS}/plot_dimension_estimators.py",
    output:
        pdf="<results>/figures/figure_5.pdf",
        png=report(
            "<results>/figures/figure_5.png", caption="../report/figure_5.rst", category="Figures"
        ),
        csv="<results>/figures/figure_5.csv",
    log:
        "<logs>/figures/figure_5.log",
    benchmark:
        "<benchmarks>/figures/figure_5.tsv"
    localrule: True
    params:
        options=figure_options("figure_5") + AVERAGE_OVER,


use rule plot_figure_1 as plot_anisotropy_measures with:
    input:
        tables=figure_tables("anisotropy_measures"),
        script=f"{SCRIPTS}/plot_anisotropy_measures.py",
    output:
        pdf="<results>/figures/anisotropy_measures.pdf",
        png=report(
            "<results>/figures/anisotropy_measures.png",
            caption="../report/anisotropy_measures.rst",
            category="Figures",
        ),
        csv="<results>/figures/anisotropy_measures.csv",
    log:
        "<logs>/figures/anisotropy_measures.log",
    benchmark:
        "<benchmarks>/figures/anisotropy_measures.tsv"
    localrule: True
    params:
        options=options_of_last_checkpoints("anisotropy_measures"),


rule plot_loss_by_step:
    """Cross-entropy by training step; it needs no measurement of hidden states."""
    input:
        verdicts=figure_verdicts("loss_by_step"),
        script=f"{SCRIPTS}/plot_loss_by_step.py",
    output:
        pdf="<results>/figures/loss_by_step.pdf",
        png=report(
            "<results>/figures/loss_by_step.png",
            caption="../report/loss_by_step.rst",
            category="Figures",
        ),
        csv="<results>/figures/loss_by_step.csv",
    log:
        "<logs>/figures/loss_by_step.log",
    benchmark:
        "<benchmarks>/figures/loss_by_step.tsv"
    localrule: True
    conda:
        "../../envs/figures.yaml"
    params:
        options=figure_options("loss_by_step") + figure_roles("loss_by_step"),
    message:
        "Drawing {output.pdf}"
    shell:
        "python {input.script:q} --verdicts {input.verdicts:q} {params.options:q}"
        " --pdf {output.pdf:q} --png {output.png:q} --csv {output.csv:q} --log {log:q}"


rule figure_1:
    input:
        figure_target("figure_1"),


rule figure_2:
    input:
        figure_target("figure_2"),


rule figure_3:
    input:
        figure_target("figure_3"),


rule figure_4:
    input:
        figure_target("figure_4"),


rule figure_5:
    input:
        figure_target("figure_5"),


rule anisotropy_measures:
    input:
        figure_target("anisotropy_measures"),


rule loss_by_step:
    input:
        figure_target("loss_by_step"),
