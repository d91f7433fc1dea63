"""Let the Python that runs this file import the library of this clone, wherever it is started.

The library is looked for last, after all of the path. A folder in a `.pth` file would come before what Snakemake adds
to the path of its jobs, so that the jobs of another clone would run the code of this one.
"""

import sysconfig
from pathlib import Path

WORKFLOW = Path(__file__).resolve().parents[1] / "workflow"
LINE = f"""\
import sys; from importlib.machinery import PathFinder; sys.meta_path.append(type("FinderOfTheClone", (), \
{{"find_spec": lambda self, name, path=None, target=None, finder=PathFinder: \
finder.find_spec(name, [{str(WORKFLOW)!a}]) if name == "shape_of_learning" else None}})())
"""

(Path(sysconfig.get_path("purelib")) / "shape-of-learning.pth").write_text(LINE, encoding="utf-8")
