"""What type checkers see of the library: `make lint` runs mypy and pyright on this file."""

import numpy as np
import pandas as pd

import shape_of_learning as sol
from shape_of_learning.training import ShapeCallback, ShapeProbe

X = np.zeros((100, 8))
value: float = sol.anisotropy(X)
score: float = sol.linearity(X, X)
table: pd.DataFrame = sol.measure(X.reshape(10, 10, 8), measures=["anisotropy"])
probe = ShapeProbe(None, ["a text"], layers=[1], bands={"anisotropy": (0.0, 0.5)})
logged: dict[str, float] = probe(None, step=10)
callback: type[ShapeCallback] = ShapeCallback
