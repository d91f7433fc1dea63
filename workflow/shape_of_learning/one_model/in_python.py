"""A model or hidden states of the user's, measured in Python, and left as they were."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from shape_of_learning.checkpoints.shapes import role_of
from shape_of_learning.embeddings.forward_pass import ROUNDING, ForwardPass, rounding_of
from shape_of_learning.embeddings.run import SampleRun, StatesInMemory
from shape_of_learning.embeddings.tokenised_windows import tokenise
from shape_of_learning.errors import InputError
from shape_of_learning.metrics.measure import HiddenStates
from shape_of_learning.metrics.measure_entry import AFTER
from shape_of_learning.metrics.registry import OF_THE_PAPER
from shape_of_learning.metrics.selections import MeasuringProtocol
from shape_of_learning.one_model.measured import BATCH_VECTORS, NEIGHBOURS, measured, measures_named

if TYPE_CHECKING:
    import pandas as pd
    from transformers import PreTrainedModel

logger = logging.getLogger(__name__)


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
        If there is no such measure, the model is an encoder and a decoder, a text is too long for it, or there are
        not more tokens than the neighbours that are searched.

    Examples
    --------
    >>> states = np.random.default_rng(0).standard_normal((3, 20, 50, 16))  # two blocks
    >>> table = measure(states, measures=["anisotropy", "two_nn"])
    >>> table.pivot(index="layer", columns="estimator", values="value").shape
    (4, 2)
    """
    chosen = measures_named(measures)
    model = getattr(model, "module", model)  # of one that is spread over several GPUs
    if hasattr(model, "get_input_embeddings"):
        with _as_it_was(model):
            states: HiddenStates = _states_of(model, tokenizer, texts, name)
            role = role_of(model.config.to_dict()) or "decoder"
    else:
        states, role = GivenStates(model, mask), ""
    tokens = len(states.rows["windows"])
    if wrong := set(layers or ()) - set(range(states.layers + 1)):
        raise InputError(f"there is no layer {min(wrong)}; layers are 0 to {states.layers}")
    if batch_vectors <= NEIGHBOURS:
        raise InputError(f"`batch_vectors` is {batch_vectors}; give more than {NEIGHBOURS}")
    if tokens < batch_vectors:
        logger.warning("%d tokens are one batch, smaller than %d vectors", tokens, batch_vectors)
    windows = int(states.rows["windows"].max(initial=0)) + 1
    how = MeasuringProtocol(name, windows, seed, min(tokens, batch_vectors), NEIGHBOURS)
    if tokens <= how.neighbours:
        raise InputError(
            f"the texts have {tokens} tokens, but the neighbours of each are searched among more than "
            f"{how.neighbours}; give more texts"
        )
    places = [(layer, AFTER) for layer in layers or ()]
    table = measured(states, chosen, how, role, ("main", step, None), places).table()
    return table.assign(same_token=np.nan) if isinstance(states, GivenStates) else table


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


def _states_of(
    model: "PreTrainedModel", tokenizer: Any, texts: Sequence[str], name: str
) -> HiddenStates:
    """Run texts through a model that is loaded already."""
    if tokenizer is None or not len(texts) or isinstance(texts, str):
        raise InputError("a model needs its tokenizer and a list of texts")
    if hasattr(model.base_model, "encoder") and hasattr(model.base_model, "decoder"):
        raise InputError(
            "the model is an encoder and a decoder; give one, such as `model.get_encoder()`"
        )
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


@contextmanager
def _as_it_was(model: "PreTrainedModel") -> Iterator[None]:
    """Evaluate a model that may be in training, and leave no trace of it."""
    config, matmul = model.config, torch.backends.cuda.matmul
    keys = ("use_cache", "output_hidden_states", "output_attentions")
    own = {key: getattr(config, key) for key in keys if hasattr(config, key)}
    training = [module for module in model.modules() if module.training]
    threads = torch.get_num_threads()
    rounding = {path: rounding_of(path).fp32_precision for path in ROUNDING}
    reductions = [f"allow_{kind}_reduced_precision_reduction" for kind in ("bf16", "fp16")]
    reduced = {key: getattr(matmul, key) for key in reductions}
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
        for path, value in rounding.items():
            rounding_of(path).fp32_precision = value
        for key, value in reduced.items():
            setattr(matmul, key, value)
