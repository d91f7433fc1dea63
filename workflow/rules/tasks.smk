"""Labelled texts of tasks.

REQUIRED INPUTS: the cleaned corpus for a built-in task; none for a task of the Hub.
OUTPUTS:
    <results>/tasks/{task}.csv         the examples
    <results>/tasks/{task}.json        the metric of predictions, the numbers of examples, the digest of the table
STEPS: make_task, for each task of a fine-tuning.
"""

from shape_of_learning.tasks.entry import ExamplesJob


rule make_task:
    """Make the examples of a task from the corpus or the Hub."""
    input:
        lambda wildcards: list(CLEAN_CORPUS.values()) if RUN.tasks[wildcards.task].builtin else [],
    output:
        table="<results>/tasks/{task}.csv",
        description="<results>/tasks/{task}.json",
    log:
        "<logs>/tasks/{task}.log",
    benchmark:
        "<benchmarks>/tasks/{task}.tsv"
    wildcard_constraints:
        task=match_any(RUN.tasks),
    priority: 10  # a fine-tuning needs the task, and many jobs need the fine-tuned model
    localrule: True
    conda:
        "../../envs/tasks.yaml"
    params:
        code=lambda wildcards: digest_code("make_task"),
        job=ask_job(lambda task: ExamplesJob(task, RUN.tasks[task], SEED), "task"),
    script:
        "../scripts/make_task.py"
