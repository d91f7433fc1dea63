"""The measures that the workflow knows, by the names of tables and configuration.

A new measure is a function and an entry here. Or it is in a package of one's own, as an entry point of the
group ``shape_of_learning.measures``, whose name is the measure's and whose object is a :class:`Measure`. This
module imports nothing heavy, because the Snakefile reads it at every start.
"""

import json
import re
import string
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from shape_of_learning.errors import InputError

GROUP = "shape_of_learning.measures"
# What a measure can be taken of. A new kind is a name here, its batches in `metrics/layer.py`, and a job.
KINDS = ("vectors", "spectrum", "neighbours")

Value = bool | int | float | str


@dataclass(frozen=True)
class Interval:
    """Numbers above `above`, from `least` on, up to `most`."""

    above: float | None = None
    least: float | None = None
    most: float | None = None

    def __contains__(self, number: float) -> bool:
        return (
            (self.above is None or number > self.above)
            and (self.least is None or number >= self.least)
            and (self.most is None or number <= self.most)
        )

    def __str__(self) -> str:
        bounds = (("above", self.above), ("at least", self.least), ("at most", self.most))
        return " and ".join(f"{word} {bound}" for word, bound in bounds if bound is not None)


@dataclass(frozen=True)
class Measure:
    """An entry: what a measure is taken of, its settings, and how figures call it.

    Attributes
    ----------
    function : str
        ``"module:function"``. It is given what `of` says and the parameters by name, and returns a float, NaN
        where it is undefined.
    of : {"vectors", "spectrum", "neighbours"}
        Of a batch: its vectors (n, d), float32 or a tensor on a GPU; the eigenvalues of their covariance,
        descending, float64; or the distances from each distinct vector to its nearest others, ascending,
        (m, `neighbours`), float64 (see `collapse`).
    label, axis, description : str
        Name on panels, quantity on an axis, clause of a caption; ``{parameter}`` is replaced by its value and
        ``{parameter:percent}`` by it as a percentage.
    parameters : mapping of str to bool, int, float or str
        The settings and their defaults, which ``measurement.parameters`` in the configuration overrides.
    allowed : mapping of str to Interval or tuple of str
        What a setting may be, beyond being of its default's type.
    fixed : mapping
        Further arguments of the function, which make the variant and are no settings.
    depends_on_n : bool
        Whether values of batches of different sizes cannot be compared.
    neighbours : int or str
        How many nearest distances it is given, or the name of the parameter that says it; 0 for
        ``measurement.neighbours``.
    leaving_out : str
        Of a measure of vectors: a function in the same module that finds the values without each of some
        sets of rows faster than by measuring again and again. It is given a list of their row numbers
        besides, and returns the value and those without each set.
    collapse : bool
        Whether identical vectors count as one. If not, a measure of neighbours is given the distances from
        all n vectors to their two nearest others, (n, 2), zero to a copy, in units of
        :func:`~shape_of_learning.estimators.two_nn_authors.mean_distance_to_mean`.
    interval : bool
        Whether the 95 % intervals of single layers are known to cover (docs/statistics.md); if not, tables
        and figures have them of averages over layers only.
    suspect_above : float, optional
        The largest share of vectors with a near-duplicate (r2/r1 > 10) up to which its conditions hold; above
        it, figures mark the point.

    Examples
    --------
    >>> Measure("numpy:trace", "vectors", "Trace {k}", "Trace", {"k": 0}).chosen("trace", {"k": 1}).label
    'Trace 1'
    """

    function: str
    of: str
    label: str
    axis: str
    parameters: Mapping[str, Value] = field(default_factory=dict)
    allowed: Mapping[str, Interval | tuple[str, ...]] = field(default_factory=dict)
    fixed: Mapping[str, Value] = field(default_factory=dict)
    depends_on_n: bool = False
    neighbours: int | str = 0
    description: str = ""
    leaving_out: str = ""
    collapse: bool = True
    interval: bool = True
    suspect_above: float | None = None

    def __post_init__(self) -> None:
        if self.of not in KINDS:
            raise ValueError(f"`of` must be one of {', '.join(KINDS)}, but is {self.of!r}")
        if not self.collapse and (self.of, self.neighbours) != ("neighbours", 2):
            raise ValueError("`collapse` may be false for a measure of two neighbours only")
        if ":" not in self.function:
            raise ValueError(f"`function` must be 'module:function', but is {self.function!r}")
        self.chosen(
            "", {}
        )  # which fails where words or `neighbours` name a parameter that there is not

    def chosen(self, name: str, settings: Mapping[str, Value]) -> "ChosenMeasure":
        """Fill in the settings that differ from the defaults; what they may be is checked elsewhere."""
        parameters = {**self.parameters, **settings}
        words = {
            key: _Template().vformat(getattr(self, key), (), parameters)
            for key in ("label", "axis", "description")
        }
        needed = self.neighbours
        return ChosenMeasure(
            name=name,
            function=self.function,
            of=self.of,
            parameters={**self.fixed, **parameters},
            neighbours=int(parameters[needed]) if isinstance(needed, str) else needed,
            depends_on_n=self.depends_on_n,
            leaving_out=self.leaving_out,
            collapse=self.collapse,
            interval=self.interval,
            suspect_above=self.suspect_above,
            **words,
        )


@dataclass(frozen=True)
class ChosenMeasure:
    """A measure with its settings, as jobs and figures are told of it.

    Attributes
    ----------
    name : str
        Of tables and configuration.
    parameters : mapping
        All arguments of the function but the first.
    neighbours : int
        How many nearest distances it is given.
    function, of, depends_on_n, leaving_out, collapse, interval, suspect_above
        As in :class:`Measure`.
    label, axis, description : str
        In words, with the settings in use.
    """

    name: str
    function: str
    of: str
    parameters: Mapping[str, Value]
    neighbours: int = 0
    depends_on_n: bool = False
    label: str = ""
    axis: str = ""
    description: str = ""
    leaving_out: str = ""
    collapse: bool = True
    interval: bool = True
    suspect_above: float | None = None

    @property
    def module(self) -> str:
        """Where the function lives."""
        return self.function.partition(":")[0]

    def load(self) -> Callable[[Any], float]:
        """Import the function; what is returned takes what the measure is taken of.

        Raises
        ------
        InputError
            If there is no such function.
        """
        function = self._function(self.function.partition(":")[2])
        return lambda taken: float(function(taken, **self.parameters))

    def load_leaving_out(self) -> Callable[[Any, list[Any]], tuple[float, Any]] | None:
        """Import the function that also measures without sets of rows, if there is one; errors likewise."""
        if not self.leaving_out:
            return None
        function = self._function(self.leaving_out)
        return lambda taken, parts: function(taken, parts, **self.parameters)

    def _function(self, name: str) -> Callable[..., Any]:
        try:
            return getattr(import_module(self.module), name)
        except (ImportError, AttributeError) as error:
            raise InputError(
                f"measure `{self.name}`: {self.module}:{name} cannot be imported ({error}); correct its "
                "entry, or install its package where jobs run"
            ) from error

    def without_words(self) -> "ChosenMeasure":
        """What its values depend on, and nothing else."""
        return replace(self, label="", axis="", description="", interval=True, suspect_above=None)

    def to_json(self) -> str:
        """Write as one line that :meth:`from_json` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "ChosenMeasure":
        """Read what :meth:`to_json` wrote."""
        return cls(**json.loads(text))


class _Template(string.Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec == "percent":
            return f"{100 * value:.4g} %"
        return super().format_field(value, format_spec)


_KEPT = Interval(above=0, most=1)
_K = Interval(least=2)
_COMBINE = ("mean", "median", "harmonic")


def _isotropy(function: str, center: bool, label: str, axis: str, description: str) -> Measure:
    where = f"shape_of_learning.estimators.{function}:{function}"
    return Measure(
        where,
        "vectors",
        label,
        axis,
        fixed={"center": center},
        description=description,
        leaving_out="leaving_out",
    )


def _dimension(function: str, label: str, **others: Any) -> Measure:
    where = f"shape_of_learning.estimators.{function}:{function}"
    axis = "Intrinsic dimension"
    return Measure(where, "neighbours", label, axis, depends_on_n=True, **others)


def _local(function: str, k: int, combine: str, *, interval: bool = True) -> Measure:
    label = function.upper()
    return _dimension(
        function,
        label,
        parameters={"k": k, "combine": combine},
        allowed={"k": _K, "combine": _COMBINE},
        neighbours="k",
        interval=interval,
        description=f"{label} takes k = {{k}} neighbours (combine: {{combine}})",
    )


MEASURES: dict[str, Measure] = {
    "anisotropy": _isotropy(
        "anisotropy",
        True,
        "Anisotropy",
        "Anisotropy",
        "anisotropy is the largest squared singular value of the centred vectors over the sum of all",
    ),
    "anisotropy_uncentered": _isotropy(
        "anisotropy", False, "Anisotropy, not centred", "Anisotropy", ""
    ),
    "average_cosine": _isotropy("average_cosine", False, "Average cosine", "Average cosine", ""),
    "average_cosine_centered": _isotropy(
        "average_cosine", True, "Average cosine, centred", "Average cosine", ""
    ),
    "two_nn": _dimension(
        "two_nn",
        "TwoNN",
        parameters={"kept": 0.9},
        allowed={"kept": _KEPT},
        neighbours=2,
        suspect_above=0.1,
        description="TwoNN keeps the lowest {kept:percent} of the ratios of neighbour distances",
    ),
    "two_nn_authors": _dimension(
        "two_nn_authors",
        "TwoNN (authors' code)",
        neighbours=2,
        collapse=False,
        suspect_above=0.1,
        description="TwoNN by the authors' code keeps the lowest 20 % and counts vectors that have a copy",
    ),
    # A few rare windows can change a layer's mean by more than the windows at hand tell.
    "mada": _local("mada", 20, "mean", interval=False),
    "mom": _local("mom", 100, "mean", interval=False),
    "mle": _local("mle", 20, "harmonic"),
    **{
        f"gride_{n1}": _dimension(
            "gride",
            f"Gride (n1 = {n1})",
            fixed={"n1": n1},
            neighbours=2 * n1,
            interval=False,  # their coverage was not measured
            # The smallest scale is TwoNN's, by another fit.
            suspect_above=0.1 if n1 == 1 else None,
        )
        for n1 in (1, 2, 4, 8, 16, 32, 64)
    },
}


@cache
def registered() -> dict[str, EntryPoint]:
    """Find the measures that packages of this environment register, by name.

    Raises
    ------
    InputError
        If a name is taken already, or none that a file can have anywhere.
    """
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=GROUP):
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", entry.name):
            raise InputError(
                f"package `{_package(entry)}` registers a measure `{entry.name}`; rename its entry point "
                "with letters, digits, `.`, `_` and `-`, or uninstall it"
            )
        if entry.name in MEASURES or entry.name in found:
            other = _package(found[entry.name]) if entry.name in found else "shape-of-learning"
            raise InputError(
                f"package `{_package(entry)}` registers the measure `{entry.name}`, which {other} has "
                "already; rename its entry point, or uninstall it"
            )
        found[entry.name] = entry
    return found


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.module


def measure_names() -> list[str]:
    """List ours and the registered ones; raises as :func:`registered`."""
    return [*MEASURES, *registered()]


def find_measure(name: str) -> Measure:
    """Look a measure up among ours and the registered ones; KeyError if there is none.

    Raises
    ------
    InputError
        If it is registered, but cannot be loaded or is no :class:`Measure`.
    """
    if name in MEASURES:
        return MEASURES[name]
    entry = registered()[name]
    try:
        measure = entry.load()
    except Exception as error:  # whatever the package's code raises
        reason = f"cannot be loaded ({type(error).__name__}: {' '.join(str(error).split())})"
    else:
        if isinstance(measure, Measure):
            return measure
        reason = f"is no Measure but {type(measure).__name__}"
    raise InputError(
        f"package `{_package(entry)}` registers the measure `{name}`, but {entry.value} {reason}; correct "
        "the package, or uninstall it"
    )
