"""One model on one text, without the workflow: what a notebook, a training loop and the command line call."""

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from shape_of_learning.errors import InputError
from shape_of_learning.metrics.measure import HiddenStates, Part, measure_layers
from shape_of_learning.metrics.measure_entry import AFTER, FAMILIES, Measure
from shape_of_learning.metrics.registry import find_measure, measure_names
from shape_of_learning.metrics.selections import MeasuringProtocol
from shape_of_learning.metrics.tables import (
    AtCheckpoint,
    Checkpoint,
    Curve,
    MeasuredModel,
    at_checkpoint,
    average,
    change_rows,
    estimate_rows,
)
from shape_of_learning.metrics.tidy import CHANGE_COLUMNS, ESTIMATE_COLUMNS, TidyRow
from shape_of_learning.refusals import unknown_name

if TYPE_CHECKING:
    import pandas as pd
    from transformers import PreTrainedModel

logger = logging.getLogger(__name__)

# What config.yaml has for the first paper, and how it takes them.
OF_THE_PAPER = (
    *("anisotropy", "anisotropy_without_massive_tokens", "anisotropy_uncentered"),
    *("average_cosine", "average_cosine_centered"),
    *("two_nn", "two_nn_authors", "mada", "mom", "mle"),
)
WINDOWS, WINDOW_CHARACTERS, BATCH_VECTORS, NEIGHBOURS = 128, 512, 4096, 128
ALPHABET_SIZE = 205
# Above it most neighbours of TwoNN are the same token, and it says more of the text than of the model.
MOST_COPIES = 0.5
KINDS = {"step": "Int64", "tokens": "Int64", "layer": "Int64"}
Progress = Callable[[str, int, int], None]  # what is done, how much of it, and how much there is


def measure(  # noqa: PLR0913 (keywords)
    model: Any,
    tokenizer: Any = None,
    texts: Sequence[str] = (),
    *,
    mask: Any = None,
    measures: Sequence[str] = OF_THE_PAPER,
    layers: Sequence[int] | None = None,
    name: str = "model",
    step: int | None = None,
    seed: int = 0,
    batch_vectors: int = BATCH_VECTORS,
) -> "pd.DataFrame":
    """Measure the hidden states of a model, with 95 % intervals.

    Parameters
    ----------
    model : transformers.PreTrainedModel, or sequence of arrays or tensors, each of shape (batch, token, hidden)
        A model, which is left as it was; or hidden states by layer, the embedding output first, such as
        ``output.hidden_states``. One array is one layer.
    tokenizer : transformers.PreTrainedTokenizerBase
        Of the model; hidden states need none.
    texts : sequence of str
        Each is a window and goes through the model alone. Intervals need 16 or more.
    mask : array_like of bool, shape (batch, token), optional
        Of hidden states: which are of tokens, and not of padding.
    measures : sequence of str
        Names of measures; by default those of the first paper.
    layers : sequence of int, optional
        0 is the embedding output; by default all.
    name, step : str, int
        Of the model, for the columns of these names; the name decides which vectors are in a batch together.
    seed : int
        As in the configuration.
    batch_vectors : int
        Vectors of a batch, 4,096 by the authors' protocol. With fewer tokens all are one batch, and the
        intrinsic dimension is not that of larger ones.

    Returns
    -------
    pandas.DataFrame
        The columns of ``tables/estimates.csv``, a row per measure and layer, and one of the mean over blocks,
        whose layer is missing. ``suspect`` is true of a TwoNN most of whose neighbours are copies.

    Raises
    ------
    InputError
        If there is no such measure, a text is too long for the model, or there are not more tokens than the
        neighbours that are searched.

    Examples
    --------
    >>> states = np.random.default_rng(0).standard_normal((3, 20, 50, 16))  # two blocks
    >>> table = measure(states, measures=["anisotropy", "two_nn"])
    >>> table.pivot(index="layer", columns="estimator", values="value").shape
    (4, 2)
    """
    chosen = _chosen(measures)
    if hasattr(model, "get_input_embeddings"):
        with _as_it_was(model):
            states: HiddenStates = _states_of(model, tokenizer, texts, name)
            role = "encoder" if _is_encoder(model) else "decoder"
    else:
        states, role = GivenStates(model, mask), ""
    tokens = len(states.rows["windows"])
    if tokens < batch_vectors:
        logger.warning("%d tokens are one batch, smaller than %d vectors", tokens, batch_vectors)
    how = MeasuringProtocol(
        name, int(states.rows["windows"].max()) + 1, seed, min(tokens, batch_vectors), NEIGHBOURS
    )
    if tokens <= how.neighbours:
        raise InputError(
            f"the texts have {tokens} tokens, but the neighbours of each are searched among more than "
            f"{how.neighbours}; give more texts"
        )
    places = [(layer, AFTER) for layer in layers or ()]
    return _measured(states, chosen, how, role, ("main", step, None), places).table()


@dataclass(frozen=True)
class Measured:
    """What was measured of one checkpoint.

    Attributes
    ----------
    model : MeasuredModel
    curves : list of (Curve, AtCheckpoint)
        Of each measure.
    """

    model: MeasuredModel
    curves: list[tuple[Curve, AtCheckpoint]]

    @property
    def estimates(self) -> list[list[object]]:
        """Cells of :data:`.ESTIMATE_COLUMNS`, as the workflow writes them."""
        rows = (estimate_rows(self.model, curve, [at]) for curve, at in self.curves)
        return [row for of_measure in rows for row in of_measure]

    def table(self) -> "pd.DataFrame":
        """The estimates, and in the column ``suspect`` whether TwoNN finds mostly copies."""
        import pandas as pd

        table = pd.DataFrame(self.estimates, columns=list(ESTIMATE_COLUMNS)).astype(KINDS)
        limits = table["estimator"].map(lambda each: find_measure(each).suspect_above)
        table["suspect"] = limits.notna() & (
            (table["near_duplicates"] > limits.astype(float)) | (table["same_token"] > MOST_COPIES)
        )
        return table

    def compared(self, other: "Measured") -> "pd.DataFrame":
        """How much higher another checkpoint is, measured on the same windows, with paired intervals.

        Returns
        -------
        pandas.DataFrame
            The columns of ``tables/changes.csv``. Layers are compared if both have as many; means over blocks
            in any case.
        """
        import pandas as pd

        rows = []
        are_alike = self.model.layers == other.model.layers
        for (curve, one), (_, two) in zip(self.curves, other.curves, strict=True):
            pair = [self._at(one, are_alike), other._at(two, are_alike)]
            rows += list(change_rows(self.model, curve, pair))
        columns = list(CHANGE_COLUMNS)
        return pd.DataFrame(rows, columns=columns).astype({"layer": "Int64"})

    def _at(self, at: AtCheckpoint, all_layers: bool) -> AtCheckpoint:
        """Its layers, or their mean alone, named after the model."""
        named = (f"{self.model.name}@{at.checkpoint[0]}", *at.checkpoint[1:])
        if all_layers:
            return at._replace(checkpoint=named)
        blocks = [row for layer, row in at.layers.items() if layer >= self.model.first]
        return AtCheckpoint(named, [], {self.model.first: average(blocks, blocks[0])})


def measure_checkpoint(  # noqa: PLR0913 (keywords)
    checkpoint: Path,
    text: Path,
    *,
    name: str,
    revision: str = "main",
    measures: Sequence[str] = OF_THE_PAPER,
    windows: int = WINDOWS,
    window_characters: int = WINDOW_CHARACTERS,
    seed: int = 0,
    batch_vectors: int = BATCH_VECTORS,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Measured:
    """Measure a checkpoint as the workflow does: the same rows of ``tables/estimates.csv``, bit for bit.

    Parameters
    ----------
    checkpoint : Path
        Folder in the format of transformers, with its tokenizer.
    text : Path
        Plain text in UTF-8, of which windows are drawn.
    name, revision : str
        Of the entry that the workflow would have.
    measures, windows, window_characters, seed, batch_vectors
        As in the configuration.
    threads : int, optional
        By default as many as there are cores.
    progress : callable, optional
        Is told what is done, how much of it, and how much there is.

    Returns
    -------
    Measured

    Raises
    ------
    InputError
        As the workflow, with one sentence for all that can be wrong with the checkpoint or the text.
    """
    from shape_of_learning.checkpoints.shapes import (
        Shape,
        completed,
        read_configuration_file,
        shape_of,
    )
    from shape_of_learning.corpus.clean import clean
    from shape_of_learning.embeddings.run import SampleRun, StatesInMemory
    from shape_of_learning.embeddings.tokenised_windows import SamplingProtocol, draw_windows

    chosen = _chosen(measures)
    shape = completed(Shape(), shape_of(read_configuration_file(checkpoint), name), name)
    sampling = SamplingProtocol(windows, window_characters, seed)
    threads = threads or len(os.sched_getaffinity(0))
    with TemporaryDirectory() as folder:
        cleaned, alphabet = Path(folder, text.name), Path(folder, "alphabet.json")
        clean(text, cleaned, alphabet, format="text", alphabet_size=ALPHABET_SIZE)
        drawn = draw_windows(cleaned, sampling)
    sample = SampleRun.load(
        checkpoint, drawn, sampling, asdict(shape), threads=threads, in_memory=True, with_head=False
    )
    states = StatesInMemory(sample)
    how = MeasuringProtocol(name, windows, seed, batch_vectors, NEIGHBOURS)
    how.require_batches(states.rows, chosen)
    sample.into(_Watched(states, windows, progress) if progress else states)
    return _measured(
        *(states, chosen, how, shape.role, (revision, None, None)),
        threads=threads if states.measured_on.type == "cpu" else 1,
        progress=progress,
    )


def _chosen(names: Sequence[str]) -> list[Measure]:
    """Look measures up, with the settings that are their own."""
    known, found = measure_names(), []
    for name in names:
        if name not in known:
            raise unknown_name(name, known, "measure", "the measures")
        measure = find_measure(name).chosen(name, {})
        if measure.family not in FAMILIES:
            raise InputError(f"`{name}` is of weights, not of hidden states; leave it out")
        if measure.family == "dimension" and not measure.neighbours:
            measure = replace(measure, neighbours=NEIGHBOURS)
        found.append(measure)
    return found


def _measured(
    states: HiddenStates,
    measures: Sequence[Measure],
    how: MeasuringProtocol,
    role: str,
    checkpoint: Checkpoint,
    places: Sequence[tuple[int, str]] = (),
    *,
    threads: int = 1,
    progress: Progress | None = None,
) -> Measured:
    """Measure the layers."""
    found: list[TidyRow] = []
    number, last = len(places) or states.layers + 1, None
    for layer, *_, rows in measure_layers(states, [Part(how, measures)], threads, places):
        found += rows
        if progress and layer != last:
            last = layer
            progress("layers", layer + 1, number)
    curves = []
    for measure in measures:
        if own := [row for row in found if row.estimator == measure.name]:
            curve = Curve(measure.name, measure.family, measure.interval, [checkpoint[0]])
            curves.append((curve, at_checkpoint(checkpoint, own, Path(how.model))))
    has_blocks = any(row.layer for row in found)
    averaged = "block_outputs" if has_blocks else "all_layers"
    model = MeasuredModel(how.model, role, max(states.layers, 1), [checkpoint], averaged)
    return Measured(model, curves)


class GivenStates:
    """Hidden states that a user has, as :class:`.HiddenStates`.

    Parameters
    ----------
    states : array_like or sequence of array_like or torch.Tensor, each of shape (batch, token, hidden)
    mask : array_like of bool, shape (batch, token), optional
    """

    def __init__(self, states: Any, mask: Any = None):
        states = [states] if getattr(states, "ndim", 0) == 3 else list(states)
        shapes = {tuple(np.shape(each)[:-1]) for each in states}
        if len(shapes) != 1 or len(shape := shapes.pop()) != 2:
            raise InputError(
                "hidden states must have the shape (batch, token, hidden), equal but for the last"
            )
        kept = np.ones(shape, bool) if mask is None else _array(mask).astype(bool)
        if kept.shape != shape:
            raise InputError(f"the mask has the shape {kept.shape}, but hidden states have {shape}")
        self.layers = len(states) - 1
        self._states, self._kept = states, kept
        windows, positions = np.nonzero(kept)
        self.rows: Mapping[str, np.ndarray] = {
            "windows": windows,
            "positions": positions - kept.argmax(axis=1)[windows],
            "token_ids": np.arange(len(windows)),  # unknown, so no two are said to be the same
            "special": np.zeros(len(windows), bool),
        }

    def __getitem__(self, state: int) -> np.ndarray:
        """One hidden state, float32 of shape (tokens, hidden)."""
        return _array(self._states[state])[self._kept].astype(np.float32, copy=False)


def _array(given: Any) -> np.ndarray:
    return given.detach().float().cpu().numpy() if hasattr(given, "detach") else np.asarray(given)


class _Watched:
    """Passes hidden states on, and says how many windows are done."""

    def __init__(self, states: Any, windows: int, progress: Progress):
        self._states, self._windows, self._progress = states, windows, progress
        self.device, self._done = states.device, 0

    def write(self, state: int, rows: slice, values: Any) -> None:
        self._states.write(state, rows, values)
        if state == self._states.layers:
            self._done += 1
            self._progress("windows", self._done, self._windows)


def _states_of(
    model: "PreTrainedModel", tokenizer: Any, texts: Sequence[str], name: str
) -> HiddenStates:
    """Run texts through a model that is loaded already."""
    from shape_of_learning.embeddings.forward_pass import ForwardPass
    from shape_of_learning.embeddings.run import SampleRun, StatesInMemory
    from shape_of_learning.embeddings.tokenised_windows import tokenise

    if tokenizer is None or not len(texts) or isinstance(texts, str):
        raise InputError("a model needs its tokenizer and a list of texts")
    import torch

    threads = torch.get_num_threads()
    forward = ForwardPass(model.base_model, None, last_layer=AFTER)
    tokenised = tokenise(tokenizer, texts)
    forward.refuse_unsuitable(tokenised, name)
    widths = [len(state[0, 0]) for state in forward.hidden_states(tokenised[:1], 0)[0]]
    padding = tokenizer.pad_token_id or 0
    sample = SampleRun(forward, name, tokenised, None, padding, len(widths) - 1, widths, threads)
    states = StatesInMemory(sample)
    sample.into(states)
    return states


def _is_encoder(model: "PreTrainedModel") -> bool:
    from shape_of_learning.checkpoints.shapes import role_of

    return role_of(model.config.to_dict()) == "encoder"


@contextmanager
def _as_it_was(model: "PreTrainedModel") -> Iterator[None]:
    """Evaluate a model that may be in training, and leave no trace of it."""
    import torch

    config, matmul = model.config, torch.backends.cuda.matmul
    own = {key: getattr(config, key, None) for key in ("use_cache", "output_hidden_states")}
    training = [module for module in model.modules() if module.training]
    threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
    flags = matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    reduced = (
        matmul.allow_bf16_reduced_precision_reduction,
        matmul.allow_fp16_reduced_precision_reduction,
    )
    try:
        with torch.random.fork_rng():
            model.eval()
            yield
    finally:
        for module in training:
            module.training = True
        for key, value in own.items():
            setattr(config, key, value)
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision(precision)
        matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = flags
        matmul.allow_bf16_reduced_precision_reduction = reduced[0]
        matmul.allow_fp16_reduced_precision_reduction = reduced[1]
