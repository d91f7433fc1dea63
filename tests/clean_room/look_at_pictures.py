"""Print the share of each PNG that is coloured: `look_at_pictures.py FILE...`, by a Python with Matplotlib.

Frames, words and empty panels are black, white and grey; drawn data have colours.
"""

import sys

import matplotlib.image
import numpy as np

MIN_CHROMA = 0.03  # from the largest to the smallest of red, green and blue, of 1

for path in sys.argv[1:]:
    colours = matplotlib.image.imread(path)[..., :3]
    share = np.mean(np.ptp(colours, axis=-1) > MIN_CHROMA) if colours.ndim == 3 else 0
    print(f"{share:.6f}")
