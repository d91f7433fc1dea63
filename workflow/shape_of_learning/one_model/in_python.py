"""Measure a model or hidden states in Python; the model is left as it was."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from shape_of_learning import __version__
from shape_of_learning.checkpoints.local import find_checkpoint_folder, is_local
from shape_of_learning.checkpoints.shapes import read_role
from shape_of_learning.embeddings.forward_pass import ForwardPass
from shape_of_learning.embeddings.model import (
    find_device,
    load_model,
    read_shape,
    refuse_two_stacks,
    sees_later_tokens,
)
from shape_of_learning.embeddings.run import SampleRun, StatesInMemory
from shape_of_learning.embeddings.tokenised_windows import split_windows, tokenise
from shape_of_learning.embeddings.tokenizers import list_tokenizer_names, load_tokenizer
from shape_of_learning.errors import InputError
from shape_of_learning.estimators.massive import find_massive_in_any_state
from shape_of_learning.metrics.measure_entry import AFTER
from shape_of_learning.metrics.protocol import MeasuringProtocol
from shape_of_learning.metrics.registry import DEFAULT_MEASURES
from shape_of_learning.metrics.selections import HiddenStates, average_windows, find_last_tokens
from shape_of_learning.one_model.loaded_model import LoadedModel, preserve_model
from shape_of_learning.one_model.measurement import (
    CheckpointName,
    MeasurementResult,
    ProgressStates,
    draw_built_in_windows,
    find_measures,
    measure_states,
)
from shape_of_learning.one_model.options import (
    BATCH_VECTORS,
    BUILT_IN_TEXT,
    NEIGHBOURS,
    UNKNOWN_TEXT,
    WINDOWS,
)
from shape_of_learning.one_model.vector_files import is_vector_file, read_vectors

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)

POOLS = ("all", "last", "mean")
OF_FORWARD_PASSES = ("tokenizer", "texts", "windows", "window_tokens", "batch_size", "device")
OF_STATES = ("mask", "groups")
# With one vector for each window, the usual number of windows has too few neighbours.
POOLED_WINDOWS = 384
LARGEST_MASKED = -1000  # number that an additive mask adds to attention


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
        A name on the Hub, a folder or a GGUF file; a file of vectors (``.npy``, ``.npz``, ``.pt``, ``.safetensors`` or
        ``.parquet``); a model; or hidden states: a model's output, an array (text, token, hidden) for one layer or for
        each, embedding output first, or vectors (n, hidden) of one layer.
        A model of the package `peft` is measured with its active adapters, which ``table.attrs["adapters"]`` names;
        virtual tokens are not measured, but the text's tokens see them. All processes must call this function
        together for a sharded model (FSDP, tensor parallelism).
    tokenizer : transformers.PreTrainedTokenizerBase, or a processor that has one
        By default the tokenizer in the model's folder. Hidden states need none.
    texts : iterable of str
        Each text is a window and goes through the model alone; `window_tokens` splits long ones. Intervals need 16
        windows. By default windows of the documentation that comes with Python, as the command draws them.
    revision : str
        Branch, tag or commit of a model on the Hub.
    mask : array_like, shape (text, token), optional
        For hidden states: True or 1 for tokens and False or 0 for padding, or the mask added to attention, with 0
        for tokens and -inf for padding. Masked arrays have their own mask.
    groups : array_like of int, shape (n,), optional
        For vectors: the text, or another unit, that each vector belongs to. Without groups there are no intervals.
    measures : iterable of str
        Names of measures; by default those of the first paper.
    layers : int or iterable of int, optional
        0 is the embedding output, -1 the last layer; by default all. The massive tokens are those of all layers, so
        values do not depend on which ones are asked for.
    tokens : {"all", "last", "mean"}
        Measure the vectors of all tokens, of the last token of each window, or the mean of each window.
    windows : int, optional
        Measure the first `windows` of `texts`; by default all. The built-in text has 128 windows, or 384 with one
        vector for each.
    window_tokens : int, optional
        Split texts into windows of this many tokens. By default a text longer than the model's context is an error.
    name, step : str, int
        Cells of the columns ``model`` and ``step``; the name decides which vectors share a batch.
    seed : int
        As in the configuration.
    batch_vectors : int
        Vectors of a batch, 4,096 in the authors' protocol. Fewer tokens are one batch, and the intrinsic dimension
        depends on its size.
    batch_size : int, optional
        Windows that go through the model together; by default a fast number.
    device : str, optional
        Device that runs the model, such as ``"cpu"`` or ``"cuda:1"``; by default the model's own, or the first GPU
        if the model is loaded from a name or a file.
    progress : bool
        Show a progress bar.

    Returns
    -------
    pandas.DataFrame
        The columns of ``tables/estimates.csv``: a row per measure and layer, and a row for the mean over blocks,
        whose layer is missing. ``suspect`` is true if there is a ``reason`` not to trust a value. A mean is NaN if
        the hidden states of one of its blocks hold NaN or infinity. ``attrs`` states how the model was measured.

    Raises
    ------
    InputError
        If a model or a measure is unknown, the model has an encoder and a decoder, or there are too few vectors for
        the neighbour search.

    Examples
    --------
    >>> states = np.random.default_rng(0).standard_normal((3, 20, 50, 16))  # two blocks
    >>> table = measure(states, measures=["anisotropy", "two_nn"])
    >>> table.pivot(index="layer", columns="estimator", values="value").shape
    (4, 2)
    """
    request = Request(
        tokenizer=tokenizer,
        texts=texts,
        revision=revision,
        mask=mask,
        groups=groups,
        measures=measures,
        layers=layers,
        tokens=tokens,
        windows=windows,
        window_tokens=window_tokens,
        name=name,
        step=step,
        seed=seed,
        batch_vectors=batch_vectors,
        batch_size=batch_size,
        device=device,
        progress=progress,
    )
    result, attributes = measure_request(model, request)
    table = result.make_table()
    if attributes["text"] == UNKNOWN_TEXT:
        table["same_token"] = np.nan  # the tokens of hidden states are unknown
    table.attrs.update(attributes)
    return table


def compare(a: Any, b: Any, **options: Any) -> "pd.DataFrame":
    """Measure two models on the same windows and return the differences b - a, with paired intervals.

    Parameters
    ----------
    a, b
        Models as :func:`measure` takes them.
    **options
        Arguments of :func:`measure` for both, such as `texts` and `measures`; `tokenizer` may be a pair.

    Returns
    -------
    pandas.DataFrame
        The columns of ``tables/changes.csv``, and ``suspect`` and ``reason`` of either model. Layers are compared if
        both models have the same number of layers; means over blocks in any case.
    """
    import pandas as pd

    pair = options.pop("tokenizer", None)
    tokenizers = pair if isinstance(pair, tuple) else (pair, pair)
    if options.get("texts") is not None:
        options["texts"] = list_texts(options["texts"], options.get("windows"))
    first, _ = measure_request(a, Request(tokenizer=tokenizers[0], **options))
    second, _ = measure_request(
        b, Request(tokenizer=tokenizers[1], **options), shuffled_as=first.model.name
    )
    table = pd.DataFrame(first.compare(second)).astype({"layer": "Int64"})
    return table.assign(suspect=table["suspect"] == "yes")


@dataclass(frozen=True)
class Request:
    """The arguments of :func:`measure`, except the model."""

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

    def refuse_options(self, keys: Sequence[str], needed: str) -> None:
        """Refuse arguments that do not concern the kind of input, instead of ignoring them."""
        for key in keys:
            if getattr(self, key) is not None:
                raise InputError(f"`{key}` needs {needed}; leave it out")


def measure_request(
    model: Any, request: Request, shuffled_as: str = ""
) -> tuple[MeasurementResult, dict[str, Any]]:
    """Measure a model or hidden states; also return the attributes of the table, which state how."""
    if request.tokens not in POOLS:
        raise InputError(f"`tokens` is {request.tokens!r:.80}; give one of {', '.join(POOLS)}")
    for key in ("windows", "window_tokens", "batch_size"):
        number = getattr(request, key)
        if number is not None and (not isinstance(number, int | np.integer) or number < 1):
            raise InputError(
                f"`{key}` is {number!r:.80}; give a whole number from 1 on, or leave it out"
            )
    if not isinstance(request.name, str):
        raise InputError(f"`name` is {request.name!r:.80}; give text, or leave it out")
    if request.step is not None and not isinstance(request.step, int | np.integer):
        raise InputError(f"`step` is {request.step!r:.80}; give a whole number, or leave it out")
    measures = find_measures(request.measures)
    if isinstance(model, str | Path) and is_vector_file(str(model)):
        name = request.name or Path(model).name
        model, groups = read_vectors(str(model))
        if request.groups is None:
            request = replace(request, groups=groups)
        request = replace(request, name=name)
    elif isinstance(model, str | Path):
        model, request = load_checkpoint(model, request)
    name, role = request.name or "model", ""
    adapters: dict[str, str] = {}
    if isinstance(model, torch.nn.Module):
        request.refuse_options(OF_STATES, "vectors or hidden states")
        loaded = LoadedModel.inspect_model(model)
        loaded.require_all_ranks("measure")
        text = BUILT_IN_TEXT if request.texts is None else "given"
        with move_model(model, request.device), preserve_model(loaded), rewrite_remedies():
            sample = prepare_sample(loaded, request.tokenizer, request.texts, name, request)
            memory = StatesInMemory(sample)
            windows = len(sample.windows)
            sample.store_states(_add_bar(memory, windows) if request.progress else memory)
            states: HiddenStates = memory
            role, adapters = find_role(loaded), loaded.adapters
    else:
        hidden_states = _get_states(model)  # what holds none is refused before its options
        request.refuse_options(OF_FORWARD_PASSES, "a model that runs on a text")
        text = UNKNOWN_TEXT
        states = ArrayStates(hidden_states, request.mask, request.groups)
    if request.tokens != "all":
        states = PooledStates(states, request.tokens)
    places = [(layer, AFTER) for layer in choose_layers(request.layers, states.layers)]
    protocol = make_protocol(states.rows, shuffled_as or name, request.seed, request.batch_vectors)
    vectors = len(states.rows["windows"])
    warn_of_small_batch(protocol, vectors, request.batch_vectors)
    checkpoint = CheckpointName(name, role, request.revision, request.step)
    result = measure_states(states, measures, protocol, checkpoint, places)
    return result, {
        "model": name,
        "revision": request.revision,
        "adapters": adapters,
        "text": text,
        "tokens": request.tokens,
        "windows": protocol.windows,
        "vectors": vectors,
        "batch_vectors": protocol.batch_vectors,
        "seed": request.seed,
        "measures": [measure.name for measure in measures],
        "version": __version__,
    }


def load_checkpoint(model: str | Path, request: Request) -> tuple[torch.nn.Module, Request]:
    """Load a model and its tokenizer from the Hub, a folder or a file."""
    name, folder = find_checkpoint_folder(str(model), request.revision)
    if is_local(str(model)) and request.revision != "main":
        raise InputError(f"{model} is on this machine and has no revision; leave out `revision`")
    shape = read_shape(folder, name)
    with rewrite_remedies():
        refuse_two_stacks(shape, model)
    loaded, _ = load_model(folder, role="", precision="float32", device=find_device(request.device))
    tokenizer = request.tokenizer or load_tokenizer(folder)
    return loaded, replace(request, tokenizer=tokenizer, name=request.name or name, device=None)


@contextmanager
def move_model(model: torch.nn.Module, device: str | None) -> Iterator[None]:
    """Move a model to a device inside the block, and back afterwards."""
    if device is None:
        yield
        return
    original_device = next(model.parameters()).device
    try:
        model.to(find_device(device))
        yield
    finally:
        model.to(original_device)


def _add_bar(states: Any, windows: int) -> ProgressStates:
    """Wrap a store of hidden states so that a progress bar counts the windows."""
    from tqdm.auto import tqdm

    bar = tqdm(total=windows, unit="window")

    def update(_: str, count: int, total: int) -> None:
        bar.update(count - bar.n)
        if count == total:
            bar.close()

    return ProgressStates(states, windows, update)


def make_protocol(
    rows: Mapping[str, np.ndarray], name: str, seed: int = 0, batch_vectors: int = BATCH_VECTORS
) -> MeasuringProtocol:
    """Make the protocol for hidden states of these rows; InputError if they are too few."""
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


def warn_of_small_batch(
    protocol: MeasuringProtocol, vectors: int, batch_vectors: int = BATCH_VECTORS
) -> None:
    """Warn of a batch that is smaller than asked for, since dimensions depend on its size."""
    if protocol.batch_vectors < batch_vectors:
        logger.warning("%d vectors are one batch, smaller than %d", vectors, batch_vectors)


def choose_layers(layers: int | Iterable[int] | None, last: int) -> list[int]:
    """Return layers as numbers from 0 to `last`, which is also -1; InputError for a layer that is missing."""
    if layers is None:
        return list(range(last + 1))
    numbers = check_whole_numbers(layers)
    for layer in numbers:
        if not -last - 1 <= layer <= last:
            raise InputError(f"there is no layer {layer}; layers are 0 to {last}")
    return list(dict.fromkeys(layer % (last + 1) for layer in numbers))


def check_whole_numbers(layers: int | Iterable[int]) -> list[int]:
    """Return layers as a list; InputError if they are not whole numbers."""
    try:
        numbers = [index(layer) for layer in (layers if isinstance(layers, Iterable) else [layers])]
    except TypeError:
        raise InputError(
            f"`layers` is {layers!r:.80}; give whole numbers, such as [1, -1]"
        ) from None
    if not numbers:
        raise InputError("`layers` is empty; give some, or leave it out")
    return numbers


def list_texts(texts: Iterable[str], number: Any = None) -> list[str]:
    """List the first texts, or all; InputError if there is none, or anything but text."""
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise InputError(f"`texts` is {texts!r:.80}; give a list of texts")
    is_bounded = isinstance(number, int | np.integer) and number > 0
    text_list = list(islice(texts, int(number) if is_bounded else None))
    if not text_list:
        raise InputError("`texts` is empty; give a list of texts")
    for text in text_list:
        if not isinstance(text, str):
            raise InputError(f"`texts` has {text!r:.80}, which is no text; give a list of texts")
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise InputError(
                f"`texts` has {text!r:.80} with half of a character (a lone surrogate); read it again as UTF-8"
            )
    return text_list


def find_tokenizer(processor: Any) -> Any:
    """Return a tokenizer, or the tokenizer of a processor; InputError if there is none."""
    from transformers import PreTrainedTokenizerBase

    for candidate in (processor, getattr(processor, "tokenizer", None)):
        if isinstance(candidate, PreTrainedTokenizerBase):
            return candidate
    problem = "is missing" if processor is None else f"is a {type(processor).__name__}"
    raise InputError(f"`tokenizer` {problem}; give the tokenizer of transformers of the model")


def prepare_sample(
    loaded: LoadedModel,
    tokenizer: Any,
    texts: Iterable[str] | None,
    name: str,
    request: Request | None = None,
    *,
    warns: bool = True,
) -> SampleRun:
    """Tokenise texts for a model in evaluation mode; InputError if they cannot go through it."""
    request = request or Request()
    if texts is None:
        number = WINDOWS if request.tokens == "all" else POOLED_WINDOWS
        texts = draw_built_in_windows(request.windows or number, request.seed)
    texts = list_texts(texts, request.windows)
    if warns and (copies := len(texts) - len({*texts})):
        logger.warning(
            "%d of %d texts are copies of others; intervals take them for independent, so they are too narrow",
            copies,
            len(texts),
        )
    tokenizer = load_model_tokenizer(loaded) if tokenizer is None else find_tokenizer(tokenizer)
    if hasattr(loaded.base, "encoder") and hasattr(loaded.base, "decoder"):
        raise InputError(
            "the model is an encoder and a decoder; give `measure` or a `ShapeProbe` one, such as `model.get_encoder()`"
        )
    for adapter, kind in loaded.adapters.items():
        logger.info("%s is measured with its adapter `%s` (%s)", name, adapter, kind)
    # Hooks of a wrapped model are shared by all threads.
    threads = 1 if loaded.is_wrapped else torch.get_num_threads()
    forward = ForwardPass(loaded.choose_callable(), None, last_layer=AFTER)
    context = forward.context()
    limit = None if context is None else context - loaded.virtual_tokens
    if limit is not None and (request.window_tokens or 0) > limit:
        raise InputError(
            f"`window_tokens` is {request.window_tokens}, but the model was made for {limit}; give fewer"
        )
    tokenised_windows = tokenise(tokenizer, texts)
    if request.window_tokens is not None:
        tokenised_windows = split_windows(tokenised_windows, request.window_tokens)
    forward.refuse_unsuitable(tokenised_windows, name)
    longest = max(len(window.ids) for window in tokenised_windows)
    if limit is not None and longest > limit:
        raise InputError(
            f"a text has {longest} tokens and its adapter {loaded.virtual_tokens} more, but the model was made for "
            f"{context}; give shorter `texts`, or `window_tokens`, which splits them"
        )
    states, _ = forward.compute_hidden_states(tokenised_windows[:1], 0)
    if (
        warns
        and not forward.has_last_state
        and not type(loaded.inner).__module__.startswith("transformers.")
    ):
        logger.warning(
            "the output of %s has no `last_hidden_state`, so the last layer is the output of the last block, before "
            "any final norm; give its backbone for the state after it",
            type(loaded.inner).__name__,
        )
    return SampleRun(
        forward,
        name,
        tokenised_windows,
        predicted=None,
        padding=forward.choose_padding(tokenizer),
        layers=len(states) - 1,
        widths=[state.shape[-1] for state in states],
        threads=threads,
        batch_size=request.batch_size,
    )


def load_model_tokenizer(loaded: LoadedModel) -> Any:
    """Load the tokenizer from the folder or repository of a model."""
    from transformers import AutoTokenizer

    config = loaded.inner.config
    source = str(getattr(config, "_name_or_path", "") or "")
    if Path(source).is_dir() and list_tokenizer_names(Path(source)):
        return load_tokenizer(Path(source))
    try:
        if not source:
            raise OSError
        commit = getattr(config, "_commit_hash", None)
        return AutoTokenizer.from_pretrained(source, revision=commit, trust_remote_code=False)
    except (OSError, ValueError, KeyError):
        raise InputError(
            "`tokenizer` is missing, and the model's folder has none; give the tokenizer of transformers of the model"
        ) from None


def find_role(loaded: LoadedModel) -> str:
    """Return whether a model in evaluation mode is a decoder or an encoder."""
    role = read_role(loaded.inner.config.to_dict()) or ""
    if role in ("encoder", "decoder"):
        return role
    if loaded.is_sharded:  # other ranks take part in no further forward pass
        return "encoder" if role else "decoder"
    return "encoder" if sees_later_tokens(loaded.choose_callable()) else "decoder"


@contextmanager
def rewrite_remedies() -> Iterator[None]:
    """Replace remedies in errors that need a configuration by those for a user of Python."""
    try:
        yield
    except InputError as error:
        if not error.python_remedy:
            raise
        raise InputError(error.problem, error.python_remedy) from error


def _get_states(model: Any) -> Any:
    """Return hidden states by layer, also from a model's output."""
    if isinstance(model, Mapping):
        if model.get("hidden_states") is None:
            raise InputError(
                f"`model` is a {type(model).__name__} without `hidden_states`; run the model with "
                "`output_hidden_states=True`; if it has an encoder and a decoder, give the states of one"
            )
        return model["hidden_states"]
    if not isinstance(model, Iterable):
        raise InputError(
            f"`model` is a {type(model).__name__}; give a model of transformers, or hidden states"
        )
    return model


class ArrayStates:
    """Arrays of hidden states with the interface of :class:`.HiddenStates`.

    Parameters
    ----------
    states : array_like or iterable of array_like or torch.Tensor, each of shape (text, token, hidden) or (n, hidden)
    mask : array_like, shape (text, token), optional
    groups : array_like of int, shape (n,), optional
        The group of each of n vectors.
    """

    def __init__(self, states: Any, mask: Any = None, groups: Any = None):
        states = [states] if hasattr(states, "ndim") and states.ndim < 4 else list(states)
        for state in states:
            _require_numbers(state, "hidden states")
        shapes = {tuple(np.shape(state)) for state in states}
        if {len(shape) for shape in shapes} == {2}:
            if mask is not None:
                raise InputError(
                    "`mask` needs states (text, token, hidden); leave masked vectors out"
                )
            states = [state[None] for state in map(_convert_array, states)]
            shapes = {tuple(state.shape) for state in states}
        elif groups is not None:
            raise InputError(
                "`groups` needs vectors (n, hidden); leave it out, since texts are the groups of states"
            )
        if len({shape[:-1] for shape in shapes}) != 1 or len(shape := shapes.pop()) != 3:
            raise InputError(
                "hidden states must have the shape (batch, token, hidden), equal but for the last"
            )
        if any(np.shape(state)[-1] == 0 for state in states):
            raise InputError(
                "hidden states have no coordinates; give some of shape (batch, token, hidden)"
            )
        if not all(shape[:2]):
            raise InputError("there are 0 vectors; give the hidden states of a text")
        is_token = np.ones(shape[:2], bool) if mask is None else _read_mask(mask, shape[:2])
        for state in states:
            if isinstance(state, np.ma.MaskedArray):
                is_token = is_token & ~_find_masked_vectors(state)
        if mask is not None and not is_token.any():
            raise InputError(
                "the mask leaves 0 tokens; give True or 1 for tokens, or no mask if all vectors are of tokens"
            )
        self.layers = len(states) - 1
        self._states, self._is_token = states, is_token
        windows, positions = np.nonzero(is_token)
        first_positions = is_token.argmax(axis=1)[windows]
        if groups is not None:
            windows = _number_groups(groups, len(windows))
        self.rows: Mapping[str, np.ndarray] = {
            "windows": windows,
            "positions": positions - first_positions,
            "token_ids": np.arange(len(windows)),  # the tokens are unknown, so all are different
            "special": np.zeros(len(windows), bool),
        }

    def __getitem__(self, state: int) -> np.ndarray:
        """Return one hidden state of shape (tokens, hidden), in float32 unless its type is wider."""
        values = _convert_array(self._states[state])[self._is_token]
        is_float32 = np.can_cast(values.dtype, np.float32)
        return values.astype(np.float32 if is_float32 else np.float64, copy=False)

    @cached_property
    def massive(self) -> np.ndarray:
        """Whether each token is massive in any of the states, bool of shape (tokens,)."""
        return find_massive_in_any_state(self[state] for state in range(self.layers + 1))


class PooledStates:
    """One vector for each window of hidden states: the vector of its last token, or their mean.

    Parameters
    ----------
    states : HiddenStates
    pool : {"last", "mean"}
    """

    def __init__(self, states: HiddenStates, pool: str):
        self._states, self._pool = states, pool
        self.layers = states.layers
        self._windows = states.rows["windows"]
        number = len(np.unique(self._windows))
        self.rows: Mapping[str, np.ndarray] = {
            "windows": np.arange(number),
            "positions": np.zeros(number, np.int64),
            "token_ids": np.arange(number),
            "special": np.zeros(number, bool),
        }

    def __getitem__(self, state: int) -> Any:
        """Return one hidden state of shape (windows, hidden)."""
        values = self._states[state]
        if self._pool == "last":
            return values[find_last_tokens(self._windows)]
        return average_windows(values, self._windows)

    @cached_property
    def massive(self) -> np.ndarray:
        """Whether the vector of each window is massive in any hidden state, bool of shape (windows,)."""
        return find_massive_in_any_state(self[state] for state in range(self.layers + 1))


def _number_groups(groups: Any, vectors: int) -> np.ndarray:
    """Number the groups of vectors from 0."""
    labels = np.asarray(_convert_array(groups))
    if labels.shape != (vectors,):
        raise InputError(
            f"`groups` has the shape {labels.shape}; give one for each of {vectors} vectors"
        )
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise InputError("`groups` has NaN; give a number for the group of each vector")
    try:
        return np.unique(labels, return_inverse=True)[1]
    except TypeError:  # of values that cannot be compared
        raise InputError("`groups` has values of several types; give numbers or text") from None


def _convert_array(values: Any) -> np.ndarray:
    if not hasattr(values, "detach"):
        return np.asarray(values)
    if values.dtype not in (torch.float64, torch.int64, torch.int32):
        values = values.float()
    return values.detach().cpu().numpy()


def _require_numbers(values: Any, subject: str) -> None:
    """Raise InputError unless `values` is a dense array of real numbers."""
    if isinstance(values, torch.Tensor):
        problems = {
            "quantised": values.is_quantized,
            "without values": values.is_meta,
            "sharded": hasattr(values, "full_tensor"),
            "sparse or nested": values.is_nested or values.layout != torch.strided,
        }
        if problem := next((name for name, is_true in problems.items() if is_true), ""):
            raise InputError(
                f"{subject} are {problem}; give dense tensors, as `.dequantize()`, `.full_tensor()` or `.to_dense()` "
                "return them"
            )
        is_real = not values.is_complex()
    else:
        try:
            dtype = np.asarray(values).dtype
        except (ValueError, TypeError):
            dtype = np.dtype(object)
        # Records have the kind of bfloat16 in other libraries, but the type `np.void`.
        is_real = dtype.kind not in "cOSUMm" and dtype.type is not np.void
    if not is_real:
        raise InputError(f"{subject} are not real numbers; give arrays or tensors of real numbers")


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
    # An additive mask is 0 for tokens, and so low for padding that its attention vanishes.
    if ((values == 0) | (values <= LARGEST_MASKED)).all():
        return values == 0
    invalid = values[~np.isin(values, (0, 1))][0]
    raise InputError(
        f"the mask has the value {invalid:.4g}; give True or 1 for tokens, and False or 0 for padding"
    )


def _find_masked_vectors(state: "np.ma.MaskedArray") -> np.ndarray:
    """Return which vectors of a masked array are masked."""
    mask = np.ma.getmaskarray(state)
    if (mask.any(axis=-1) != mask.all(axis=-1)).any():
        raise InputError(
            "hidden states are masked in some coordinates of a vector; mask whole vectors, or fill them"
        )
    return np.asarray(mask.all(axis=-1))
