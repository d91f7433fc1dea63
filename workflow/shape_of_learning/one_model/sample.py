"""Prepare the texts that go through a loaded model."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from shape_of_learning.checkpoints.local import is_local
from shape_of_learning.checkpoints.shapes import read_role
from shape_of_learning.embeddings.forward_pass import ForwardPass
from shape_of_learning.embeddings.model import sees_later_tokens
from shape_of_learning.embeddings.run import SampleRun
from shape_of_learning.embeddings.tokenised_windows import split_windows, tokenise, warn_of_unknown
from shape_of_learning.embeddings.tokenizers import list_tokenizer_names, load_tokenizer
from shape_of_learning.errors import InputError
from shape_of_learning.metrics.measure_entry import AFTER
from shape_of_learning.metrics.protocol import MeasuringProtocol
from shape_of_learning.one_model.loaded_model import LoadedModel
from shape_of_learning.one_model.measurement import draw_built_in_windows
from shape_of_learning.one_model.options import BATCH_VECTORS, NEIGHBOURS, WINDOWS
from shape_of_learning.one_model.request import Request

logger = logging.getLogger(__name__)

# With one vector per window, the usual number of windows gives too few neighbours.
POOLED_WINDOWS = 384


def list_texts(texts: Iterable[str], number: Any = None) -> list[str]:
    """List the first `number` texts, or all; InputError if there is no text, or if an item is not text."""
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise InputError(f"`texts` is {texts!r:.80}; give a list of texts")
    is_bounded = isinstance(number, int | np.integer) and number > 0
    text_list = list(islice(texts, int(number) if is_bounded else None))
    if not text_list:
        raise InputError("`texts` is empty; give a list of texts")
    for text in text_list:
        if not isinstance(text, str):
            raise InputError(f"`texts` has {text!r:.80}, which is not text; give a list of texts")
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise InputError(
                f"`texts` has {text!r:.80} with half of a character (a lone surrogate); read it again as UTF-8"
            )
    return text_list


def find_tokenizer(processor: Any) -> Any:
    """Return a tokenizer, or the tokenizer of a processor; InputError if it is neither."""
    from transformers import PreTrainedTokenizerBase

    for candidate in (processor, getattr(processor, "tokenizer", None)):
        if isinstance(candidate, PreTrainedTokenizerBase):
            return candidate
    problem = "is missing" if processor is None else f"is a {type(processor).__name__}"
    raise InputError(f"`tokenizer` {problem}; give the model's tokenizer, as transformers loads it")


def prepare_sample(
    loaded_model: LoadedModel,
    tokenizer: Any,
    texts: Iterable[str] | None,
    name: str,
    request: Request | None = None,
    *,
    warns: bool = True,
) -> SampleRun:
    """Tokenise texts for a model in evaluation mode; InputError if they cannot go through it."""
    request = request or Request()
    text_list = _list_sample_texts(texts, request)
    if warns:
        _warn_of_copies(text_list)
    tokenizer = (
        load_model_tokenizer(loaded_model) if tokenizer is None else find_tokenizer(tokenizer)
    )
    _refuse_encoder_with_decoder(loaded_model)
    for adapter, kind in loaded_model.adapters.items():
        logger.info("%s is measured with its adapter `%s` (%s)", name, adapter, kind)
    # Read before the forward pass takes one for itself; so many window batches run at once.
    threads = torch.get_num_threads()
    forward = ForwardPass(loaded_model.choose_callable(), None, last_layer=AFTER)
    context = forward.find_context()
    limit = None if context is None else context - loaded_model.virtual_tokens
    if limit is not None and (request.window_tokens or 0) > limit:
        raise InputError(
            f"`window_tokens` is {request.window_tokens}, but the model was made for {limit}; give fewer"
        )
    windows = tokenise(tokenizer, text_list)
    if warns:
        warn_of_unknown(tokenizer, windows)
    if request.window_tokens is not None:
        windows = split_windows(windows, request.window_tokens)
    forward.refuse_unsuitable(windows, name)
    longest = max(len(window.ids) for window in windows)
    if limit is not None and longest > limit:
        raise InputError(
            f"a text has {longest} tokens and its adapter {loaded_model.virtual_tokens} more, but the model was made "
            f"for {context}; give shorter `texts`, or `window_tokens`, which splits them"
        )
    states, _ = forward.compute_hidden_states(windows[:1], 0)
    if warns:
        _warn_of_missing_norm(forward, loaded_model)
    return SampleRun(
        forward,
        name,
        windows,
        predicted_tokens=None,
        padding=forward.choose_padding(tokenizer),
        layers=len(states) - 1,
        widths=[state.shape[-1] for state in states],
        # All threads share the hooks of a wrapped model.
        threads=1 if loaded_model.is_wrapped else threads,
        batch_size=request.batch_size,
    )


def _list_sample_texts(texts: Iterable[str] | None, request: Request) -> list[str]:
    """List the texts of a user, or windows of the built-in text."""
    if texts is None:
        number = WINDOWS if request.tokens == "all" else POOLED_WINDOWS
        texts = draw_built_in_windows(request.windows or number, request.seed)
    return list_texts(texts, request.windows)


def _warn_of_copies(texts: Sequence[str]) -> None:
    if copies := len(texts) - len({*texts}):
        logger.warning(
            "%d of %d texts are copies of other texts; intervals are too narrow, since they take texts for independent",
            copies,
            len(texts),
        )


def _refuse_encoder_with_decoder(loaded_model: LoadedModel) -> None:
    """Refuse a model of two stacks, and name the stack that can be measured."""
    from transformers import PreTrainedModel

    has_both = hasattr(loaded_model.base, "encoder") and hasattr(loaded_model.base, "decoder")
    if has_both and loaded_model.inner.config.is_encoder_decoder:
        can_be_given = isinstance(loaded_model.base.get_encoder(), PreTrainedModel)
        raise InputError(
            "the model is an encoder and a decoder; give `measure` or a `ShapeProbe` "
            + ("one of them, such as `model.get_encoder()`" if can_be_given else "another model")
        )


def _warn_of_missing_norm(forward: ForwardPass, loaded_model: LoadedModel) -> None:
    """Warn if the last layer is taken before a final norm that a user's own class may have."""
    kind = type(loaded_model.inner)
    if not forward.has_last_state and not kind.__module__.startswith("transformers."):
        logger.warning(
            "the output of %s has no `last_hidden_state`, so the last layer is the output of the last block, before "
            "any final norm; give its backbone for the state after it",
            kind.__name__,
        )


def load_model_tokenizer(loaded_model: LoadedModel) -> Any:
    """Load the tokenizer from the folder or repository of a model."""
    from transformers import AutoTokenizer

    config = loaded_model.inner.config
    source = str(getattr(config, "_name_or_path", "") or "")
    if Path(source).is_dir() and list_tokenizer_names(Path(source)):
        return load_tokenizer(Path(source))
    try:
        commit = getattr(config, "_commit_hash", None)
        if not source or is_local(source):  # the folder is gone, or has no tokenizer
            raise OSError
        return AutoTokenizer.from_pretrained(source, revision=commit, trust_remote_code=False)
    except (OSError, ValueError, KeyError):
        raise InputError(
            "`tokenizer` is missing, and the model's folder has none; give the model's tokenizer of transformers"
        ) from None


def find_role(loaded_model: LoadedModel) -> str:
    """Return whether a model in evaluation mode is a decoder or an encoder."""
    role = read_role(loaded_model.inner.config.to_dict()) or ""
    if role in ("encoder", "decoder"):
        return role
    if loaded_model.is_sharded:  # the other ranks take part in no further forward pass
        return "encoder" if role else "decoder"
    return "encoder" if sees_later_tokens(loaded_model.choose_callable()) else "decoder"


def make_protocol(
    rows: Mapping[str, np.ndarray], name: str, seed: int = 0, batch_vectors: int = BATCH_VECTORS
) -> MeasuringProtocol:
    """Make the protocol for hidden states with these rows; InputError if there are too few."""
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
    """Warn of a batch with fewer than `batch_vectors`, since dimensions depend on the size of a batch."""
    if protocol.batch_vectors < batch_vectors:
        logger.warning("%d vectors are one batch, smaller than %d", vectors, batch_vectors)


@contextmanager
def rewrite_remedies() -> Iterator[None]:
    """Replace the remedies of errors, which name the configuration, by remedies for a user of Python."""
    try:
        yield
    except InputError as error:
        if not error.python_remedy:
            raise
        raise InputError(error.problem, error.python_remedy) from error
