"""What jobs need, from the shape of the model and the size of the sample: memory, disk, minutes.

Everything here is an upper bound that is asked of a scheduler before a job runs, not a measurement
after it; `docs/resources.md` compares some. Memory and disk are in
megabytes of 10^6 bytes, as Snakemake's ``mem_mb``.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shape_of_learning.metrics.measure_entry import searched_neighbours
from shape_of_learning.plan.model import Model

MB = 1e6
VALUE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
# Vocabulary of a model whose entry does not say: BLOOM's, the largest of the list. It also covers the
# two tables of a model with half of it whose output does not share the input's.
LARGEST_VOCABULARY = 250_880
# Lower bound: the demo's tokenizer, of 2048 entries, makes 3.9 of English text, GPT-2's 4.4.
CHARACTERS_PER_TOKEN = 3
# The two Snakemake processes around each job on a cluster, 120 MB each, and their shell.
SNAKEMAKE_MB = 300
NUMPY_MB = 150  # interpreter, NumPy, SciPy, h5py and the buffers of a matrix product
PRODUCTS_BYTES = 2**28  # as in neighbours.py: of more vectors, the products come a block at a time
TORCH_MB = 600  # interpreter, PyTorch and Transformers
TOKENS_ON_A_GPU = 4096  # of a window batch, as in embeddings/window_batch_size.py
CUDA_HOST_MB = 3000  # libraries of CUDA, as far as they are loaded
CUDA_MB = 1000  # context, kernels and what the allocator rounds up
LEAST_MB = 1000
MARGIN = 1.2
# Largest memory of one GPU that is counted on; above it, a model is spread over several.
GPU_MB = 80_000
# Slow on purpose: an old core, a card without tensor cores, a file system that others use as well.
CORE_FLOPS = 2e10
GPU_FLOPS = 5e12
BYTES_PER_SECOND = 100e6
DOWNLOAD_BYTES_PER_SECOND = 10e6
START_MINUTES = 5
# Measured: enwik8 takes ten minutes of two cores; an estimate from a neighbour search takes half a second.
CLEANING_MINUTES = 30
DIMENSION_MINUTES = 0.1
# Spectra of a batch: with all windows, and without each of 16 groups of them.
SPECTRA = 17
# Of a pair, likewise; and its matrices of products.
PARTS, PAIR_MATRICES = 17, 10


@dataclass(frozen=True)
class Work:
    """One checkpoint and the sample that is run through it.

    Attributes
    ----------
    layers, hidden_size : int
        Transformer blocks and width.
    windows, window_characters : int
        The sample.
    window_batch_size : int
        Windows that go through the model together.
    batch_vectors, neighbours : int
        Vectors per measured batch, and nearest others that are searched of each.
    vocabulary : int
        Entries of the vocabulary, or a bound on them.
    precision : str
        Of weights and activations in the forward pass.
    before_final_norm : bool
        Whether the state before the final norm is kept beside the one after it.
    """

    layers: int
    hidden_size: int
    windows: int
    window_characters: int
    window_batch_size: int = 16
    batch_vectors: int = 4096
    neighbours: int = 128
    vocabulary: int = LARGEST_VOCABULARY
    precision: str = "float32"
    before_final_norm: bool = False

    @classmethod
    def of(cls, model: Model, settings: Mapping[str, Any]) -> "Work":
        """A checkpoint of `model` under the settings of a configuration."""
        batch_size = settings["forward"]["batch_size"]
        return cls(
            layers=model.shape.layers,
            hidden_size=model.shape.hidden_size,
            windows=settings["sampling"]["windows"],
            window_characters=settings["sampling"]["window_characters"],
            window_batch_size=cls.window_batch_size if batch_size == "auto" else batch_size,
            batch_vectors=settings["measurement"]["batch_vectors"],
            neighbours=settings["measurement"]["neighbours"],
            vocabulary=model.source.vocabulary
            or (model.table_1 or {}).get("vocabulary", LARGEST_VOCABULARY),
            precision=model.precision or settings["forward"]["precision"],
            before_final_norm=settings["forward"]["last_layer"] == "both",
        )

    @property
    def states(self) -> int:
        """Number of hidden states that are kept."""
        return self.layers + 1 + self.before_final_norm

    @property
    def weights(self) -> int:
        """Number of weights: 12 L d^2 + V d.

        A block has 4 d^2 in its attention and 8 d^2 in its feed-forward layers, in Llama, whose three
        matrices are narrower, about the same. ALBERT shares one block among its layers: for it, and
        only for it, this is far too much.
        """
        blocks = 12 * self.layers * self.hidden_size**2
        return blocks + self.vocabulary * self.hidden_size

    @property
    def tokens(self) -> int:
        """Bound on the tokens of the sample."""
        return self.windows * math.ceil(self.window_characters / CHARACTERS_PER_TOKEN)

    @property
    def weights_mb(self) -> float:
        """Memory of the weights in the forward pass."""
        return self.weights * VALUE_BYTES[self.precision] / MB

    @property
    def window_batch_mb(self) -> float:
        """Memory of the hidden states of one window batch, all layers."""
        tokens = min(self.window_batch_size, self.windows) * self.tokens / self.windows
        return tokens * self.states * self.hidden_size * VALUE_BYTES[self.precision] / MB

    @property
    def layer_mb(self) -> float:
        """Size of the hidden states of one layer, which are stored as float32."""
        return self.tokens * self.hidden_size * 4 / MB

    @property
    def measured_vectors(self) -> int:
        """Vectors of one batch at most.

        What remains of the sample is spread over the batches, so that one can be nearly twice as long as
        `batch_vectors` says.
        """
        return min(self.tokens, 2 * self.batch_vectors)

    @property
    def measured_mb(self) -> float:
        """Memory of one measured batch as float64."""
        return self.measured_vectors * self.hidden_size * 8 / MB


def download_mb(work: Work) -> float:
    """Disk of one checkpoint as it is downloaded: weights of at most four bytes, whatever they are run in."""
    return work.weights * 4 / MB


def dump_mb(work: Work) -> float:
    """Disk of the hidden states of one checkpoint, each row with what it is, and of its matrices."""
    return work.states * (work.layer_mb + work.tokens * 25 / MB) + matrices_mb(work)


def forward_memory_mb(work: Work, threads: int, *, on_gpu: bool = False) -> float:
    """Host memory of a forward pass.

    Weights are read from mapped files or, from pickled ones, into a second copy of two bytes or four each,
    of which only the larger case is counted on: twice the weights. `threads` window batches are computed
    at a time and one waits to be written; of each there are its hidden states, and about twice as much again
    within a block. Of a GPU's larger ones, all layers of two wait to be written and a third is copied.
    """
    if on_gpu:
        waiting = 3 * TOKENS_ON_A_GPU * work.states * work.hidden_size * 4 / MB
        return TORCH_MB + CUDA_HOST_MB + 2 * work.weights_mb + waiting
    return TORCH_MB + 2 * work.weights_mb + (threads + 1) * 3 * work.window_batch_mb


def gpu_memory_mb(work: Work) -> float:
    """Memory of a forward pass on GPUs, all of them together.

    Weights once, hidden states of one window batch and a copy as float32 on their way out, one block's inner
    activations (four times the width in one layer, twice) and one block of logits (64 MiB).
    """
    inner = 8 * work.window_batch_mb / work.states
    copies = 1 + 4 / VALUE_BYTES[work.precision]
    return CUDA_MB + work.weights_mb + copies * work.window_batch_mb + inner + 2**26 / MB


def gpus(work: Work) -> int:
    """GPUs of 80 GB over which the model has to be spread; one as a rule."""
    return math.ceil(gpu_memory_mb(work) * MARGIN / GPU_MB)


def forward_minutes(work: Work, *, threads: int = 1, on_gpu: bool) -> float:
    """Time of reading the weights, of the forward pass and of writing the hidden states.

    Two operations per weight and token; twice as many passes as for a decoder, since an encoder is run on
    masked text as well.
    """
    speed = GPU_FLOPS if on_gpu else threads * CORE_FLOPS
    passes = 2 * 2 * work.weights * work.tokens / speed
    return (passes + (download_mb(work) + dump_mb(work)) * MB / BYTES_PER_SECOND) / 60


def isotropy_memory_mb(work: Work) -> float:
    """Memory of an anisotropy or a cosine: the layer, a batch as float64 and centred, and a Gram matrix.

    At worst what is left without a group of windows is beside it, likewise.
    A spectrum without a leading direction takes that, of as many rows as the batch has rows or columns.
    """
    gram = 8 * min(work.measured_vectors, work.hidden_size) ** 2 / MB
    return NUMPY_MB + work.layer_mb + 4 * work.measured_mb + gram


def isotropy_minutes(work: Work) -> float:
    """Time of an anisotropy: n d min(d, 1024) products, far more than Lanczos iteration takes as a rule.

    Without each of 16 groups of windows, it takes five passes with 32 products per number as a rule, or a few
    times as many: as for 1024.
    """
    operations = 2 * work.tokens * work.hidden_size * (min(work.hidden_size, 1024) + 1024)
    return operations / CORE_FLOPS / 60


def neighbours_memory_mb(work: Work) -> float:
    """Memory of a neighbour search: the layer, three copies of a batch, and all products of its vectors.

    The copies are the batch as float64, its distinct rows where there are others, and these shifted. What is
    found, distances and indices, is beside the file that is made of it, twice.
    """
    products = min(8 * work.batch_vectors**2, PRODUCTS_BYTES) / MB
    lists = (16 + 2 * 10) * work.tokens * searched_neighbours(work.neighbours) / MB
    return NUMPY_MB + work.layer_mb + 3 * work.measured_mb + products + lists


def neighbours_minutes(work: Work) -> float:
    """Time of a neighbour search: products of all pairs within batches."""
    return 2 * work.tokens * work.batch_vectors * work.hidden_size / CORE_FLOPS / 60


def spectra_minutes(work: Work) -> float:
    """Time of the spectra of a layer, seventeen to a batch.

    Each takes a Gram matrix, and ten times the cube of its side for its eigenvalues.
    """
    side = min(work.measured_vectors, work.hidden_size)
    batches = max(1, work.tokens // work.batch_vectors)
    operations = SPECTRA * (2 * work.tokens * work.hidden_size * side + 10 * batches * side**3)
    return operations / CORE_FLOPS / 60


def measure_memory_mb(work: Work, family: str) -> float:
    """Memory of a family of measures of one layer.

    Lists of neighbours of a batch are copied six times: without a group of windows, and to compute with. Of
    spectra, and of measures of vectors without a faster way to leave groups out, there may be eigenvectors:
    three matrices beside the Gram matrix.
    """
    if family == "linearity":
        return pairs_memory_mb(work)
    if family == "dimension":
        lists = 6 * 16 * work.batch_vectors * searched_neighbours(work.neighbours) / MB
        return neighbours_memory_mb(work) + lists
    return isotropy_memory_mb(work) + 3 * 8 * work.hidden_size**2 / MB


def measure_minutes(work: Work, family: str) -> float:
    """Time of it; of two selections of rows, as there may be of blocks."""
    if family == "linearity":
        return pairs_minutes(work, 2) / work.layers
    if family == "dimension":
        return neighbours_minutes(work) + 10 * DIMENSION_MINUTES
    if family == "spectrum":
        return 2 * spectra_minutes(work)
    return 4 * isotropy_minutes(work)


def matrices_mb(work: Work) -> float:
    """Size of the input and the output embeddings as float32."""
    return 2 * work.vocabulary * work.hidden_size * 4 / MB


def pairs_memory_mb(work: Work) -> float:
    """Memory of all measures of a block: what it takes and gives, their selected rows, and sums of products.

    Of the latter there are a few matrices as wide as the model: of all rows, of a part, and factors.
    """
    return NUMPY_MB + 4 * work.layer_mb + PAIR_MATRICES * 8 * work.hidden_size**2 / MB


def pairs_minutes(work: Work, selections: int) -> float:
    """Time of all measures of all blocks, of so many selections of rows.

    Each takes two sums of products, and factors without each group of windows.
    """
    sums = 2 * 2 * work.tokens * work.hidden_size**2
    factors = PARTS * 2 * work.hidden_size**3
    return selections * work.layers * (sums + factors) / CORE_FLOPS / 60


def checkpoint_memory_mb(
    work: Work, threads: int, *, on_gpu: bool = False, pairs: int = 0
) -> float:
    """Memory of a forward pass whose hidden states are all kept, and then measured.

    They are kept beside the weights; when these are gone, `threads` layers are measured at a time. Where a
    GPU has no room for them, the host keeps them. `pairs` is the number of selections of rows of which pairs
    are measured.
    """
    states = work.states * work.layer_mb
    running = forward_memory_mb(work, threads, on_gpu=on_gpu)
    largest = max(neighbours_memory_mb(work), isotropy_memory_mb(work))
    measuring = threads * max(largest, pairs_memory_mb(work) if pairs else 0)
    return states + (running if on_gpu else max(running, TORCH_MB + measuring))


def checkpoint_minutes(work: Work, *, threads: int, on_gpu: bool, pairs: int = 0) -> float:
    """Time of a forward pass and of all measurements, `threads` layers at a time; `pairs` as above."""
    layer = 2 * isotropy_minutes(work) + neighbours_minutes(work) + DIMENSION_MINUTES
    layer += pairs_minutes(work, pairs) / work.layers
    rounds = math.ceil((work.layers + 1) / threads)
    return forward_minutes(work, threads=threads, on_gpu=on_gpu) + rounds * layer


def pretraining_memory_mb(work: Work, batch_tokens: int, *, on_gpu: bool = False) -> float:
    """Host memory of a pretraining: weights, gradients, two moments and the saved copy; activations.

    On a GPU the host has the weights and the saved copy.

    A block keeps about 34 bytes per token and coordinate for its gradient where values have two bytes, hence
    17 values (Korthikanti et al. 2022, Reducing Activation Recomputation in Large Transformer Models,
    equation 1; twice that here, for what it leaves out: the scores of attention). The output keeps three
    times its logits.
    """
    weights_mb = work.weights * 4 / MB  # whatever they are run in
    if on_gpu:
        return TORCH_MB + CUDA_HOST_MB + 2 * weights_mb
    values = 34 * work.layers * work.hidden_size + 3 * work.vocabulary
    return TORCH_MB + 5 * weights_mb + batch_tokens * values * 4 / MB


def pretraining_minutes(work: Work, tokens: int, threads: int, *, on_gpu: bool = False) -> float:
    """Time of a pretraining on so many tokens: six operations per weight and token.

    Twice that, since small matrices keep no core busy, nor a GPU.
    """
    speed = GPU_FLOPS if on_gpu else threads * CORE_FLOPS
    return 2 * 6 * work.weights * tokens / speed / 60


def corpus_memory_mb(processes: int) -> float:
    """Memory of cleaning: batches of articles are bounded, whatever the corpus."""
    return NUMPY_MB * (1 + processes)


def download_minutes(work: Work) -> float:
    """Time of a download."""
    return download_mb(work) * MB / DOWNLOAD_BYTES_PER_SECOND / 60


def asked_mb(needed: float, attempt: int = 1) -> int:
    """Memory to ask for: what is needed, a margin and Snakemake itself, and as much again per attempt."""
    return attempt * max(LEAST_MB, math.ceil(MARGIN * needed + SNAKEMAKE_MB))


def asked_minutes(needed: float, attempt: int = 1) -> int:
    """Time to ask for: twice what is needed and the start, and as much again per attempt."""
    return attempt * math.ceil(2 * needed + START_MINUTES)


def asked_minutes_in_group(needed: float, attempt: int = 1, *, starts: bool) -> int:
    """Time to ask for a job that shares its start with hundreds of others, whose times are added up."""
    return attempt * math.ceil(needed + 0.1 + (START_MINUTES if starts else 0))
