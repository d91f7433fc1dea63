"""Estimate the memory and the minutes of jobs from the shape of a model and the size of a sample.

A scheduler gets these bounds before a job runs, multiplied by the job's `attempt`. They do not limit a run on one
machine. Memory is in megabytes of 10^6 bytes, as Snakemake's ``mem_mb``.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from shape_of_learning.metrics.measure_entry import count_searched_neighbours
from shape_of_learning.metrics.tidy import GROUPS
from shape_of_learning.plan.entries import Entry, PretrainingEntry
from shape_of_learning.plan.settings import Settings
from shape_of_learning.tasks.entry import SplitName

MB = 1e6
LARGEST_VOCABULARY = 250_880  # of BLOOM; assumed if an entry does not state the vocabulary
CHARACTERS_PER_TOKEN = 3  # a lower bound; the demo's tokenizer has 3.9 in English text
WINDOWS_AT_ONCE = 16  # through a model together, on a CPU
SNAKEMAKE_MB = 300  # the two processes around a job on a cluster
NUMPY_MB, TORCH_MB, CUDA_MB = 150, 600, 3000  # interpreter and libraries; CUDA's, in host memory
PRODUCTS_BYTES = 2**28  # products of vectors that are in memory at a time
MIN_MB, MARGIN = 1000, 1.2
# Slow on purpose: an old core, and a network and a file system that other users load.
CORE_FLOPS, BYTES_PER_SECOND = 2e10, 10e6
START_MINUTES, CLEANING_MINUTES = 5, 30
MOST_MINUTES = 7 * 24 * 60  # few clusters let a job run for longer
REPETITIONS = 1 + GROUPS  # of a measurement: with all windows, and without each group
EXAMPLE_TOKENS = 128  # of an example of a task, including its padding
# Assumed for a task whose entry does not limit its examples; SST-2, the largest here, has 67,000 for training.
EXAMPLES: dict[SplitName, int] = {"train": 70_000, "held_out": 2_000}


class Needs(NamedTuple):
    """Memory in megabytes, and minutes, before margins."""

    memory: float
    minutes: float

    def mem_mb(self, attempt: int = 1) -> int:
        """Memory of the request: that of the job, a margin and Snakemake itself, times the attempt."""
        return attempt * max(MIN_MB, math.ceil(MARGIN * self.memory + SNAKEMAKE_MB))

    def runtime(self, attempt: int = 1) -> int:
        """Minutes of the request: twice those of the job, and those of its start, times the attempt; a week at most."""
        return min(attempt * math.ceil(2 * self.minutes + START_MINUTES), MOST_MINUTES)


@dataclass(frozen=True)
class Work:
    """A checkpoint, and the sample of its forward pass.

    Attributes
    ----------
    layers, width, vocabulary : int
        Transformer blocks, width, and entries of the vocabulary.
    tokens : int
        A bound on the number of tokens of the sample.
    """

    layers: int
    width: int
    vocabulary: int
    tokens: int

    @classmethod
    def make_work(cls, model: Entry, settings: Settings, tokens: int = 0) -> "Work":
        """Make the work of a model on a sample of some tokens; by default on the windows of the run."""
        return cls(
            model.shape.layers,
            model.shape.hidden_size,
            model.vocabulary or LARGEST_VOCABULARY,
            tokens
            or settings.sampling.count_windows(model.shape.hidden_size)
            * count_window_tokens(settings),
        )

    @property
    def weights(self) -> int:
        """Number of the weights; far too large for ALBERT, which repeats one block."""
        return (12 * self.layers * self.width + self.vocabulary) * self.width

    @property
    def states_mb(self) -> float:
        """Size of the hidden states of all layers and of the state before the final norm, stored as float32."""
        return (self.layers + 2) * self.tokens * self.width * 4 / MB


def estimate_cleaning(threads: int) -> Needs:
    """Estimate the needs of a job that cleans a corpus."""
    return Needs(NUMPY_MB * (1 + threads), CLEANING_MINUTES)


def estimate_forward(model: Entry, settings: Settings, threads: int, tokens: int = 0) -> Needs:
    """Estimate the needs of a forward pass that writes its states.

    In memory: the weights, twice while they are read; the states of a window batch per thread, and of another batch
    that waits to be written, each with about twice as many further values inside blocks; on a GPU, CUDA's libraries in
    host memory. Time: two operations per weight and token, doubled for a second pass of masked text, and the transfer
    of weights and states.
    """
    work = Work.make_work(model, settings, tokens)
    batch_values = (work.layers + 2) * WINDOWS_AT_ONCE * count_window_tokens(settings) * work.width
    values = 2 * work.weights + 3 * (threads + 1) * batch_values
    transfer_seconds = (work.weights * 4 + work.states_mb * MB) / BYTES_PER_SECOND
    seconds = 4 * work.weights * work.tokens / (threads * CORE_FLOPS) + transfer_seconds
    return Needs(TORCH_MB + CUDA_MB + 4 * values / MB, seconds / 60)


def estimate_layer(model: Entry, settings: Settings, threads: int, tokens: int = 0) -> Needs:
    """Estimate the needs of all measures of a layer or block: neighbours, spectra and fits.

    Spectra and fits are repeated without each group of windows. In memory: the layer, a few batches as float64, all
    products of a batch or a few matrices of the width, and several lists of neighbours of a batch.
    """
    measurement = settings.measurement
    if not tokens and measurement.sequence != "all":  # one vector of each window
        tokens = settings.sampling.count_windows(model.shape.hidden_size)
    work = Work.make_work(model, settings, tokens)
    d, size = work.width, measurement.batch_vectors
    vectors, side, batches = min(work.tokens, 2 * size), min(d, size), max(1, work.tokens // size)
    products = min(8 * vectors**2, PRODUCTS_BYTES) + 32 * vectors * d + 80 * d**2
    lists = (36 * work.tokens + 96 * vectors) * count_searched_neighbours(measurement.neighbours)
    searches = 2 * work.tokens * size * d
    spectra = 2 * REPETITIONS * (2 * work.tokens * d * side + 10 * batches * side**3)
    fits = 8 * work.tokens * d**2 + 4 * REPETITIONS * d**3
    memory = NUMPY_MB + (16 * work.tokens * d + products + lists) / MB
    return Needs(memory, (searches + spectra + fits) / CORE_FLOPS / 60)


def estimate_checkpoint(model: Entry, settings: Settings, threads: int, tokens: int = 0) -> Needs:
    """Estimate the needs of a forward pass that keeps its states in memory, and of all their measures.

    `threads` layers are measured at a time, after the weights have left the memory.
    """
    work = Work.make_work(model, settings, tokens)
    forward = estimate_forward(model, settings, threads, tokens)
    layer = estimate_layer(model, settings, threads, tokens)
    rounds = math.ceil((work.layers + 1) / threads)
    memory = work.states_mb + max(forward.memory, TORCH_MB + threads * layer.memory)
    return Needs(memory, forward.minutes + rounds * layer.minutes)


def estimate_controls(model: Entry, settings: Settings, threads: int) -> Needs:
    """Estimate the needs of the forward passes and measures of all null models, one after the other."""
    checkpoint = estimate_checkpoint(model, settings, threads)
    repetitions = 1 + len(settings.controls.kinds)
    return checkpoint._replace(minutes=repetitions * checkpoint.minutes)


def estimate_training(model: Entry, settings: Settings, threads: int) -> Needs:
    """Estimate the needs of a pretraining, or of a fine-tuning with an evaluation at each saved step."""
    recipe = model.recipe
    if isinstance(model, PretrainingEntry):
        batch_tokens = recipe["batch_size"] * recipe["context"]
        return estimate_updates(
            Work.make_work(model, settings),
            batch_tokens,
            recipe["last_step"] * batch_tokens,
            threads,
        )
    examples = count_examples(model, settings)
    passes = recipe["epochs"] * examples["train"] + len(model.saved_steps) * examples["held_out"]
    return estimate_updates(
        Work.make_work(model, settings),
        recipe["batch_size"] * EXAMPLE_TOKENS,
        passes * EXAMPLE_TOKENS,
        threads,
    )


def count_window_tokens(settings: Settings) -> int:
    """Bound the number of tokens of a window."""
    return math.ceil(settings.sampling.window_characters / CHARACTERS_PER_TOKEN)


def count_examples(model: Entry, settings: Settings) -> dict[SplitName, int]:
    """Return the assumed numbers of examples of the task that a model is fine-tuned on, by split."""
    return {**EXAMPLES, **(settings.tasks[model.recipe["task"]].most or {})}


def estimate_updates(work: Work, step_tokens: int, tokens: int, threads: int) -> Needs:
    """Estimate the needs of a training on `tokens` tokens, with `step_tokens` tokens per update.

    In memory: weights, gradients, two moments and the saved copy, and activations. A block keeps about 34 bytes per
    token and coordinate if values have two bytes (Korthikanti et al. 2022, Reducing Activation Recomputation in Large
    Transformer Models, equation 1); we take twice that for the scores of attention, and three times the logits.
    Time: six operations per weight and token, doubled because small matrices do not keep a core busy.
    """
    values = 34 * work.layers * work.width + 3 * work.vocabulary
    memory = TORCH_MB + 4 * (5 * work.weights + step_tokens * values) / MB
    return Needs(memory, 2 * 6 * work.weights * tokens / (threads * CORE_FLOPS) / 60)
