"""What the rules ask of a scheduler, by the formulas of plan/resources.py for the model that a wildcard names.

Nothing here limits a run on one machine: `mem_mb`, `runtime`, `gpu` and `downloads` count only where a
profile or the command line says how much of them there is, or submits jobs with them. They grow with
`attempt`, which the profile's `retries` raises.
"""

from shape_of_learning.plan import resources as needs
from shape_of_learning.plan import task_resources as task_needs

checkpoint_group = None


def if_counted(**asked):
    return asked


@cache
def work_of(name):
    """A model's shape, and the sample that is run through each of its checkpoints."""
    return needs.Work.of(MODELS[name], CONFIGURATION.settings)


def runs_beside_snakemake(rule):
    """Whether what needs the internet runs where Snakemake does."""
    return True


def cleaning_memory(wildcards, threads, attempt):
    return needs.asked_mb(needs.corpus_memory_mb(threads), attempt)


def cleaning_minutes(wildcards, attempt):
    return needs.asked_minutes(needs.CLEANING_MINUTES, attempt)


def download_minutes(wildcards, attempt):
    return needs.asked_minutes(needs.download_minutes(work_of(wildcards.model)), attempt)


def pretraining_memory(wildcards, attempt):
    source, work = MODELS[wildcards.model].source, work_of(wildcards.model)
    on_gpu = source.device == "cuda"
    needed = needs.pretraining_memory_mb(work, source.tokens_per_step, on_gpu=on_gpu)
    return needs.asked_mb(needed, attempt)


def pretraining_minutes(wildcards, threads, attempt):
    source, work = MODELS[wildcards.model].source, work_of(wildcards.model)
    tokens, on_gpu = source.last_step * source.tokens_per_step, source.device == "cuda"
    minutes = needs.pretraining_minutes(work, tokens, threads, on_gpu=on_gpu)
    return needs.asked_minutes(minutes, attempt)


def finetuning_memory(wildcards, attempt):
    tokens = MODELS[wildcards.model].source.recipe["batch_size"] * task_needs.TOKENS
    return needs.asked_mb(needs.pretraining_memory_mb(work_of(wildcards.model), tokens), attempt)


def finetuning_minutes(wildcards, attempt):
    source, work = MODELS[wildcards.model].source, work_of(wildcards.model)
    examples, saved = task_examples(wildcards), len(source.saved_steps)
    minutes = task_needs.finetuning_minutes(work, examples, source.recipe, saved)
    return needs.asked_minutes(minutes, attempt)


def forward_gpus(wildcards):
    """GPUs of a forward pass; on one machine it takes what there is, on a cluster what it asks for."""
    return needs.gpus(work_of(wildcards.model))


def is_on_gpu(rule):
    return False


def forward_memory(wildcards, threads, attempt):
    on_gpu = is_on_gpu("dump_embeddings")
    needed = needs.forward_memory_mb(work_of(wildcards.model), threads, on_gpu=on_gpu)
    return needs.asked_mb(needed, attempt)


def forward_minutes(wildcards, threads, attempt):
    on_gpu = is_on_gpu("dump_embeddings")
    minutes = needs.forward_minutes(work_of(wildcards.model), threads=threads, on_gpu=on_gpu)
    return needs.asked_minutes(minutes, attempt)


def checkpoint_memory(wildcards, threads, attempt):
    on_gpu = is_on_gpu("measure_checkpoint")
    work = work_of(wildcards.model)
    needed = needs.checkpoint_memory_mb(work, threads, on_gpu=on_gpu, pairs=2)
    return needs.asked_mb(needed, attempt)


def checkpoint_minutes(wildcards, threads, attempt):
    on_gpu = is_on_gpu("measure_checkpoint")
    work = work_of(wildcards.model)
    minutes = needs.checkpoint_minutes(work, threads=threads, on_gpu=on_gpu, pairs=2)
    return needs.asked_minutes(minutes, attempt)


def measure_memory(wildcards, attempt):
    """Memory of one layer and family."""
    work = work_of(wildcards.model)
    return needs.asked_mb(needs.measure_memory_mb(work, wildcards.family), attempt)


def measure_minutes(wildcards, attempt):
    """Minutes of it; the start of the group is counted with its first layer."""
    minutes = needs.measure_minutes(work_of(wildcards.model), wildcards.family)
    starts = wildcards.layer in ("0", "1")
    return needs.asked_minutes_in_group(minutes, attempt, starts=starts)
