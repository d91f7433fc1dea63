"""seaborn without what it imports of SciPy for figures of other kinds, half of its own time.

It has a density of its own where there is no ``scipy.stats``; ``scipy.cluster`` it needs only for trees.
"""

import sys

_hidden = {"scipy.stats", "scipy.cluster"} - sys.modules.keys()
sys.modules.update(dict.fromkeys(_hidden))  # type: ignore[arg-type]  # an import of None is an ImportError
try:
    import seaborn
finally:
    for _name in _hidden:
        del sys.modules[_name]

__all__ = ["seaborn"]
