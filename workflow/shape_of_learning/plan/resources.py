"""Resources of jobs: memory and minutes, from the shape of a model and the size of a sample.

Bounds that are asked for before a job runs, not measurements after it, and multiplied by its `attempt`. Nothing
here limits a run on one machine. Memory is in megabytes of 10^6 bytes, as Snakemake's ``mem_mb``.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from shape_of_learning.metrics.measure_entry import count_searched_neighbours
from shape_of_learning.plan.entries import Entry, PretrainingEntry

MB = 1e6
LARGEST_VOCABULARY = 250_880  # BLOOM's, of a model whose entry does not say
CHARACTERS_PER_TOKEN = 3  # at least: the demo's tokenizer makes 3.9 of English text
WINDOWS_AT_ONCE = 16  # through a model together, on a CPU
SNAKEMAKE_MB = 300  # the two processes around a job on a cluster
NUMPY_MB, TORCH_MB, CUDA_MB = 150, 600, 3000  # interpreter and libraries; CUDA's, in host memory
PRODUCTS_BYTES = 2**28  # of vectors with each other, at a time
LEAST_MB, MARGIN = 1000, 1.2
# Slow on purpose: an old core, and a network and a file system that other users load.
CORE_FLOPS, BYTES_PER_SECOND = 2e10, 10e6
START_MINUTES, CLEANING_MINUTES = 5, 30
PARTS = 17  # measured: all windows, and without each of sixteen groups
# Of an example of a task, with those that fill up its batch; and examples of a task whose number is unknown.
EXAMPLE_TOKENS = 128
EXAMPLES = {"train": 10_000, "held_out": 2_000}


class Needs(NamedTuple):
    """Memory in megabytes, and minutes, before margins."""

    memory: float
    minutes: float

    def mem_mb(self, attempt: int = 1) -> int:
        """Memory to ask for: that of the job, a margin and Snakemake itself, and as much again per attempt."""
        return attempt * max(LEAST_MB, math.ceil(MARGIN * self.memory + SNAKEMAKE_MB))

    def runtime(self, attempt: int = 1) -> int:
        """Time to ask for: twice that of the job and the start, and as much again per attempt."""
        return attempt * math.ceil(2 * self.minutes + START_MINUTES)


@dataclass(frozen=True)
class Work:
    """One checkpoint and the sample that is run through it.

    Attributes
    ----------
    layers, width, vocabulary : int
        Transformer blocks, width, and entries of the vocabulary.
    tokens : int
        A bound on those of the sample.
    """

    layers: int
    width: int
    vocabulary: int
    tokens: int

    @classmethod
    def make_work(cls, model: Entry, settings: Mapping[str, Any], tokens: int = 0) -> "Work":
        """A sample of so many tokens; by default the windows of the run."""
        return cls(
            model.shape.layers,
            model.shape.hidden_size,
            model.vocabulary or LARGEST_VOCABULARY,
            tokens or model.count_windows(settings["sampling"]) * count_window_tokens(settings),
        )

    @property
    def weights(self) -> int:
        """Their number; for ALBERT, which repeats one block, far too many."""
        return (12 * self.layers * self.width + self.vocabulary) * self.width

    @property
    def states_mb(self) -> float:
        """Size of the hidden states of all layers and of the state before the final norm, stored as float32."""
        return (self.layers + 2) * self.tokens * self.width * 4 / MB


def estimate_cleaning(threads: int) -> Needs:
    """A corpus that is cleaned."""
    return Needs(NUMPY_MB * (1 + threads), CLEANING_MINUTES)


def estimate_forward(
    model: Entry, settings: Mapping[str, Any], threads: int, tokens: int = 0
) -> Needs:
    """A forward pass, whose states are written.

    The weights, twice as they are read, and of each window batch its states; two operations per weight and token.
    Within a block about twice as much again; one batch waits to be written. With a GPU the libraries of CUDA are
    loaded, in host memory. Masked text is run twice.
    """
    work = Work.make_work(model, settings, tokens)
    batch_values = (work.layers + 2) * WINDOWS_AT_ONCE * count_window_tokens(settings) * work.width
    values = 2 * work.weights + 3 * (threads + 1) * batch_values
    transfer_seconds = (work.weights * 4 + work.states_mb * MB) / BYTES_PER_SECOND
    seconds = 4 * work.weights * work.tokens / (threads * CORE_FLOPS) + transfer_seconds
    return Needs(TORCH_MB + CUDA_MB + 4 * values / MB, seconds / 60)


def estimate_layer(
    model: Entry, settings: Mapping[str, Any], threads: int, tokens: int = 0
) -> Needs:
    """All measures of a layer or block: neighbours, spectra and fits, the latter two without each group of windows.

    In memory: the layer, a few batches as float64, all products of a batch or a few matrices of the width, and lists
    of neighbours, of a batch some times.
    """
    work, measurement = Work.make_work(model, settings, tokens), settings["measurement"]
    d, size = work.width, measurement["batch_vectors"]
    vectors, side, batches = min(work.tokens, 2 * size), min(d, size), max(1, work.tokens // size)
    products = min(8 * vectors**2, PRODUCTS_BYTES) + 32 * vectors * d + 80 * d**2
    lists = (36 * work.tokens + 96 * vectors) * count_searched_neighbours(measurement["neighbours"])
    searches = 2 * work.tokens * size * d
    spectra = 2 * PARTS * (2 * work.tokens * d * side + 10 * batches * side**3)
    fits = 8 * work.tokens * d**2 + 4 * PARTS * d**3
    memory = NUMPY_MB + (16 * work.tokens * d + products + lists) / MB
    return Needs(memory, (searches + spectra + fits) / CORE_FLOPS / 60)


def estimate_checkpoint(
    model: Entry, settings: Mapping[str, Any], threads: int, tokens: int = 0
) -> Needs:
    """A forward pass whose states are kept in memory, and all measures of them.

    `threads` layers are measured at a time, when the weights are gone.
    """
    work = Work.make_work(model, settings, tokens)
    run, layer = (
        job(model, settings, threads, tokens) for job in (estimate_forward, estimate_layer)
    )
    rounds = math.ceil((work.layers + 1) / threads)
    memory = work.states_mb + max(run.memory, TORCH_MB + threads * layer.memory)
    return Needs(memory, run.minutes + rounds * layer.minutes)


def estimate_controls(model: Entry, settings: Mapping[str, Any], threads: int) -> Needs:
    """The same of each null model, one after the other."""
    checkpoint = estimate_checkpoint(model, settings, threads)
    return checkpoint._replace(
        minutes=(1 + len(settings["controls"]["kinds"])) * checkpoint.minutes
    )


def estimate_training(model: Entry, settings: Mapping[str, Any], threads: int) -> Needs:
    """A pretraining or a fine-tuning, which is evaluated at each step that it saves."""
    recipe = model.recipe
    if isinstance(model, PretrainingEntry):
        step_tokens = recipe["batch_size"] * recipe["context"]
        return estimate_updates(
            Work.make_work(model, settings), step_tokens, recipe["last_step"] * step_tokens, threads
        )
    examples = count_examples(model, settings)
    passes = recipe["epochs"] * examples["train"] + len(model.saved_steps) * examples["held_out"]
    step_tokens = recipe["batch_size"] * EXAMPLE_TOKENS
    return estimate_updates(
        Work.make_work(model, settings), step_tokens, passes * EXAMPLE_TOKENS, threads
    )


def count_window_tokens(settings: Mapping[str, Any]) -> int:
    """Bound the number of tokens of a window."""
    return math.ceil(settings["sampling"]["window_characters"] / CHARACTERS_PER_TOKEN)


def count_examples(model: Entry, settings: Mapping[str, Any]) -> dict[str, int]:
    """Bound the numbers of examples of the task that a model is fine-tuned on, by split."""
    return {**EXAMPLES, **settings["tasks"][model.recipe["task"]].get("most", {})}


def estimate_updates(work: Work, step_tokens: int, tokens: int, threads: int) -> Needs:
    """Weights, gradients, two moments and the saved copy; activations; six operations per weight and token.

    A block keeps about 34 bytes per token and coordinate where values have two (Korthikanti et al. 2022, Reducing
    Activation Recomputation in Large Transformer Models, equation 1; twice that, for the scores of attention),
    the output three times its logits. The time is doubled, since small matrices keep no core busy.
    """
    values = 34 * work.layers * work.width + 3 * work.vocabulary
    memory = TORCH_MB + 4 * (5 * work.weights + step_tokens * values) / MB
    return Needs(memory, 2 * 6 * work.weights * tokens / (threads * CORE_FLOPS) / 60)
