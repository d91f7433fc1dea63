"""Windows are aligned, different and drawn by the seed."""

import numpy as np
import pytest

from shape_of_learning.corpus.windows import held_out_part, read_text, sample_windows, training_part
from shape_of_learning.errors import InputError
from shape_of_learning.random_streams import random_stream

TEXT = "".join(chr(0x4E00 + i) for i in range(1003))


def starts(windows):
    """Where they are: no character of the text is there twice."""
    return [TEXT.index(window[0]) for window in windows]


def test_windows_are_aligned_and_never_drawn_twice_in_an_order_that_the_stream_decides():
    windows = sample_windows(TEXT, 100, 10, random_stream(1, "windows"))
    drawn = starts(windows)
    assert windows == [TEXT[start : start + 10] for start in drawn]
    assert sorted(drawn) == list(range(0, 1000, 10)) != drawn
    assert sample_windows(TEXT, 5, 10, random_stream(1, "windows")) == windows[:5]
    assert sample_windows(TEXT, 100, 10, random_stream(2, "windows")) != windows


def test_every_window_is_equally_likely():
    rng = np.random.default_rng(0)
    drawn = [starts(sample_windows(TEXT, 10, 100, rng)[:3]) for _ in range(2000)]
    counts = np.bincount(np.ravel(drawn) // 100, minlength=10)
    # 6000 draws, three at a time without replacement: each window is binomial(2000, 0.3).
    assert np.all(np.abs(counts - 600) < 5 * np.sqrt(2000 * 0.3 * 0.7))


def test_a_corpus_too_small_is_refused_with_what_to_change():
    with pytest.raises(InputError) as failure:
        sample_windows(TEXT, 101, 10, np.random.default_rng(0), corpus="results/corpus/text.txt")
    for named in ("results/corpus/text.txt", "100 windows of 10", "101", "sampling.windows"):
        assert named in str(failure.value)


def test_text_is_read_without_a_change_and_a_file_that_is_no_text_is_refused(tmp_path):
    content = "a\r\nb\n\x0cc\u2028d\n"
    (tmp_path / "text").write_bytes(content.encode())
    assert read_text(tmp_path / "text") == content
    (tmp_path / "text").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="text is not UTF-8"):
        read_text(tmp_path / "text")


@pytest.mark.parametrize("trained_on", [0, 953, 954, 970, 1003])
@pytest.mark.parametrize("length", [1, 7, 10, 50, 51])
def test_held_out_windows_reach_to_the_end_and_no_training_text_into_them(length, trained_on):
    training, held_out = training_part(TEXT), held_out_part(TEXT, length, trained_on)
    assert len(training) == 953  # 1003 less a twentieth
    assert TEXT.startswith(training)
    assert TEXT.endswith(held_out)
    start = len(TEXT) - len(held_out)
    assert start >= max(953, trained_on)
    assert len(held_out) % length == 0
    assert start - max(953, trained_on) < length
