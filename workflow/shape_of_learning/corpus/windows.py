"""Draw windows of text at random, and cut or read the held-out end of a text."""

from collections import deque
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from shape_of_learning.errors import InputError

# Share of a text at its end that is never used for training or fitting.
HELD_OUT_SHARE = 0.05
PART_CHARACTERS = 1 << 20  # characters that are read at a time


def read_text(path: Path) -> str:
    """Read a corpus without changing any character; InputError if it is not UTF-8."""
    try:
        return path.read_bytes().decode("utf-8")  # `read_text` would change line ends
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text ({error}); delete it and run again") from error


def draw_windows_of_file(
    path: Path, count: int, length: int, rng: np.random.Generator, *, label: str = ""
) -> list[str]:
    """Draw windows as :func:`sample_windows` does, from a file that is read as a stream.

    Messages name the file by its `label`, or by its path.

    Raises
    ------
    InputError
        If the file has fewer than `count` windows, or is not UTF-8.
    """
    characters = sum(map(len, _read_parts(path)))
    key = "sampling.windows"
    starts = _draw_starts(characters, count, length, rng, corpus=label or path, key=key)
    windows: dict[int, str] = {}
    remaining = deque(sorted(starts))
    buffer, offset = "", 0  # the offset of the buffer in the text
    for part in _read_parts(path):
        buffer += part
        while remaining and remaining[0] + length <= offset + len(buffer):
            start = remaining.popleft()
            windows[start] = buffer[start - offset : start - offset + length]
        if not remaining:
            break
        skip = min(remaining[0] - offset, len(buffer))
        buffer = buffer[skip:]
        offset += skip
    return [windows[start] for start in starts]


def _read_parts(path: Path) -> Iterator[str]:
    """Read a file part by part without changing any character."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            while part := file.read(PART_CHARACTERS):
                yield part
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text ({error}); delete it and run again") from error


def sample_windows(
    text: str,
    count: int,
    length: int,
    rng: np.random.Generator,
    *,
    corpus: str | Path = "corpus",
    key: str = "sampling.windows",
) -> list[str]:
    """Draw windows that do not overlap, without replacement.

    The text is divided from its beginning into windows of `length` characters; a shorter rest at its end is never
    drawn.

    Parameters
    ----------
    text : str
        Whole corpus.
    count : int
        Number of windows, at least 1.
    length : int
        Characters of a window, at least 1.
    rng : numpy.random.Generator
        With the same state, the windows of a smaller `count` are the first windows of a larger `count`.
    corpus : str or Path
        Name of the corpus in an error.
    key : str
        Key of the configuration that sets `count`, for an error.

    Returns
    -------
    list of str
        Windows in the order of drawing, which is not their order in the text.

    Raises
    ------
    InputError
        If the text has fewer than `count` windows.
    """
    starts = _draw_starts(len(text), count, length, rng, corpus=corpus, key=key)
    return [text[start : start + length] for start in starts]


def _draw_starts(
    characters: int,
    count: int,
    length: int,
    rng: np.random.Generator,
    *,
    corpus: str | Path,
    key: str,
) -> list[int]:
    """Draw the starts of windows in a text of `characters` characters."""
    available = characters // length
    if available < count:
        raise InputError(
            f"{corpus} has {characters:,} characters, hence {available} windows of {length} and not {count}",
            f"lower {key} or sampling.window_characters, or give a larger corpus in corpus.sources",
            "lower `windows`, or give `texts` of your own",
        )
    # The first numbers of a permutation do not depend on `count`, but the first numbers of `choice` do.
    return (rng.permutation(available)[:count] * length).tolist()


def cut_held_out_part(text: str) -> str:
    """Return the text without its held-out end."""
    return text[: _find_held_out_start(text)]


def read_held_out_part(text: str, length: int, trained_on: int = 0) -> str:
    """Return the held-out end of a text in whole windows, counted from the end.

    Parameters
    ----------
    text : str
        Whole corpus.
    length : int
        Characters of a window, at least 1.
    trained_on : int
        Number of characters at the beginning of the text on which a model was trained. A pretraining counts its share
        in tokens, so this may be a little longer than :func:`cut_held_out_part`. Windows that overlap it are left out;
        the other windows are the same for all models.
    """
    start = max(_find_held_out_start(text), trained_on)
    return text[start + (len(text) - start) % length :]


def _find_held_out_start(text: str) -> int:
    return len(text) - round(HELD_OUT_SHARE * len(text))
