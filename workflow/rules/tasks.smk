"""Labelled texts.

REQUIRED INPUTS: for a built-in task the cleaned corpus; for one of the Hub none.
OUTPUTS:
    <results>/tasks/{task}.csv         its examples
    <results>/tasks/{task}.json        how they are judged, their numbers, the table's digest
STEPS: make_task, for the tasks that something asks for.
"""

TASKS = SETTINGS["tasks"]


rule make_task:
    """Make the examples of a task: from the corpus or the Hub."""
    input:
        lambda wildcards: list(CLEAN_CORPUS.values()) if "builtin" in TASKS[wildcards.task] else [],
    output:
        table="<results>/tasks/{task}.csv",
        description="<results>/tasks/{task}.json",
    log:
        "<logs>/tasks/{task}.log",
    benchmark:
        "<benchmarks>/tasks/{task}.tsv"
    wildcard_constraints:
        task=match_any(TASKS),
    localrule: True
    conda:
        "../../envs/tasks.yaml"
    params:
        code=lambda wildcards: digest_code("make_task"),
        entry=lambda wildcards: TASKS[wildcards.task],
        seed=SEED,
    script:
        "../scripts/make_task.py"
