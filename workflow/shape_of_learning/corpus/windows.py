"""Windows of text, drawn at random."""

from collections import deque
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from shape_of_learning.errors import InputError

# The end of a text, on which nothing is trained and nothing is fitted.
HELD_OUT_SHARE = 0.05
PART_CHARACTERS = 1 << 20  # that are read at a time


def read_text(path: Path) -> str:
    """Read a corpus, keeping every character as it is; InputError if it is not UTF-8."""
    try:
        return path.read_bytes().decode("utf-8")  # `read_text` would change ends of lines
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text ({error}): prepare the corpus anew") from error


def draw_windows_of_file(
    path: Path, count: int, length: int, rng: np.random.Generator, *, called: str = ""
) -> list[str]:
    """Draw windows as :func:`sample_windows` does, from a file that is read as a stream.

    Messages name the file by its path, or as it is `called`.

    Raises
    ------
    InputError
        If the file has fewer than `count` windows, or is not UTF-8.
    """
    characters = sum(map(len, _read_parts(path)))
    key = "sampling.windows"
    starts = _draw_starts(characters, count, length, rng, corpus=called or path, key=key)
    windows: dict[int, str] = {}
    left = deque(sorted(starts))
    part, place = "", 0
    for more in _read_parts(path):
        part += more
        while left and left[0] + length <= place + len(part):
            start = left.popleft()
            windows[start] = part[start - place : start - place + length]
        if not left:
            break
        reached = min(left[0] - place, len(part))
        part, place = part[reached:], place + reached
    return [windows[start] for start in starts]


def _read_parts(path: Path) -> Iterator[str]:
    """Read a file part by part, keeping every character as it is."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            while part := file.read(PART_CHARACTERS):
                yield part
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text ({error}): prepare the corpus anew") from error


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

    The text is laid out in windows of `length` characters from its beginning; what is left at its
    end, shorter than that, is never drawn.

    Parameters
    ----------
    text : str
        Whole corpus.
    count : int
        Number of windows, at least 1.
    length : int
        Characters in each, at least 1.
    rng : numpy.random.Generator
        With the same state, the windows of a smaller `count` are the first ones of a larger.
    corpus : str or Path
        What to call the corpus in a message.
    key : str
        Of the configuration, by which there could be fewer.

    Returns
    -------
    list of str
        In the order drawn, which is not that of the text.

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
    """Draw where windows begin in a text of so many characters."""
    available = characters // length
    if available < count:
        raise InputError(
            f"{corpus} has {characters:,} characters, hence {available} windows of {length} and not {count}; "
            f"lower {key} or sampling.window_characters, or give a larger corpus in corpus.sources"
        )
    # A permutation, not `choice`, whose first numbers depend on how many are drawn.
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
        Characters at the beginning of the text that a model has been trained on. A pretraining counts its
        share in tokens, so this may be a little more than :func:`cut_held_out_part`; windows that reach into it
        are left out, and those that remain are the same for all models.
    """
    start = max(_find_held_out_start(text), trained_on)
    return text[start + (len(text) - start) % length :]


def _find_held_out_start(text: str) -> int:
    return len(text) - round(HELD_OUT_SHARE * len(text))
