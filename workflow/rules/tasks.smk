"""Labelled texts.

REQUIRED INPUTS: for a built-in task the cleaned corpus; for another none, `tasks` in the configuration says where it is.
OUTPUTS:
    <resources>/tasks/{task}.archive   what was downloaded of a task with `urls`; other runs may share it
    <results>/tasks/{task}.csv         its examples, and .csv.sha256
    <results>/tasks/{task}.json        how they are judged, their numbers, the table's digest
STEPS: make_task, for the tasks that something asks for.
"""


rule make_task:
    """Make the examples of a task: from the corpus, an archive or the Hub."""
    input:
        corpus=task_corpus,
    output:
        table="<results>/tasks/{task}.csv",
        description="<results>/tasks/{task}.json",
    log:
        "<logs>/tasks/{task}.log",
    benchmark:
        "<benchmarks>/tasks/{task}.tsv"
    wildcard_constraints:
        task=any_of(CONFIGURATION.settings["tasks"]),
    localrule: runs_beside_snakemake("make_task")
    conda:
        "../../envs/tasks.yaml"
    params:
        science=science("make_task"),
        entry=task_definition,
        text=task_text,
        archive=task_archive,
        seed=CONFIGURATION.settings["seed"],
    message:
        "Making the task {wildcards.task}"
    shell:
        'python "$SCRIPTS/make_task.py" --task {wildcards.task:q} --entry {params.entry:q} --seed {params.seed:q}'
        " {params.text:q} --archive {params.archive:q} --output {output.table:q} --log {log:q}"
