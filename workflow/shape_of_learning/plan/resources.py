"""What jobs ask of a scheduler, from the shape of a model and the size of a sample: memory and minutes.

Bounds that are asked for before a job runs, not measurements after it, and multiplied by its `attempt`. Nothing
here limits a run on one machine. Memory is in megabytes of 10^6 bytes, as Snakemake's ``mem_mb``.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from shape_of_learning.metrics.measure_entry import searched_neighbours
from shape_of_learning.plan.model import Model

MB = 1e6
VALUE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
LARGEST_VOCABULARY = 250_880  # BLOOM's, of a model whose entry does not say
CHARACTERS_PER_TOKEN = 3  # at least: the demo's tokenizer makes 3.9 of English text
SNAKEMAKE_MB = 300  # the two processes around a job on a cluster
NUMPY_MB, TORCH_MB, CUDA_MB = 150, 600, 3000  # interpreter and libraries; CUDA's, in host memory
PRODUCTS_BYTES = 2**28  # of vectors with each other, at a time
GPU_MB = 80_000  # of one card; a larger model is spread over several
LEAST_MB, MARGIN = 1000, 1.2
# Slow on purpose: an old core, a card without tensor cores, a file system that others use as well.
CORE_FLOPS, GPU_FLOPS = 2e10, 5e12
BYTES_PER_SECOND, DOWNLOAD_BYTES_PER_SECOND = 100e6, 10e6
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
    layers, hidden_size, vocabulary : int
        Transformer blocks, width, and entries of the vocabulary or a bound on them.
    windows, window_characters, window_batch_size : int
        The sample, and how many windows go through the model together.
    batch_vectors, neighbours : int
        Vectors per measured batch, and nearest others that are searched of each.
    value_bytes : int
        Of weights and activations.
    batch_tokens, training_tokens : int
        Of a training of this run: of a step, and of all of them.
    texts, checkpoints : int
        Of a fine-tuning: examples of its task, and checkpoints that are measured.
    editing : mapping
        Section ``block_editing``.
    """

    layers: int
    hidden_size: int
    windows: int
    window_characters: int
    window_batch_size: int = 16
    batch_vectors: int = 4096
    neighbours: int = 128
    vocabulary: int = LARGEST_VOCABULARY
    value_bytes: int = 4
    batch_tokens: int = 0
    training_tokens: int = 0
    texts: int = 0
    checkpoints: int = 1
    editing: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Model, settings: Mapping[str, Any]) -> "Work":
        """A checkpoint of `model` under the settings of a configuration."""
        forward, measurement = settings["forward"], settings["measurement"]
        at_once, batch, training, texts = forward["batch_size"], 0, 0, 0
        if model.kind == "pretraining":
            batch, training = (
                model.tokens_per_step,
                model.recipe["last_step"] * model.tokens_per_step,
            )
        elif model.kind == "finetuning":
            allowed = {**EXAMPLES, **settings["tasks"][model.recipe["task"]].get("most", {})}
            shown = model.recipe["epochs"] * allowed["train"]
            shown += len(model.saved_steps) * allowed["held_out"]
            batch, training = model.recipe["batch_size"] * EXAMPLE_TOKENS, shown * EXAMPLE_TOKENS
            texts = sum(allowed.values())
        return cls(
            layers=model.shape.layers,
            hidden_size=model.shape.hidden_size,
            windows=settings["sampling"]["windows"],
            window_characters=settings["sampling"]["window_characters"],
            window_batch_size=cls.window_batch_size if at_once == "auto" else at_once,
            batch_vectors=measurement["batch_vectors"],
            neighbours=measurement["neighbours"],
            vocabulary=model.vocabulary or LARGEST_VOCABULARY,
            value_bytes=VALUE_BYTES[model.precision or forward["precision"]],
            batch_tokens=batch,
            training_tokens=training,
            texts=texts,
            checkpoints=max(1, len(model.checkpoints)),
            editing=settings["block_editing"],
        )

    def on_task(self) -> "Work":
        """The same checkpoint with the examples of its task for windows."""
        characters = EXAMPLE_TOKENS * CHARACTERS_PER_TOKEN
        return replace(self, windows=self.texts, window_characters=characters)

    @property
    def weights(self) -> int:
        """Number of weights: 12 L d^2 + V d; for ALBERT, which repeats one block, far too many."""
        return 12 * self.layers * self.hidden_size**2 + self.vocabulary * self.hidden_size

    @property
    def window_tokens(self) -> int:
        """Bound on the tokens of a window."""
        return math.ceil(self.window_characters / CHARACTERS_PER_TOKEN)

    @property
    def tokens(self) -> int:
        """Bound on the tokens of the sample."""
        return self.windows * self.window_tokens

    @property
    def layer_mb(self) -> float:
        """Size of the hidden states of one layer, which are stored as float32."""
        return self.tokens * self.hidden_size * 4 / MB

    @property
    def states_mb(self) -> float:
        """The same of all layers, and of the state before the final norm."""
        return (self.layers + 2) * self.layer_mb

    @property
    def window_batch_mb(self) -> float:
        """Hidden states of one window batch, all layers."""
        return self.states_mb * min(1, self.window_batch_size / self.windows)


def gpus(work: Work) -> int:
    """GPUs of 80 GB over which a model is spread; one as a rule."""
    needed = work.weights * work.value_bytes / MB + 2 * work.window_batch_mb
    return math.ceil((needed + 1000) * MARGIN / GPU_MB)


def forward_memory(work: Work, threads: int) -> float:
    """Host memory of a forward pass: the weights, twice as they are read, and of each window batch its states.

    Of these, within a block about twice as much again; one batch waits to be written. With a GPU the libraries
    of CUDA are loaded.
    """
    return TORCH_MB + CUDA_MB + 2 * work.weights * 4 / MB + (threads + 1) * 3 * work.window_batch_mb


def layer_memory(work: Work, threads: int = 1) -> float:
    """Memory of all measures of a layer or block.

    The layer, a few batches as float64, all products of a batch or a few matrices of the width, and lists of
    neighbours, of a batch some times.
    """
    vectors = min(work.tokens, 2 * work.batch_vectors)
    batch = vectors * work.hidden_size * 8 / MB
    products = min(8 * vectors**2, PRODUCTS_BYTES) / MB
    lists = (36 * work.tokens + 96 * vectors) * searched_neighbours(work.neighbours) / MB
    squares = 10 * 8 * work.hidden_size**2 / MB
    return NUMPY_MB + 4 * work.layer_mb + 4 * batch + products + lists + squares


def checkpoint_memory(work: Work, threads: int) -> float:
    """Memory of a checkpoint whose states are kept beside the weights, and of which `threads` layers are measured."""
    return work.states_mb + max(
        forward_memory(work, threads), TORCH_MB + threads * layer_memory(work)
    )


def training_memory(work: Work, threads: int = 1) -> float:
    """Memory of a training: weights, gradients, two moments and the saved copy; activations.

    A block keeps about 34 bytes per token and coordinate where values have two (Korthikanti et al. 2022, Reducing
    Activation Recomputation in Large Transformer Models, equation 1; twice that, for the scores of attention),
    the output three times its logits.
    """
    values = 34 * work.layers * work.hidden_size + 3 * work.vocabulary
    return TORCH_MB + 5 * work.weights * 4 / MB + work.batch_tokens * values * 4 / MB


def editing_memory(work: Work, threads: int = 1) -> float:
    """Memory of changing blocks: states of the windows that maps are fitted on, and a distillation of all weights."""
    states = replace(work, windows=work.editing["fitting_windows"]).states_mb
    tokens = work.editing["distillation_windows"] * work.window_tokens
    return forward_memory(work, 1) + states + training_memory(replace(work, batch_tokens=tokens))


def forward_minutes(work: Work, threads: int) -> float:
    """Time of a forward pass: two operations per weight and token; twice, since an encoder has masked text, too."""
    moved = (work.weights * 4 / MB + work.states_mb) * MB / BYTES_PER_SECOND
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
    return forward_minutes(work, threads) + rounds * layer_minutes(work)


def task_minutes(work: Work, threads: int) -> float:
    """Time of all checkpoints of a fine-tuning on its task; probes read 32 directions for some thirty adjustments."""
    texts = work.on_task()
    probes = 8_000 * texts.tokens * (work.hidden_size + 1_000) / CORE_FLOPS / 60
    return work.checkpoints * (checkpoint_minutes(texts, threads) + probes)


def training_minutes(work: Work, threads: int) -> float:
    """Time of a training: six operations per weight and token; twice, since small matrices keep no core busy."""
    return 2 * 6 * work.weights * work.training_tokens / (threads * CORE_FLOPS) / 60


def editing_minutes(work: Work, threads: int = 1) -> float:
    """Time of all evaluations and distillations: as many as there are orders, kinds and numbers of blocks."""
    editing = work.editing
    sets = len(editing["orders"]) * editing["most_blocks"] + work.layers
    distilled = sum(kind.endswith("distilled") for kind in editing["kinds"])
    shown = editing["distillation_steps"] * editing["distillation_windows"]
    passes = 2 * len(editing["kinds"]) * editing["evaluation_windows"] + 6 * distilled * shown
    fits = 4 * work.layers * editing["fitting_windows"] * work.window_tokens * work.hidden_size**2
    return (sets * passes * work.window_tokens * work.weights + fits) / CORE_FLOPS / 60


def download_minutes(work: Work, threads: int = 1) -> float:
    """Time of a download."""
    return work.weights * 4 / DOWNLOAD_BYTES_PER_SECOND / 60


def asked_mb(needed: float, attempt: int = 1) -> int:
    """Memory to ask for: what is needed, a margin and Snakemake itself, and as much again per attempt."""
    return attempt * max(LEAST_MB, math.ceil(MARGIN * needed + SNAKEMAKE_MB))


def asked_minutes(needed: float, attempt: int = 1) -> int:
    """Time to ask for: twice what is needed and the start, and as much again per attempt."""
    return attempt * math.ceil(2 * needed + START_MINUTES)
