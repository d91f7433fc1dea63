"""A model or hidden states of the user's, measured in Python, and left as they were."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from shape_of_learning.checkpoints.shapes import role_of
from shape_of_learning.embeddings.forward_pass import ForwardPass
from shape_of_learning.embeddings.model import sees_later_tokens
from shape_of_learning.embeddings.run import SampleRun, StatesInMemory
from shape_of_learning.embeddings.tokenised_windows import tokenise
from shape_of_learning.errors import InputError
from shape_of_learning.metrics.measure_entry import AFTER
from shape_of_learning.metrics.registry import OF_THE_PAPER
from shape_of_learning.metrics.selections import HiddenStates, MeasuringProtocol
from shape_of_learning.one_model.defaults import BATCH_VECTORS, NEIGHBOURS
from shape_of_learning.one_model.loaded_model import LoadedModel, left_as_it_was
from shape_of_learning.one_model.measured import measured, measures_named

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)

# What a user of Python does about what jobs and commands come upon, too, by a word of what these are told to do.
REMEDIES = {
    "of a task": "give shorter `texts`",
    "sampling.window_characters": "give shorter `texts`, or a model whose weights have a smaller type",
    "its own tokenizer": "give the model's own `tokenizer`",
    "config.json": "give the `tokenizer` of the model, and a `model` that runs on `tokenizer(texts[0])`",
    "config/models": "give a part of the model, or its hidden states",
    "if its tokenizer": "leave it out of `texts`",
}
LEAST_ADDED = -1000  # to attention, where it is masked


def measure(  # noqa: PLR0913 (keywords)
    model: Any,
    tokenizer: Any = None,
    texts: Iterable[str] = (),
    *,
    mask: Any = None,
    measures: Iterable[str] = OF_THE_PAPER,
    layers: int | Iterable[int] | None = None,
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
        ``output.hidden_states``. One array is one layer. A model of the package `peft` is measured with its active
        adapters, which ``table.attrs["adapters"]`` names; of virtual tokens the text's own tokens are measured, which
        see them. Of a sharded model (FSDP, tensor parallelism) all processes have to call this together.
    tokenizer : transformers.PreTrainedTokenizerBase, or a processor that has one
        Of the model; hidden states need none.
    texts : iterable of str
        Each is a window and goes through the model alone. Intervals need 16 or more.
    mask : array_like, shape (batch, token), optional
        Of hidden states: which are of tokens, and not of padding, as True and False, 1 and 0, or what is added to
        attention, 0 and -inf. Masked arrays have their own.
    measures : iterable of str
        Names of measures; by default those of the first paper.
    layers : int or iterable of int, optional
        0 is the embedding output, -1 the last layer; by default all.
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
        whose layer is missing. ``suspect`` is true of a TwoNN most of whose neighbours are copies. A mean is NaN if
        hidden states of one of its blocks hold NaN or infinity.

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
    chosen, adapters = measures_named(measures), {}
    if isinstance(model, torch.nn.Module):
        loaded = LoadedModel.of(model)
        loaded.require_all_ranks("measure")
        with left_as_it_was(loaded), in_words_of_python():
            sample = sample_of(loaded, tokenizer, texts, name)
            states: HiddenStates = StatesInMemory(sample)
            sample.into(states)  # type: ignore[arg-type]
            role, adapters = role_in_tables(loaded), loaded.adapters
    else:
        states, role = GivenStates(_states_in(model), mask), ""
    places = [(layer, AFTER) for layer in chosen_layers(layers, states.layers)]
    how = protocol_of(states.rows, name, seed, batch_vectors)
    say_size(how, len(states.rows["windows"]), batch_vectors)
    table = measured(states, chosen, how, role, ("main", step, None), places).table()
    table.attrs["adapters"] = adapters
    return table.assign(same_token=np.nan) if isinstance(states, GivenStates) else table


def protocol_of(
    rows: Mapping[str, np.ndarray], name: str, seed: int = 0, batch_vectors: int = BATCH_VECTORS
) -> MeasuringProtocol:
    """Say how hidden states of these rows are measured; InputError if they are too few."""
    tokens = len(rows["windows"])
    if not isinstance(batch_vectors, int | np.integer) or batch_vectors <= NEIGHBOURS:
        raise InputError(f"`batch_vectors` is {batch_vectors}; give more than {NEIGHBOURS}")
    if tokens <= NEIGHBOURS:
        raise InputError(
            f"the texts have {tokens} tokens, but the neighbours of each are searched among more than "
            f"{NEIGHBOURS}; give more texts"
        )
    windows = int(rows["windows"].max()) + 1
    return MeasuringProtocol(name, windows, seed, min(tokens, batch_vectors), NEIGHBOURS)


def say_size(how: MeasuringProtocol, tokens: int, batch_vectors: int = BATCH_VECTORS) -> None:
    """Warn of a batch that is smaller than it should be, on whose size dimensions depend."""
    if how.batch_vectors < batch_vectors:
        logger.warning("%d tokens are one batch, smaller than %d vectors", tokens, batch_vectors)


def chosen_layers(layers: int | Iterable[int] | None, last: int) -> list[int]:
    """Number layers from 0 to `last`, which is also -1; InputError if there is no such layer."""
    if layers is None:
        return list(range(last + 1))
    for layer in (wanted := whole_numbers(layers)):
        if not -last - 1 <= layer <= last:
            raise InputError(f"there is no layer {layer}; layers are 0 to {last}")
    return list(dict.fromkeys(layer % (last + 1) for layer in wanted))


def whole_numbers(layers: int | Iterable[int]) -> list[int]:
    """List layers; InputError if they are no whole numbers."""
    try:
        wanted = [index(each) for each in (layers if isinstance(layers, Iterable) else [layers])]
    except TypeError:
        raise InputError(
            f"`layers` is {layers!r:.80}; give whole numbers, such as [1, -1]"
        ) from None
    if not wanted:
        raise InputError("`layers` is empty; give some, or leave it out")
    return wanted


def listed_texts(texts: Iterable[str]) -> list[str]:
    """List texts; InputError if they are none, or no texts."""
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise InputError(f"`texts` is {texts!r:.80}; give a list of texts")
    if not (listed := list(texts)):
        raise InputError("`texts` is empty; give a list of texts")
    for text in listed:
        if not isinstance(text, str):
            raise InputError(f"`texts` has {text!r:.80}, which is no text; give a list of texts")
    return listed


def tokenizer_in(given: Any) -> Any:
    """Find the tokenizer that a processor has beside others; InputError if there is none."""
    from transformers import PreTrainedTokenizerBase

    if isinstance(given, PreTrainedTokenizerBase):
        return given
    found = getattr(given, "tokenizer", None)
    if isinstance(found, PreTrainedTokenizerBase):
        return found
    is_missing = "is missing" if given is None else f"is a {type(given).__name__}"
    raise InputError(f"`tokenizer` {is_missing}; give the tokenizer of transformers of the model")


def sample_of(loaded: LoadedModel, tokenizer: Any, texts: Iterable[str], name: str) -> SampleRun:
    """Prepare a model for the run of texts, in evaluation mode; InputError if they cannot go through it."""
    texts, tokenizer = listed_texts(texts), tokenizer_in(tokenizer)
    if hasattr(loaded.base, "encoder") and hasattr(loaded.base, "decoder"):
        raise InputError(
            "the model is an encoder and a decoder; give one, such as `model.get_encoder()`"
        )
    for adapter, kind in loaded.adapters.items():
        logger.info("%s is measured with its adapter `%s` (%s)", name, adapter, kind)
    runs_alone = loaded.is_wrapped  # which threads could not tell from each other
    threads = 1 if runs_alone else torch.get_num_threads()
    forward = ForwardPass(loaded.callable_base(), None, last_layer=AFTER)
    tokenised = tokenise(tokenizer, texts)
    forward.refuse_unsuitable(tokenised, name)
    longest, context = max(len(window.ids) for window in tokenised), forward.context()
    if context is not None and longest + loaded.virtual_tokens > context:
        raise InputError(
            f"a text has {longest} tokens and its adapter {loaded.virtual_tokens} more, but the model was made for "
            f"{context}; give shorter `texts`"
        )
    widths = [len(state[0, 0]) for state in forward.hidden_states(tokenised[:1], 0)[0]]
    padding = tokenizer.pad_token_id or 0
    return SampleRun(forward, name, tokenised, None, padding, len(widths) - 1, widths, threads)


def role_in_tables(loaded: LoadedModel) -> str:
    """Whether a model in evaluation mode is a decoder or an encoder, as tables have it."""
    role = role_of(loaded.inner.config.to_dict()) or ""
    if role in ("encoder", "decoder"):
        return role
    if loaded.is_sharded:  # other ranks have gone on, and help with no other pass
        return "encoder" if role else "decoder"
    return "encoder" if sees_later_tokens(loaded.callable_base()) else "decoder"


@contextmanager
def in_words_of_python() -> Iterator[None]:
    """Say what to do about a fact in the words of who has a model in Python, and no configuration."""
    try:
        yield
    except InputError as error:
        fact, _, remedy = str(error).rpartition("; ")
        for word, own in REMEDIES.items():
            if fact and word in remedy:
                raise InputError(f"{fact}; {own}") from error
        raise


def _states_in(given: Any) -> Any:
    """Hidden states by layer, also of what a model has returned."""
    if isinstance(given, str):
        raise InputError(
            f"`model` is the text {given!r:.80}; load it (`AutoModel.from_pretrained`), or run "
            "`shape-of-learning measure` in a terminal"
        )
    if isinstance(given, Mapping):
        if given.get("hidden_states") is None:
            raise InputError(
                f"`model` is a {type(given).__name__} without `hidden_states`; run the model with "
                "`output_hidden_states=True`, and of an encoder and a decoder give the states of one"
            )
        return given["hidden_states"]
    if not isinstance(given, Iterable):
        raise InputError(
            f"`model` is a {type(given).__name__}; give a model of transformers, or hidden states"
        )
    return given


class GivenStates:
    """Hidden states that a user has, as :class:`.HiddenStates`.

    Parameters
    ----------
    states : array_like or iterable of array_like or torch.Tensor, each of shape (batch, token, hidden)
    mask : array_like, shape (batch, token), optional
    """

    def __init__(self, states: Any, mask: Any = None):
        states = [states] if hasattr(states, "ndim") and states.ndim < 4 else list(states)
        for state in states:
            _require_numbers(state, "hidden states")
        shapes = {tuple(np.shape(each)) for each in states}
        if {len(shape) for shape in shapes} == {2}:
            raise InputError(
                f"hidden states have the shape {shapes.pop()}, which does not say what text each is of; give the shape "
                "(batch, token, hidden), or measure one matrix by functions such as `shape_of_learning.anisotropy`"
            )
        if len({shape[:-1] for shape in shapes}) != 1 or len(shape := shapes.pop()) != 3:
            raise InputError(
                "hidden states must have the shape (batch, token, hidden), equal but for the last"
            )
        if any(np.shape(each)[-1] == 0 for each in states):
            raise InputError(
                "hidden states have no coordinates; give some of shape (batch, token, hidden)"
            )
        kept = np.ones(shape[:2], bool) if mask is None else _kept(mask, shape[:2])
        for state in states:
            if isinstance(state, np.ma.MaskedArray):
                kept = kept & ~_masked_vectors(state)
        if mask is not None and not kept.any():
            raise InputError(
                "the mask leaves 0 tokens; give True or 1 for tokens, or no mask if all vectors are of tokens"
            )
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
        """One hidden state, float32 of shape (tokens, hidden), or float64 where numbers need it."""
        values = _array(self._states[state])[self._kept]
        is_float32 = np.can_cast(values.dtype, np.float32)
        return values.astype(np.float32 if is_float32 else np.float64, copy=False)


def _array(given: Any) -> np.ndarray:
    if not hasattr(given, "detach"):
        return np.asarray(given)
    exact = given if given.dtype in (torch.float64, torch.int64, torch.int32) else given.float()
    return exact.detach().cpu().numpy()


def _require_numbers(given: Any, what: str) -> None:
    """Raise InputError if something is no array of real numbers that are there."""
    if isinstance(given, torch.Tensor):
        odd = {
            "quantised": given.is_quantized,
            "without values": given.is_meta,
            "sharded": hasattr(given, "full_tensor"),
            "sparse or nested": given.is_nested or given.layout != torch.strided,
        }
        if kind := next((name for name, is_so in odd.items() if is_so), ""):
            raise InputError(
                f"{what} are {kind}; give dense tensors, such as of `.dequantize()`, `.full_tensor()` or `.to_dense()`"
            )
        is_real = not given.is_complex()
    else:
        try:
            dtype = np.asarray(given).dtype
        except (ValueError, TypeError):
            dtype = np.dtype(object)
        is_real = dtype.kind not in "cOSUMm"
    if not is_real:
        raise InputError(f"{what} are no real numbers; give arrays or tensors of such numbers")


def _kept(mask: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Read a mask: True where there is a token."""
    _require_numbers(mask, "values of the mask")
    if np.shape(mask) != shape:
        raise InputError(
            f"the mask has the shape {tuple(np.shape(mask))}, but hidden states are of {shape[0]} texts of {shape[1]} "
            "tokens; give one value for each of these, such as the tokenizer's `attention_mask`"
        )
    values = _array(np.ma.filled(mask, 0) if isinstance(mask, np.ma.MaskedArray) else mask)
    if np.isin(values, (0, 1)).all():
        return values.astype(bool)
    # What is added to attention: nothing, or so much less that no softmax is left of it.
    if ((values == 0) | (values <= LEAST_ADDED)).all():
        return values == 0
    odd = values[~np.isin(values, (0, 1))][0]
    raise InputError(
        f"the mask has the value {odd:.4g}; give True or 1 for tokens, and False or 0 for padding"
    )


def _masked_vectors(state: "np.ma.MaskedArray") -> np.ndarray:
    """Say which vectors of a masked array are masked."""
    masked = np.ma.getmaskarray(state)
    if (masked.any(axis=-1) != masked.all(axis=-1)).any():
        raise InputError(
            "hidden states are masked in some coordinates of a vector; mask whole vectors, or fill them"
        )
    return np.asarray(masked.all(axis=-1))
