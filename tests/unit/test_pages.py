"""What pages state about a run is what its tables say, and published images have the colours that were drawn."""

import sys

import numpy as np
import PIL.Image

from checkouts import REPOSITORY
from shape_of_learning.figures.style import COLOURS

sys.path.insert(0, str(REPOSITORY / "docs"))
import write_showcase


def test_the_showcase_says_what_its_ledger_says():
    write_showcase.main("--check")


def test_a_published_image_has_the_colours_that_were_drawn(tmp_path):
    # Many shades besides, as a heat map and smooth edges have.
    drawn = np.tile(np.arange(256, dtype=np.uint8)[:, None, None], (1, 640, 3))
    drawn[..., 1] = drawn[..., 1][::-1]
    for place, colour in enumerate(COLOURS):
        drawn[:, 60 * place : 60 * place + 20] = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    PIL.Image.fromarray(drawn).save(tmp_path / "drawn.png", dpi=(300, 300))
    write_showcase.publish_image(tmp_path / "drawn.png", tmp_path / "published.png")
    published = np.asarray(PIL.Image.open(tmp_path / "published.png").convert("RGB"))
    assert published.shape == (128, 320, 3)
    for place in range(len(COLOURS)):
        assert (published[64, 30 * place + 5] == drawn[128, 60 * place + 10]).all()
