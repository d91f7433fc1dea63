"""Measure a model or hidden states in Python, and leave the model unchanged."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from shape_of_learning import __version__
from shape_of_learning.checkpoints.local import find_checkpoint_folder, is_local
from shape_of_learning.embeddings.model import (
    find_device,
    load_model,
    read_shape,
    refuse_two_stacks,
)
from shape_of_learning.embeddings.run import StatesInMemory
from shape_of_learning.embeddings.tokenizers import load_tokenizer
from shape_of_learning.errors import InputError
from shape_of_learning.metrics.measure_entry import AFTER
from shape_of_learning.metrics.registry import DEFAULT_MEASURES
from shape_of_learning.metrics.selections import HiddenStates
from shape_of_learning.one_model.array_states import ArrayStates, PooledStates, find_states
from shape_of_learning.one_model.loaded_model import (
    LOCK,
    LoadedModel,
    preserve_model,
    quiet_library,
)
from shape_of_learning.one_model.measurement import (
    CheckpointName,
    MeasurementResult,
    ProgressStates,
    find_measures,
    measure_states,
)
from shape_of_learning.one_model.options import BATCH_VECTORS, BUILT_IN_TEXT, UNKNOWN_TEXT
from shape_of_learning.one_model.request import Request, choose_layers
from shape_of_learning.one_model.sample import (
    find_role,
    list_texts,
    make_protocol,
    prepare_sample,
    rewrite_remedies,
    warn_of_small_batch,
)
from shape_of_learning.one_model.vector_files import is_vector_file, read_vectors

if TYPE_CHECKING:
    import pandas as pd

FORWARD_PASS_OPTIONS = ("tokenizer", "texts", "windows", "window_tokens", "batch_size", "device")
STATE_OPTIONS = ("mask", "groups")


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
        Cells of the columns ``model`` and ``step``. The name also seeds the shuffle that forms the batches for
        dimensions, so another name gives slightly different dimensions.
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
        If a model or a measure is unknown, the model has an encoder and a decoder, a measure of blocks has no block, or
        there are too few vectors for the neighbour search.

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

    if unknown := options.keys() - {field.name for field in fields(Request)}:
        raise TypeError(f"compare() got an unexpected keyword argument '{min(unknown)}'")
    pair = options.pop("tokenizer", None)
    tokenizers = pair if isinstance(pair, tuple) else (pair, pair)
    if options.get("texts") is not None:
        options["texts"] = list_texts(options["texts"], options.get("windows"))
    first, _ = measure_request(a, Request(tokenizer=tokenizers[0], **options))
    second, _ = measure_request(
        b, Request(tokenizer=tokenizers[1], **options), shuffle_name=first.model.name
    )
    table = pd.DataFrame(first.compare(second)).astype({"layer": "Int64"})
    return table.assign(suspect=table["suspect"] == "yes")


def measure_request(
    model: Any, request: Request, shuffle_name: str = ""
) -> tuple[MeasurementResult, dict[str, Any]]:
    """Measure a model or hidden states; also return the attributes of the table, which describe the measurement."""
    request.check_values()
    measures = find_measures(request.measures)
    if isinstance(model, str | Path):
        model, request = _read_file_or_checkpoint(model, request)
    name, role = request.name or "model", ""
    adapters: dict[str, str] = {}
    text = UNKNOWN_TEXT
    states: HiddenStates
    if isinstance(model, torch.nn.Module):
        states, role, adapters = _compute_states(model, name, request)
        text = BUILT_IN_TEXT if request.texts is None else "given"
    else:
        hidden_states = find_states(model)  # an input without states is refused before its options
        request.refuse_options(FORWARD_PASS_OPTIONS, "a model that runs on a text")
        states = ArrayStates(hidden_states, request.mask, request.groups)
    if request.tokens != "all":
        states = PooledStates(states, request.tokens)
    places = [(layer, AFTER) for layer in choose_layers(request.layers, states.layers)]
    protocol = make_protocol(states.rows, shuffle_name or name, request.seed, request.batch_vectors)
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


def _compute_states(
    model: torch.nn.Module, name: str, request: Request
) -> tuple[StatesInMemory, str, dict[str, str]]:
    """Run the texts through a model, which is left as it was; return its hidden states, its role and its adapters."""
    request.refuse_options(STATE_OPTIONS, "vectors or hidden states")
    loaded_model = LoadedModel.inspect_model(model)
    loaded_model.require_all_ranks("measure")
    with LOCK, move_model(model, request.device), preserve_model(loaded_model), rewrite_remedies():
        sample = prepare_sample(loaded_model, request.tokenizer, request.texts, name, request)
        states = StatesInMemory(sample)
        windows = len(sample.windows)
        sample.store_states(_add_bar(states, windows) if request.progress else states)
        return states, find_role(loaded_model), loaded_model.adapters


def _read_file_or_checkpoint(model: str | Path, request: Request) -> tuple[Any, Request]:
    """Read a file of vectors, or load a model; return a request with its name, and with its groups or tokenizer."""
    if not is_vector_file(str(model)):
        return load_checkpoint(model, request)
    if request.revision != "main":
        raise InputError(f"{model} holds vectors and has no revision; leave out `revision`")
    vectors, groups = read_vectors(str(model))
    if request.groups is not None:
        groups = request.groups
    return vectors, replace(request, name=request.name or Path(model).name, groups=groups)


def load_checkpoint(model: str | Path, request: Request) -> tuple[torch.nn.Module, Request]:
    """Load a model and its tokenizer from the Hub, a folder or a file."""
    if is_local(str(model)) and request.revision != "main":
        raise InputError(f"{model} is on this machine and has no revision; leave out `revision`")
    device = find_device(request.device)
    with quiet_library(), rewrite_remedies():
        name, folder = find_checkpoint_folder(str(model), request.revision)
        refuse_two_stacks(read_shape(folder, name), model)
        loaded_model, _ = load_model(folder, role="", precision="float32", device=device)
        tokenizer = request.tokenizer or load_tokenizer(folder)
    return loaded_model, replace(
        request, tokenizer=tokenizer, name=request.name or name, device=None
    )


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
