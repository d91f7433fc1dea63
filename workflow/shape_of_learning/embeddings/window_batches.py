"""How windows of text are joined to the window batches that go through a model together."""

from dataclasses import dataclass

import numpy as np

from shape_of_learning.embeddings.tokenisation import TokenisedWindow

# The longest window is padded to a multiple of 2^4 3, so that its tokens have divisors
# close to whatever length the other windows have.
LENGTH_UNIT = 48
# With fewer rows, MKL multiplies matrices by another algorithm, which rounds otherwise: seen on Intel's
# processors, up to 15 rows.
LEAST_TOKENS = 16


@dataclass(frozen=True)
class WindowBatch:
    """Windows that go through the model together.

    Attributes
    ----------
    windows : ndarray of int64, shape (n,)
        Window numbers.
    shape : tuple of int
        Rows and tokens per row that the model sees. Windows are padded to this length, and rows
        beyond the windows are filled up by repeating the last one.
    """

    windows: np.ndarray
    shape: tuple[int, int]


def window_batches_by_length(
    windows: list[TokenisedWindow], size: int, context: int | None
) -> list[WindowBatch]:
    """Join `size` windows of similar length, padded to the longest of them: little is padded.

    But none has fewer tokens than :data:`LEAST_TOKENS`, if the context admits them, so that on a CPU, too,
    equal vectors of different window batches stay equal.

    Parameters
    ----------
    windows : list of TokenisedWindow
        All windows.
    size : int
        How many windows one of them holds.
    context : int or None
        Most tokens that the model takes, padding included; None for any number.

    Returns
    -------
    list of WindowBatch
        Longest windows first, so that memory is exhausted at once or never.
    """
    order, lengths = _longest_first(windows)
    batches = []
    for part in (order[start : start + size] for start in range(0, len(order), size)):
        longest, enough = int(lengths[part[0]]), -(-LEAST_TOKENS // len(part))
        length = enough if context is None else min(enough, context)
        batches.append(WindowBatch(part, (len(part), max(longest, length))))
    return batches


def window_batches_of_equal_work(
    windows: list[TokenisedWindow], size: int, context: int | None
) -> list[WindowBatch]:
    """Join windows so that all window batches have the same number of tokens, padding included.

    A matrix product sees a window batch as one matrix with a row for each token. On a GPU its algorithm,
    and with it the rounding, is chosen by the number of rows. With one number of rows for all, equal
    vectors of different window batches (the first tokens of all windows, say, which in a decoder depend on
    nothing else) stay equal bit for bit, so that duplicates are recognised. The memory that
    they take is the same for all, too. The shapes differ, their products do not.

    Parameters and result are those of :func:`window_batches_by_length`; but `size` is how many of the
    longest windows one of them holds, and of shorter ones it holds more.
    """
    order, lengths = _longest_first(windows)
    longest = int(lengths[order[0]])
    rounded = -(-longest // LENGTH_UNIT) * LENGTH_UNIT
    length = rounded if context is None else max(longest, min(rounded, context))
    tokens = min(size, len(windows)) * length
    divisors = [rows for rows in range(1, tokens + 1) if tokens % rows == 0]
    batches, start = [], 0
    while start < len(order):
        needed = max(1, int(lengths[order[start]]))
        rows = max(rows for rows in divisors if tokens // rows >= needed)
        batches.append(WindowBatch(order[start : start + rows], (rows, tokens // rows)))
        start += rows
    return batches


def _longest_first(windows: list[TokenisedWindow]) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.array([len(window.ids) for window in windows])
    return np.argsort(-lengths, kind="stable"), lengths
