"""A model or hidden states of the user's, measured in Python, and left as they were."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from shape_of_learning import __version__
from shape_of_learning.checkpoints.local import find_checkpoint, is_local
from shape_of_learning.checkpoints.shapes import read_role
from shape_of_learning.embeddings.forward_pass import ForwardPass
from shape_of_learning.embeddings.model import (
    find_device,
    load_model,
    read_shape,
    sees_later_tokens,
)
from shape_of_learning.embeddings.run import SampleRun, StatesInMemory
from shape_of_learning.embeddings.tokenised_windows import split_windows, tokenise
from shape_of_learning.embeddings.tokenizers import load_tokenizer
from shape_of_learning.errors import InputError
from shape_of_learning.metrics.measure_entry import AFTER
from shape_of_learning.metrics.protocol import MeasuringProtocol
from shape_of_learning.metrics.registry import DEFAULT_MEASURES
from shape_of_learning.metrics.selections import HiddenStates
from shape_of_learning.one_model.checkpoint import ProgressStates, draw_built_in_windows
from shape_of_learning.one_model.defaults import BATCH_VECTORS, BUILT_IN_TEXT, NEIGHBOURS, WINDOWS
from shape_of_learning.one_model.loaded_model import LoadedModel, preserve_model
from shape_of_learning.one_model.measured import MeasurementResult, find_measures, measure_states

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)

# What a user of Python does about what jobs and commands come upon, too, by a word of what these are told to do.
REMEDIES = {
    "of a task": "give shorter `texts`, or `window_tokens`, by which they are split",
    "a larger corpus": "lower `windows`, or give `texts` of your own",
    "sampling.window_characters": "give shorter `texts`, or a model whose weights have a smaller type",
    "its own tokenizer": "give the model's own `tokenizer`",
    "config.json": "give the `tokenizer` of the model, and a `model` that runs on `tokenizer(texts[0])`",
    "config/models": "give a part of the model, or its hidden states",
    "if its tokenizer": "leave it out of `texts`",
}
POOLS = ("all", "last", "mean")
POOLED_WINDOWS = (
    384  # a vector each, among which more neighbours are searched than the usual windows would give
)
UNKNOWN_TEXT = "unknown"  # of hidden states that are given
LEAST_ADDED = -1000  # to attention, where it is masked


def measure(  # noqa: PLR0913 (keywords)
    model: Any,
    tokenizer: Any = None,
    texts: Iterable[str] | None = None,
    *,
    revision: str = "main",
    mask: Any = None,
    groups: Any = None,
    measures: Iterable[str] = DEFAULT_MEASURES,
    layers: int | Iterable[int] | None = None,
    tokens: str = "all",
    windows: int | None = None,
    window_tokens: int | None = None,
    name: str = "",
    step: int | None = None,
    seed: int = 0,
    batch_vectors: int = BATCH_VECTORS,
    batch_size: int | None = None,
    device: str | None = None,
    progress: bool = False,
) -> "pd.DataFrame":
    """Measure the hidden states of a model, with 95 % intervals.

    Parameters
    ----------
    model : str, Path, transformers.PreTrainedModel, ModelOutput, array_like or sequence of array_like
        A name on the Hub, a folder or a GGUF file; a model, which is left as it was; or hidden states: a model's
        output, an array (text, token, hidden) for each layer, the embedding output first, or for one layer, or
        vectors (n, hidden) of one layer. A model of the package `peft` is measured with its active adapters, which
        ``table.attrs["adapters"]`` names; of virtual tokens the text's own tokens are measured, which see them. Of a
        sharded model (FSDP, tensor parallelism) all processes have to call this together.
    tokenizer : transformers.PreTrainedTokenizerBase, or a processor that has one
        Of the model; by default that which lies beside it. Hidden states need none.
    texts : iterable of str
        Each is a window and goes through the model alone; `window_tokens` splits long ones. Intervals need 16 or
        more. By default windows of the documentation that comes with Python, as the command draws them.
    revision : str
        Of a name on the Hub.
    mask : array_like, shape (text, token), optional
        Of hidden states: which are of tokens, and not of padding, as True and False, 1 and 0, or what is added to
        attention, 0 and -inf. Masked arrays have their own.
    groups : array_like of int, shape (n,), optional
        Of vectors: the text, or another unit, that each belongs to. Without, there are no intervals.
    measures : iterable of str
        Names of measures; by default those of the first paper.
    layers : int or iterable of int, optional
        0 is the embedding output, -1 the last layer; by default all.
    tokens : {"all", "last", "mean"}
        Which vectors are measured: of all tokens, of the last token of each window, or the mean of each window.
    windows : int, optional
        How many windows of `texts` are measured, the first ones; by default all, and of the built-in text 128, or
        384 where one vector of each is measured.
    window_tokens : int, optional
        Tokens at which a text is split. By default none is, and one that is longer than the model's context is
        refused.
    name, step : str, int
        Of the model, for the columns of these names; the name decides which vectors are in a batch together.
    seed : int
        As in the configuration.
    batch_vectors : int
        Vectors of a batch, 4,096 by the authors' protocol. With fewer tokens all are one batch, and the
        intrinsic dimension is not that of larger ones.
    batch_size : int, optional
        Windows that go through the model together; by default what is fast.
    device : str, optional
        Where the model runs, such as ``"cpu"`` or ``"cuda:1"``; by default where it is, and of a name or a file the
        first GPU, if any.
    progress : bool
        Whether a bar is shown.

    Returns
    -------
    pandas.DataFrame
        The columns of ``tables/estimates.csv``, a row per measure and layer, and one of the mean over blocks,
        whose layer is missing. ``suspect`` is true where there is a ``reason`` not to trust a value. A mean is NaN
        if hidden states of one of its blocks hold NaN or infinity. ``attrs`` says how it was measured.

    Raises
    ------
    InputError
        If there is no such model or measure, the model is an encoder and a decoder, or there are not more vectors
        than the neighbours that are searched.

    Examples
    --------
    >>> states = np.random.default_rng(0).standard_normal((3, 20, 50, 16))  # two blocks
    >>> table = measure(states, measures=["anisotropy", "two_nn"])
    >>> table.pivot(index="layer", columns="estimator", values="value").shape
    (4, 2)
    """
    request = Request(
        *(
            tokenizer,
            texts,
            revision,
            mask,
            groups,
            measures,
            layers,
            tokens,
            windows,
            window_tokens,
        ),
        *(name, step, seed, batch_vectors, batch_size, device, progress),
    )
    return table_of(*measure_request(model, request))


def compare(a: Any, b: Any, **options: Any) -> "pd.DataFrame":
    """Measure two models on the same windows, and return how much higher `b` is than `a`, with paired intervals.

    Parameters
    ----------
    a, b
        Each as `model` of :func:`measure`.
    **options
        Arguments of :func:`measure` for both, such as `texts` and `measures`; `tokenizer` may be a pair.

    Returns
    -------
    pandas.DataFrame
        The columns of ``tables/changes.csv``, and ``suspect`` and ``reason``, of either. Layers are compared if both
        have as many; means over blocks in any case.
    """
    import pandas as pd

    pair = options.pop("tokenizer", None)
    tokenizers = pair if isinstance(pair, tuple) else (pair, pair)
    if options.get("texts") is not None:
        options["texts"] = list_texts(options["texts"])
    one, _ = measure_request(a, Request(tokenizer=tokenizers[0], **options))
    other, _ = measure_request(
        b, Request(tokenizer=tokenizers[1], **options), shuffled_as=one.model.name
    )
    table = pd.DataFrame(one.compare(other)).astype({"layer": "Int64"})
    return table.assign(suspect=table["suspect"] == "yes")


@dataclass(frozen=True)
class Request:
    """What is to be measured, as :func:`measure` is told."""

    tokenizer: Any = None
    texts: Iterable[str] | None = None
    revision: str = "main"
    mask: Any = None
    groups: Any = None
    measures: Iterable[str] = DEFAULT_MEASURES
    layers: int | Iterable[int] | None = None
    tokens: str = "all"
    windows: int | None = None
    window_tokens: int | None = None
    name: str = ""
    step: int | None = None
    seed: int = 0
    batch_vectors: int = BATCH_VECTORS
    batch_size: int | None = None
    device: str | None = None
    progress: bool = False


def measure_request(
    model: Any, request: Request, shuffled_as: str = ""
) -> tuple[MeasurementResult, dict[str, Any]]:
    """Measure a model or hidden states; also return how, as ``attrs`` of a table say it."""
    if request.tokens not in POOLS:
        raise InputError(f"`tokens` is {request.tokens!r:.80}; give one of {', '.join(POOLS)}")
    for key in ("windows", "window_tokens", "batch_size"):
        number = getattr(request, key)
        if number is not None and (not isinstance(number, int | np.integer) or number < 1):
            raise InputError(
                f"`{key}` is {number!r:.80}; give a whole number from 1 on, or leave it out"
            )
    chosen, adapters, text = find_measures(request.measures), {}, "given"
    if isinstance(model, str | Path):
        model, request = load_named(model, request)
    name = request.name or "model"
    if isinstance(model, torch.nn.Module):
        loaded = LoadedModel.inspect_model(model)
        loaded.require_all_ranks("measure")
        if request.texts is None:
            text = BUILT_IN_TEXT
        with move_model(model, request.device), preserve_model(loaded), rewrite_log_for_python():
            sample = sample_of(loaded, request.tokenizer, request.texts, name, request)
            states: HiddenStates = StatesInMemory(sample)
            sample.store_states(show_progress(states, sample, request.progress))
            role, adapters = name_role(loaded), loaded.adapters
    else:
        states, role = ArrayStates(_find_states(model), request.mask, request.groups), ""
        text = UNKNOWN_TEXT
    if request.tokens != "all":
        states = PooledStates(states, request.tokens)
    places = [(layer, AFTER) for layer in choose_layers(request.layers, states.layers)]
    how = protocol_of(states.rows, shuffled_as or name, request.seed, request.batch_vectors)
    vectors = len(states.rows["windows"])
    say_size(how, vectors, request.batch_vectors)
    found = measure_states(
        *(states, chosen, how, role, (request.revision, request.step, None), places), name=name
    )
    return found, {
        **{"model": name, "revision": request.revision, "adapters": adapters, "text": text},
        **{"tokens": request.tokens, "windows": how.windows, "vectors": vectors},
        **{"batch_vectors": how.batch_vectors, "seed": request.seed},
        **{"measures": [measure.name for measure in chosen], "version": __version__},
    }


def table_of(found: MeasurementResult, how: Mapping[str, Any]) -> "pd.DataFrame":
    """Return the estimates with a note on how they were measured."""
    table = found.make_table()
    if how["text"] == UNKNOWN_TEXT:
        table["same_token"] = np.nan  # nothing says which tokens they are
    table.attrs.update(how)
    return table


def load_named(model: str | Path, request: Request) -> tuple[torch.nn.Module, Request]:
    """Load a model of the Hub, a folder or a file, and its tokenizer."""
    own, folder = find_checkpoint(str(model), request.revision)
    if is_local(str(model)) and request.revision != "main":
        raise InputError(f"{model} is on this machine and has no revision; leave out `revision`")
    shape = read_shape(folder, own)
    if shape.role == "encoder-decoder":
        raise InputError(
            f"{model} has an encoder and a decoder; load it and give one, such as `model.get_encoder()`"
        )
    loaded, _ = load_model(folder, role="", precision="float32", device=find_device(request.device))
    tokenizer = request.tokenizer or load_tokenizer(folder)
    return loaded, replace(request, tokenizer=tokenizer, name=request.name or own, device=None)


@contextmanager
def move_model(model: torch.nn.Module, device: str | None) -> Iterator[None]:
    """Have a model on a device, and put it back where it was."""
    if device is None:
        yield
        return
    before = next(model.parameters()).device
    try:
        model.to(find_device(device))
        yield
    finally:
        model.to(before)


def show_progress(states: Any, sample: SampleRun, progress: bool) -> Any:
    """Show a bar of the windows that have gone through the model, if it is wanted."""
    if not progress:
        return states
    from tqdm.auto import tqdm

    bar = tqdm(total=len(sample.windows), unit="window")

    def say(_: str, done: int, total: int) -> None:
        bar.update(done - bar.n)
        if done == total:
            bar.close()

    return ProgressStates(states, len(sample.windows), say)


def protocol_of(
    rows: Mapping[str, np.ndarray], name: str, seed: int = 0, batch_vectors: int = BATCH_VECTORS
) -> MeasuringProtocol:
    """Say how hidden states of these rows are measured; InputError if they are too few."""
    tokens = len(rows["windows"])
    if not isinstance(batch_vectors, int | np.integer) or batch_vectors <= NEIGHBOURS:
        raise InputError(f"`batch_vectors` is {batch_vectors}; give more than {NEIGHBOURS}")
    if tokens <= NEIGHBOURS:
        raise InputError(
            f"there are {tokens} vectors, but the neighbours of each are searched among more than {NEIGHBOURS}; "
            "give more texts"
        )
    windows = int(rows["windows"].max()) + 1
    return MeasuringProtocol(name, windows, seed, min(tokens, batch_vectors), NEIGHBOURS)


def say_size(how: MeasuringProtocol, tokens: int, batch_vectors: int = BATCH_VECTORS) -> None:
    """Warn of a batch that is smaller than it should be, on whose size dimensions depend."""
    if how.batch_vectors < batch_vectors:
        logger.warning("%d tokens are one batch, smaller than %d vectors", tokens, batch_vectors)


def choose_layers(layers: int | Iterable[int] | None, last: int) -> list[int]:
    """Number layers from 0 to `last`, which is also -1; InputError if there is no such layer."""
    if layers is None:
        return list(range(last + 1))
    for layer in (wanted := check_whole_numbers(layers)):
        if not -last - 1 <= layer <= last:
            raise InputError(f"there is no layer {layer}; layers are 0 to {last}")
    return list(dict.fromkeys(layer % (last + 1) for layer in wanted))


def check_whole_numbers(layers: int | Iterable[int]) -> list[int]:
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


def list_texts(texts: Iterable[str]) -> list[str]:
    """List texts; InputError if they are none, or no texts."""
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise InputError(f"`texts` is {texts!r:.80}; give a list of texts")
    if not (listed := list(texts)):
        raise InputError("`texts` is empty; give a list of texts")
    for text in listed:
        if not isinstance(text, str):
            raise InputError(f"`texts` has {text!r:.80}, which is no text; give a list of texts")
    return listed


def find_tokenizer(given: Any) -> Any:
    """Find the tokenizer that a processor has beside others; InputError if there is none."""
    from transformers import PreTrainedTokenizerBase

    if isinstance(given, PreTrainedTokenizerBase):
        return given
    found = getattr(given, "tokenizer", None)
    if isinstance(found, PreTrainedTokenizerBase):
        return found
    is_missing = "is missing" if given is None else f"is a {type(given).__name__}"
    raise InputError(f"`tokenizer` {is_missing}; give the tokenizer of transformers of the model")


def sample_of(
    loaded: LoadedModel,
    tokenizer: Any,
    texts: Iterable[str] | None,
    name: str,
    request: Request | None = None,
) -> SampleRun:
    """Prepare a model for the run of texts, in evaluation mode; InputError if they cannot go through it."""
    request = request or Request()
    if texts is None:
        number = WINDOWS if request.tokens == "all" else POOLED_WINDOWS
        texts = draw_built_in_windows(request.windows or number, request.seed)
    texts = list_texts(texts)[: request.windows]
    tokenizer = load_model_tokenizer(loaded) if tokenizer is None else find_tokenizer(tokenizer)
    if hasattr(loaded.base, "encoder") and hasattr(loaded.base, "decoder"):
        raise InputError(
            "the model is an encoder and a decoder; give one, such as `model.get_encoder()`"
        )
    for adapter, kind in loaded.adapters.items():
        logger.info("%s is measured with its adapter `%s` (%s)", name, adapter, kind)
    runs_alone = loaded.is_wrapped  # which threads could not tell from each other
    threads = 1 if runs_alone else torch.get_num_threads()
    forward = ForwardPass(loaded.choose_callable(), None, last_layer=AFTER)
    context = forward.context()
    limit = None if context is None else context - loaded.virtual_tokens
    if limit is not None and (request.window_tokens or 0) > limit:
        raise InputError(
            f"`window_tokens` is {request.window_tokens}, but the model was made for {limit}; give fewer"
        )
    tokenised = tokenise(tokenizer, texts)
    if request.window_tokens is not None:
        tokenised = split_windows(tokenised, request.window_tokens)
    forward.refuse_unsuitable(tokenised, name)
    longest = max(len(window.ids) for window in tokenised)
    if limit is not None and longest > limit:
        raise InputError(
            f"a text has {longest} tokens and its adapter {loaded.virtual_tokens} more, but the model was made for "
            f"{context}; give shorter `texts`, or `window_tokens`, by which they are split"
        )
    widths = [len(state[0, 0]) for state in forward.compute_hidden_states(tokenised[:1], 0)[0]]
    padding = tokenizer.pad_token_id or 0
    how = padding, len(widths) - 1, widths, threads, request.batch_size
    return SampleRun(forward, name, tokenised, None, *how)


def load_model_tokenizer(loaded: LoadedModel) -> Any:
    """Load the tokenizer that lies beside a model, where it was loaded from."""
    from transformers import AutoTokenizer

    place = str(getattr(loaded.inner.config, "_name_or_path", "") or "")
    try:
        if not place:
            raise OSError
        return AutoTokenizer.from_pretrained(place)
    except (OSError, ValueError, KeyError):
        raise InputError(
            "`tokenizer` is missing, and none lies beside the model; give the tokenizer of transformers of the model"
        ) from None


def name_role(loaded: LoadedModel) -> str:
    """Whether a model in evaluation mode is a decoder or an encoder, as tables have it."""
    role = read_role(loaded.inner.config.to_dict()) or ""
    if role in ("encoder", "decoder"):
        return role
    if loaded.is_sharded:  # other ranks have gone on, and help with no other pass
        return "encoder" if role else "decoder"
    return "encoder" if sees_later_tokens(loaded.choose_callable()) else "decoder"


@contextmanager
def rewrite_log_for_python() -> Iterator[None]:
    """Say what to do about a fact in the words of who has a model in Python, and no configuration."""
    try:
        yield
    except InputError as error:
        fact, _, remedy = str(error).rpartition("; ")
        for word, own in REMEDIES.items():
            if fact and word in remedy:
                raise InputError(f"{fact}; {own}") from error
        raise


def _find_states(given: Any) -> Any:
    """Hidden states by layer, also of what a model has returned."""
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


class ArrayStates:
    """Hidden states that a user has, as :class:`.HiddenStates`.

    Parameters
    ----------
    states : array_like or iterable of array_like or torch.Tensor, each of shape (text, token, hidden) or (n, hidden)
    mask : array_like, shape (text, token), optional
    groups : array_like of int, shape (n,), optional
        What each of n vectors belongs to.
    """

    def __init__(self, states: Any, mask: Any = None, groups: Any = None):
        states = [states] if hasattr(states, "ndim") and states.ndim < 4 else list(states)
        for state in states:
            _require_numbers(state, "hidden states")
        shapes = {tuple(np.shape(state)) for state in states}
        if {len(shape) for shape in shapes} == {2}:
            if mask is not None:
                raise InputError(
                    "`mask` is of states (text, token, hidden); leave out vectors instead"
                )
            states = [state[None] for state in map(_convert_array, states)]
            shapes = {tuple(state.shape) for state in states}
        elif groups is not None:
            raise InputError("`groups` is of vectors (n, hidden); states of texts have them")
        if len({shape[:-1] for shape in shapes}) != 1 or len(shape := shapes.pop()) != 3:
            raise InputError(
                "hidden states must have the shape (batch, token, hidden), equal but for the last"
            )
        if any(np.shape(state)[-1] == 0 for state in states):
            raise InputError(
                "hidden states have no coordinates; give some of shape (batch, token, hidden)"
            )
        kept = np.ones(shape[:2], bool) if mask is None else _read_mask(mask, shape[:2])
        for state in states:
            if isinstance(state, np.ma.MaskedArray):
                kept = kept & ~_find_masked_vectors(state)
        if mask is not None and not kept.any():
            raise InputError(
                "the mask leaves 0 tokens; give True or 1 for tokens, or no mask if all vectors are of tokens"
            )
        self.layers = len(states) - 1
        self._states, self._kept = states, kept
        windows, positions = np.nonzero(kept)
        if groups is not None:
            windows = _number_groups(groups, len(windows))
        self.rows: Mapping[str, np.ndarray] = {
            "windows": windows,
            "positions": positions - kept.argmax(axis=1)[np.nonzero(kept)[0]],
            "token_ids": np.arange(len(windows)),  # unknown, so no two are said to be the same
            "special": np.zeros(len(windows), bool),
        }

    def __getitem__(self, state: int) -> np.ndarray:
        """One hidden state, float32 of shape (tokens, hidden), or float64 where numbers need it."""
        values = _convert_array(self._states[state])[self._kept]
        is_float32 = np.can_cast(values.dtype, np.float32)
        return values.astype(np.float32 if is_float32 else np.float64, copy=False)


class PooledStates:
    """One vector for each window of hidden states: that of its last token, or the mean of all.

    Parameters
    ----------
    states : HiddenStates
    pool : {"last", "mean"}
    """

    def __init__(self, states: HiddenStates, pool: str):
        self._states, self._pool = states, pool
        self.layers = states.layers
        self._windows, self._first = np.unique(states.rows["windows"], return_inverse=True)
        number = len(self._windows)
        # Rows of a window follow each other, so that the last of them is found from behind.
        last = np.full(number, -1)
        last[self._first] = np.arange(len(self._first))
        self._last, self._sizes = last, np.bincount(self._first)
        self.rows: Mapping[str, np.ndarray] = {
            "windows": np.arange(number),
            "positions": np.zeros(number, np.int64),
            "token_ids": np.arange(number),
            "special": np.zeros(number, bool),
        }

    def __getitem__(self, state: int) -> Any:
        """One hidden state, of shape (windows, hidden)."""
        values = self._states[state]
        if self._pool == "last":
            return values[self._last]
        values = _convert_array(values)
        sums = np.zeros((len(self._windows), values.shape[1]))
        np.add.at(sums, self._first, values)
        return (sums / self._sizes[:, None]).astype(values.dtype)


def _number_groups(groups: Any, vectors: int) -> np.ndarray:
    """Number the groups of vectors from 0."""
    given = np.asarray(_convert_array(groups))
    if given.shape != (vectors,):
        raise InputError(
            f"`groups` has the shape {given.shape}; give one for each of {vectors} vectors"
        )
    return np.unique(given, return_inverse=True)[1]


def _convert_array(given: Any) -> np.ndarray:
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
        # Records are of `np.void`; bfloat16 of other libraries has the same kind, but is a number.
        is_real = dtype.kind not in "cOSUMm" and dtype.type is not np.void
    if not is_real:
        raise InputError(f"{what} are no real numbers; give arrays or tensors of such numbers")


def _read_mask(mask: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Read a mask: True where there is a token."""
    _require_numbers(mask, "values of the mask")
    if np.shape(mask) != shape:
        raise InputError(
            f"the mask has the shape {tuple(np.shape(mask))}, but hidden states are of {shape[0]} texts of {shape[1]} "
            "tokens; give one value for each of these, such as the tokenizer's `attention_mask`"
        )
    values = _convert_array(np.ma.filled(mask, 0) if isinstance(mask, np.ma.MaskedArray) else mask)
    if np.isin(values, (0, 1)).all():
        return values.astype(bool)
    # What is added to attention: nothing, or so much less that no softmax is left of it.
    if ((values == 0) | (values <= LEAST_ADDED)).all():
        return values == 0
    odd = values[~np.isin(values, (0, 1))][0]
    raise InputError(
        f"the mask has the value {odd:.4g}; give True or 1 for tokens, and False or 0 for padding"
    )


def _find_masked_vectors(state: "np.ma.MaskedArray") -> np.ndarray:
    """Say which vectors of a masked array are masked."""
    masked = np.ma.getmaskarray(state)
    if (masked.any(axis=-1) != masked.all(axis=-1)).any():
        raise InputError(
            "hidden states are masked in some coordinates of a vector; mask whole vectors, or fill them"
        )
    return np.asarray(masked.all(axis=-1))
