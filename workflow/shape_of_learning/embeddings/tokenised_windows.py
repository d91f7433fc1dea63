"""Windows of text: draw and tokenise them, choose the predicted tokens, and join windows into batches."""

import copy
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shape_of_learning.corpus.windows import draw_windows_of_file
from shape_of_learning.embeddings.protocol import SamplingProtocol
from shape_of_learning.embeddings.tokenizers import run_within_time
from shape_of_learning.errors import InputError
from shape_of_learning.random_streams import random_stream

logger = logging.getLogger(__name__)

# Devlin et al. 2019, section 3.1. Here all masked tokens show the mask, since nothing is trained.
MASKED_SHARE = 0.15

# The longest window is padded to a multiple of 2^4 3, so that the number of its tokens has divisors close to the
# length of any other window.
LENGTH_UNIT = 48
# So many texts are tokenised twice, to detect a tokenizer that draws random numbers.
TRIED_TEXTS = 8
# With up to 15 rows, MKL multiplies matrices by another algorithm with other rounding on Intel's processors.
LEAST_TOKENS = 16
# With a larger share of unknown tokens, a text tells more of the tokenizer than of the model; English has below .01.
MOST_UNKNOWN = 0.05


def draw_windows(text: Path, protocol: SamplingProtocol, *, label: str = "") -> list[str]:
    """Draw the windows of a text; all models get the same windows, so that their curves are paired.

    Messages name the text by its `label`, or by its path.

    Raises
    ------
    InputError
        If the text is too short or not UTF-8.
    """
    stream = random_stream(protocol.seed, "windows")
    return draw_windows_of_file(
        text, protocol.windows, protocol.window_characters, stream, label=label
    )


@dataclass(frozen=True)
class TokenisedWindow:
    """The tokens of a window.

    Attributes
    ----------
    ids : ndarray of int64, shape (length,)
        Input of the model, with special tokens.
    special : ndarray of bool, shape (length,)
        Whether a token is special, which means that the tokenizer added it.
    segments : ndarray of int64, shape (length,), or None
        For a pair of texts: the segment of each token, for models that distinguish segments.
    second : ndarray of bool, shape (length,), or None
        For a pair of texts: whether a token belongs to the second text.
    """

    ids: np.ndarray
    special: np.ndarray
    segments: np.ndarray | None = None
    second: np.ndarray | None = None


@dataclass(frozen=True)
class PredictedTokens:
    """The tokens that a model predicts in one window.

    Attributes
    ----------
    input_ids : ndarray of int64, shape (length,)
        Input of the model.
    positions : ndarray of int64, shape (n,)
        Positions of the last hidden states that predict the tokens.
    targets : ndarray of int64, shape (n,)
        The predicted tokens.
    """

    input_ids: np.ndarray
    positions: np.ndarray
    targets: np.ndarray


@dataclass(frozen=True)
class WindowBatch:
    """Windows that go through the model together.

    Attributes
    ----------
    windows : ndarray of int64, shape (n,)
        Numbers of the windows.
    shape : tuple of int
        Rows and tokens per row of the model's input. Windows are padded to this length, and rows beyond the windows
        repeat the last window.
    """

    windows: np.ndarray
    shape: tuple[int, int]


def tokenise(tokenizer: Any, windows: Sequence[str | tuple[str, str]]) -> list[TokenisedWindow]:
    """Tokenise each window alone, with the tokenizer's special tokens (the authors' protocol).

    Parameters
    ----------
    tokenizer : transformers.PreTrainedTokenizerBase
        The checkpoint's own tokenizer.
    windows : sequence of str, or of pairs of str
        A pair goes through a model together, joined as its tokenizer joins two texts.

    Raises
    ------
    InputError
        If a window has no token, or gets other tokens each time.
    """
    are_pairs = not isinstance(windows[0], str)
    texts = [list(part) for part in zip(*windows, strict=True)] if are_pairs else [list(windows)]

    def encode(*texts: list) -> Any:
        return tokenizer(
            *texts,
            add_special_tokens=True,
            return_special_tokens_mask=True,
            return_token_type_ids=are_pairs,
            verbose=False,
        )

    backend = getattr(tokenizer, "backend_tokenizer", None)
    if getattr(backend, "truncation", None) or getattr(backend, "padding", None):
        # A call changes these settings, which a training saves with its checkpoints.
        tokenizer = copy.deepcopy(tokenizer)
    characters = sum(len(text) for part in texts for text in part)
    encoding = run_within_time(lambda: encode(*texts), characters)
    repeated_encoding = encode(*(part[:TRIED_TEXTS] for part in texts))
    if repeated_encoding["input_ids"] != encoding["input_ids"][:TRIED_TEXTS]:
        raise InputError(
            "the tokenizer splits the same text into other tokens each time; switch its random choices off "
            "(its `dropout`, or `enable_sampling` in its `sp_model_kwargs`)"
        )
    tokenised_windows = []
    for number, ids in enumerate(encoding["input_ids"]):
        if not ids:
            raise InputError(
                f"a text has no token for the tokenizer of the model: {windows[number]!r:.80}",
                "leave out the text, or the model if its tokenizer is damaged",
                "leave it out of `texts`",
            )
        window = TokenisedWindow(
            np.asarray(ids, dtype=np.int64),
            np.asarray(encoding["special_tokens_mask"][number], dtype=bool),
            np.asarray(encoding["token_type_ids"][number], dtype=np.int64) if are_pairs else None,
            np.array([text == 1 for text in encoding.sequence_ids(number)]) if are_pairs else None,
        )
        tokenised_windows.append(window)
    return tokenised_windows


def warn_of_unknown(tokenizer: Any, windows: Sequence[TokenisedWindow]) -> None:
    """Warn if the tokenizer does not know much of the text, since it may be another model's tokenizer."""
    unknown_token = getattr(tokenizer, "unk_token_id", None)
    ends = [getattr(tokenizer, f"{name}_token_id", None) for name in ("bos", "eos", "pad")]
    # Texts contain tokens that begin, end or pad for other reasons.
    if unknown_token is None or unknown_token in ends:
        return
    tokens = np.concatenate([window.ids[~window.special] for window in windows])
    share = float((tokens == unknown_token).mean()) if len(tokens) else 0.0
    if share > MOST_UNKNOWN:
        logger.warning(
            "%.0f %% of the tokens are `%s`, which stands for all that the tokenizer does not know; check that it is "
            "the model's own tokenizer, and that it knows the language of the text",
            100 * share,
            tokenizer.unk_token,
        )


def split_windows(windows: Sequence[TokenisedWindow], tokens: int) -> list[TokenisedWindow]:
    """Split windows into windows of at most `tokens` tokens, each with the special tokens at both ends.

    Raises
    ------
    InputError
        If the special tokens leave no room for other tokens.
    """
    parts = []
    for window in windows:
        if len(window.ids) <= tokens:
            parts.append(window)
            continue
        inner = np.flatnonzero(~window.special)
        first, last = (int(inner[0]), int(inner[-1]) + 1) if len(inner) else (0, len(window.ids))
        ends = np.r_[:first], np.r_[last : len(window.ids)]
        room = tokens - len(ends[0]) - len(ends[1])
        if room < 1:
            raise InputError(
                f"a window of {tokens} tokens has no room beside special tokens; allow more"
            )
        for start in range(first, last, room):
            rows = np.concatenate([ends[0], np.r_[start : min(start + room, last)], ends[1]])
            parts.append(TokenisedWindow(window.ids[rows], window.special[rows]))
    return parts


def choose_predicted_tokens(
    windows: Sequence[TokenisedWindow], role: str, vocabulary: int, mask: int | None, seed: int
) -> list[PredictedTokens] | None:
    """Choose the tokens that the head predicts in each window: the next tokens, or masked tokens in an encoder.

    If the vocabulary has no mask, return None and log the reason.
    """
    if role == "decoder":
        return [predict_next_tokens(window) for window in windows]
    # A tokenizer may number a mask token for which the model has no row.
    if mask is None or mask >= vocabulary:
        logger.info("the loss is undefined: the tokenizer has no mask token that the model knows")
        return None
    # The stream does not depend on the model, so all checkpoints predict the same tokens.
    stream = random_stream(seed, "masked tokens")
    return [mask_tokens(window, mask, stream) for window in windows]


def predict_next_tokens(window: TokenisedWindow) -> PredictedTokens:
    """Predict each token that is not special from the earlier tokens of the window."""
    targets = np.flatnonzero(~window.special[1:]) + 1
    return PredictedTokens(window.ids, targets - 1, window.ids[targets])


def mask_tokens(window: TokenisedWindow, mask: int, random: np.random.Generator) -> PredictedTokens:
    """Replace some tokens by `mask` and predict them from the rest.

    The share :data:`MASKED_SHARE` of the tokens that are not special, at least one, is drawn without replacement.
    """
    ordinary = np.flatnonzero(~window.special)
    count = max(1, round(MASKED_SHARE * len(ordinary)))
    positions = np.sort(random.permutation(ordinary)[:count])
    ids = window.ids.copy()
    ids[positions] = mask
    return PredictedTokens(ids, positions, window.ids[positions])


def batch_by_length(
    windows: list[TokenisedWindow], size: int, context: int | None
) -> list[WindowBatch]:
    """Join `size` windows of similar length, padded to the longest of them.

    A batch has at least :data:`LEAST_TOKENS` tokens if the context admits so many. Equal vectors of different window
    batches then stay equal on a CPU, too.

    Parameters
    ----------
    windows : list of TokenisedWindow
        All windows.
    size : int
        Windows in a batch.
    context : int or None
        The largest number of tokens that the model takes, with padding; None if it has no limit.

    Returns
    -------
    list of WindowBatch
        The longest windows come first, so that exhausted memory shows at once.
    """
    order, lengths = _sort_by_length(windows)
    batches = []
    for part in (order[start : start + size] for start in range(0, len(order), size)):
        longest, minimum = int(lengths[part[0]]), -(-LEAST_TOKENS // len(part))
        length = minimum if context is None else min(minimum, context)
        batches.append(WindowBatch(part, (len(part), max(longest, length))))
    return batches


def batch_by_work(
    windows: list[TokenisedWindow], size: int, context: int | None
) -> list[WindowBatch]:
    """Join windows so that all window batches have the same number of tokens, padding included.

    A matrix product takes a window batch as one matrix with a row for each token. A GPU chooses its algorithm, and
    with it the rounding, by the number of rows. If all batches have the same number, equal vectors of different batches
    (such as the first tokens of all windows in a decoder) stay equal bit for bit, so that duplicates are recognised.
    All batches also take the same memory. Rows and lengths of batches differ, but not their products.

    Parameters and result are those of :func:`batch_by_length`, but `size` is the number of windows in a batch of the
    longest windows; a batch of shorter windows holds more.
    """
    order, lengths = _sort_by_length(windows)
    longest = int(lengths[order[0]])
    length = round_up(longest)
    if context is not None:
        length = max(longest, min(length, context))
    tokens = min(size, len(windows)) * length
    divisors = [rows for rows in range(1, tokens + 1) if tokens % rows == 0]
    batches, start = [], 0
    while start < len(order):
        rows = max(rows for rows in divisors if tokens // rows >= lengths[order[start]])
        batches.append(WindowBatch(order[start : start + rows], (rows, tokens // rows)))
        start += rows
    return batches


def batch_alone(windows: list[TokenisedWindow]) -> list[WindowBatch]:
    """Make a batch of each window, without padding, the longest one first."""
    order, lengths = _sort_by_length(windows)
    return [WindowBatch(order[n : n + 1], (1, int(lengths[order[n]]))) for n in range(len(order))]


def round_up(length: int) -> int:
    """Round up to a multiple of :data:`LENGTH_UNIT`."""
    return -(-length // LENGTH_UNIT) * LENGTH_UNIT


def _sort_by_length(windows: list[TokenisedWindow]) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.array([len(window.ids) for window in windows])
    return np.argsort(-lengths, kind="stable"), lengths
