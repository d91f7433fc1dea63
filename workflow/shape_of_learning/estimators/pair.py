"""Hidden states before and after a block."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Pair:
    """Hidden states before a block and after it, (n, d) and (n, e), and the window of each, int64 (n,)."""

    x: Any
    y: Any
    windows: np.ndarray
