"""What jobs ask of a scheduler, from the shape of a model and the size of a sample: memory and minutes.

Bounds that are asked for before a job runs, not measurements after it, and multiplied by its `attempt`. Nothing
here limits a run on one machine. Memory is in megabytes of 10^6 bytes, as Snakemake's ``mem_mb``.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from shape_of_learning.metrics.measure_entry import searched_neighbours
from shape_of_learning.plan.models import Model

MB = 1e6
VALUE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
LARGEST_VOCABULARY = 250_880  # BLOOM's, of a model whose entry does not say
CHARACTERS_PER_TOKEN = 3  # at least: the demo's tokenizer makes 3.9 of English text
WINDOWS_AT_ONCE = 16  # where their number is chosen by free memory
SNAKEMAKE_MB = 300  # the two processes around a job on a cluster
NUMPY_MB, TORCH_MB, CUDA_MB = 150, 600, 3000  # interpreter and libraries; CUDA's, in host memory
PRODUCTS_BYTES = 2**28  # of vectors with each other, at a time
GPU_MB = 80_000  # of one card; a larger model is spread over several
LEAST_MB, MARGIN = 1000, 1.2
# Slow on purpose: an old core, and a network and a file system that others use as well.
CORE_FLOPS, BYTES_PER_SECOND = 2e10, 10e6
START_MINUTES, CLEANING_MINUTES = 5, 30
PARTS = 17  # measured: all windows, and without each of sixteen groups
# Of an example of a task, with those that fill up its batch; and examples where nobody says how many.
EXAMPLE_TOKENS = 128
EXAMPLES = {"train": 10_000, "held_out": 2_000}


@dataclass(frozen=True)
class Work:
    """One checkpoint and the sample that is run through it.

    Attributes
    ----------
    layers, hidden_size, weights, value_bytes : int
        Transformer blocks, width, number of weights, and bytes of each of them.
    tokens, tokens_at_once : int
        Bounds on the tokens of the sample, and of the windows that go through the model together.
    batch_vectors, neighbours : int
        Vectors per measured batch, and nearest others that are searched of each.
    passes : int
        How often the sample is run and measured.
    step_tokens, training_tokens : int
        Of a training: of a step, and of all of them.
    """

    layers: int
    hidden_size: int
    weights: int
    tokens: int
    tokens_at_once: int
    batch_vectors: int = 4096
    neighbours: int = 128
    value_bytes: int = 4
    passes: int = 1
    step_tokens: int = 0
    training_tokens: int = 0

    @property
    def layer_mb(self) -> float:
        """Size of the hidden states of one layer, which are stored as float32."""
        return self.tokens * self.hidden_size * 4 / MB

    @property
    def values_at_once(self) -> int:
        """Values of the hidden states of one window batch, all layers."""
        return (self.layers + 2) * self.tokens_at_once * self.hidden_size

    @property
    def states_mb(self) -> float:
        """The same of all layers, and of the state before the final norm."""
        return (self.layers + 2) * self.layer_mb


def measuring(model: Model, settings: Mapping[str, Any]) -> Work:
    """A checkpoint and the windows of the run; of a training of this run, that as well."""
    forward, measurement = settings["forward"], settings["measurement"]
    at_once = WINDOWS_AT_ONCE if forward["batch_size"] == "auto" else forward["batch_size"]
    windows = settings["sampling"]["windows"]
    step_tokens = training_tokens = 0
    if model.kind == "pretraining":
        step_tokens = model.recipe["batch_size"] * model.recipe["context"]
        training_tokens = model.recipe["last_step"] * step_tokens
    elif model.kind == "finetuning":
        examples = _examples(model, settings)
        step_tokens = model.recipe["batch_size"] * EXAMPLE_TOKENS
        shown = model.recipe["epochs"] * examples["train"]
        shown += len(model.saved_steps) * examples["held_out"]
        training_tokens = shown * EXAMPLE_TOKENS
    layers, width = model.shape.layers, model.shape.hidden_size
    return Work(
        layers,
        width,
        # For ALBERT, which repeats one block, far too many.
        weights=(12 * layers * width + (model.vocabulary or LARGEST_VOCABULARY)) * width,
        tokens=windows * _window_tokens(settings),
        tokens_at_once=min(at_once, windows) * _window_tokens(settings),
        batch_vectors=measurement["batch_vectors"],
        neighbours=measurement["neighbours"],
        value_bytes=VALUE_BYTES[model.precision or forward["precision"]],
        step_tokens=step_tokens,
        training_tokens=training_tokens,
    )


def measuring_on_task(model: Model, settings: Mapping[str, Any]) -> Work:
    """All checkpoints of a fine-tuning on the texts of its task."""
    tokens = sum(_examples(model, settings).values()) * EXAMPLE_TOKENS
    return replace(measuring(model, settings), tokens=tokens, passes=len(model.checkpoints))


def editing(model: Model, settings: Mapping[str, Any]) -> Work:
    """A checkpoint whose blocks are changed, by as many orders, kinds and numbers of blocks as are asked for."""
    given, window_tokens = settings["block_editing"], _window_tokens(settings)
    sets = len(given["orders"]) * given["most_blocks"] + model.shape.layers
    distilled = sum(kind.endswith("distilled") for kind in given["kinds"])
    shown = distilled * given["distillation_steps"] * given["distillation_windows"]
    # To evaluate takes a third of what an update does.
    windows = sets * (len(given["kinds"]) * given["evaluation_windows"] // 3 + shown)
    return replace(
        measuring(model, settings),
        tokens=given["fitting_windows"] * window_tokens,
        step_tokens=given["distillation_windows"] * window_tokens,
        training_tokens=(windows + given["fitting_windows"]) * window_tokens,
    )


def _window_tokens(settings: Mapping[str, Any]) -> int:
    return math.ceil(settings["sampling"]["window_characters"] / CHARACTERS_PER_TOKEN)


def _examples(model: Model, settings: Mapping[str, Any]) -> dict[str, int]:
    return {**EXAMPLES, **settings["tasks"][model.recipe["task"]].get("most", {})}


def gpus(work: Work) -> int:
    """GPUs of 80 GB over which a model is spread; one as a rule."""
    needed = work.weights * work.value_bytes / MB + 8 * work.values_at_once / MB + 1000
    return math.ceil(needed * MARGIN / GPU_MB)


def forward_memory(work: Work, threads: int) -> float:
    """Host memory of a forward pass: the weights, twice as they are read, and of each window batch its states.

    Of these, within a block about twice as much again; one batch waits to be written. With a GPU the libraries
    of CUDA are loaded.
    """
    values = 2 * work.weights + 3 * (threads + 1) * work.values_at_once
    return TORCH_MB + CUDA_MB + 4 * values / MB


def layer_memory(work: Work, threads: int = 1) -> float:
    """Memory of all measures of a layer or block.

    The layer, a few batches as float64, all products of a batch or a few matrices of the width, and lists of
    neighbours, of a batch some times.
    """
    d, vectors = work.hidden_size, min(work.tokens, 2 * work.batch_vectors)
    products = min(8 * vectors**2, PRODUCTS_BYTES) + 32 * vectors * d + 80 * d**2
    lists = (36 * work.tokens + 96 * vectors) * searched_neighbours(work.neighbours)
    return NUMPY_MB + 4 * work.layer_mb + (products + lists) / MB


def checkpoint_memory(work: Work, threads: int) -> float:
    """Memory of a checkpoint whose states are kept beside the weights, and of which `threads` layers are measured."""
    measured = TORCH_MB + threads * layer_memory(work)
    return work.states_mb + max(forward_memory(work, threads), measured)


def training_memory(work: Work, threads: int = 1) -> float:
    """Memory of a training: weights, gradients, two moments and the saved copy; activations.

    A block keeps about 34 bytes per token and coordinate where values have two (Korthikanti et al. 2022, Reducing
    Activation Recomputation in Large Transformer Models, equation 1; twice that, for the scores of attention),
    the output three times its logits.
    """
    vocabulary = work.weights // work.hidden_size - 12 * work.layers * work.hidden_size
    values = 34 * work.layers * work.hidden_size + 3 * vocabulary
    return TORCH_MB + 4 * (5 * work.weights + work.step_tokens * values) / MB


def editing_memory(work: Work, threads: int) -> float:
    """Memory of changing blocks: states of the windows that maps are fitted on, and a training of all weights."""
    return work.states_mb + forward_memory(work, 1) + training_memory(work)


def forward_minutes(work: Work, threads: int) -> float:
    """Time to fetch a checkpoint and run it: two operations per weight and token, twice for masked text."""
    moved = (work.weights * 4 + work.states_mb * MB) / BYTES_PER_SECOND
    return (4 * work.weights * work.tokens / (threads * CORE_FLOPS) + moved) / 60


def layer_minutes(work: Work, threads: int = 1) -> float:
    """Time of all measures of a layer or block: neighbours, spectra and fits, the latter without each group."""
    d, side = work.hidden_size, min(work.hidden_size, work.batch_vectors)
    batches = max(1, work.tokens // work.batch_vectors)
    searches = 2 * work.tokens * work.batch_vectors * d
    spectra = 2 * PARTS * (2 * work.tokens * d * side + 10 * batches * side**3)
    fits = 8 * work.tokens * d**2 + 4 * PARTS * d**3
    return (searches + spectra + fits) / CORE_FLOPS / 60


def checkpoint_minutes(work: Work, threads: int) -> float:
    """Time of a forward pass and of all measures, `threads` layers at a time."""
    rounds = math.ceil((work.layers + 1) / threads)
    return work.passes * (forward_minutes(work, threads) + rounds * layer_minutes(work))


def training_minutes(work: Work, threads: int) -> float:
    """Time of a training: six operations per weight and token; twice, since small matrices keep no core busy."""
    return 2 * 6 * work.weights * work.training_tokens / (threads * CORE_FLOPS) / 60


def asked_mb(needed: float, attempt: int = 1) -> int:
    """Memory to ask for: what is needed, a margin and Snakemake itself, and as much again per attempt."""
    return attempt * max(LEAST_MB, math.ceil(MARGIN * needed + SNAKEMAKE_MB))


def asked_minutes(needed: float, attempt: int = 1) -> int:
    """Time to ask for: twice what is needed and the start, and as much again per attempt."""
    return attempt * math.ceil(2 * needed + START_MINUTES)
