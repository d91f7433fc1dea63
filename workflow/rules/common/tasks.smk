"""What the rules of tasks ask of the configuration."""

from shape_of_learning.script_arguments.settings import without_urls


def task_entry(wildcards):
    return CONFIGURATION.settings["tasks"][wildcards.task]


def task_corpus(wildcards):
    """The cleaned corpus, where a task is made of it."""
    return list(CLEAN_CORPUS.values()) if "builtin" in task_entry(wildcards) else []


def task_text(wildcards, input):
    """The option that names its text."""
    return [f"--text={input.corpus[0]}"] if input.corpus else []


def task_definition(wildcards):
    """What decides a task's examples, as JSON; not where its archive can be had."""
    return json.dumps(without_urls(task_entry(wildcards)))


def task_archive(wildcards):
    """Where the archive of a task is, as it came; other runs may share it."""
    return own_path(f"<resources>/tasks/{wildcards.task}.archive")
