"""The entry of a measure in the registry, and the variants of the sample that it can be measured on.

This module imports nothing heavy, because every start of Snakemake imports it.
"""

import math
import string
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from importlib import import_module
from typing import Any

from shape_of_learning.errors import InputError
from shape_of_learning.metrics.suspects import Conditions

FAMILIES = ("isotropy", "dimension", "spectrum", "linearity", "windows")  # of hidden states
# Families whose measures take all vectors at once, without batches.
WHOLE = ("linearity", "windows")
WEIGHTS = "weights"  # the family of measures of a model's own matrices
# An entry can override these keys of `measurement`, and take the last layer before the final norm.
ROW_SWITCHES = {
    "special_tokens": ("keep", "drop"),
    "first_token": ("keep", "drop"),
    "token_types": ("all", "one"),
    "massive_tokens": ("keep", "drop"),
    "sequence": ("all", "last_token", "mean"),
    "last_layer": ("before_final_norm",),
}
Value = bool | int | float | str


def find_first_layer(family: str) -> int:
    """Return the first layer of a family of measures: 0, or 1 if its layers are blocks."""
    return 1 if family == "linearity" else 0


# The two possible states of the last layer.
AFTER = "after_final_norm"
BEFORE = "before_final_norm"


@dataclass(frozen=True)
class SampleVariant:
    """A choice of rows and of the size of batches; options have their names in tables.

    Attributes
    ----------
    text : str
        ``"own"``, the windows of the run; ``"resampled"``, as many other windows of the same text; or a source.
    first_token, special_tokens, token_types, massive_tokens, same_window, sequence : str
        As in section ``measurement``.
    windows_share, batch_share : str
        Numbers: the share of the windows, and the size of a batch as a share of the run's size.
    """

    text: str = "own"
    first_token: str = "keep"
    special_tokens: str = "keep"
    token_types: str = "all"
    massive_tokens: str = "keep"
    same_window: str = "keep"
    sequence: str = "all"
    windows_share: str = "1"
    batch_share: str = "1"


ROW_CHOICES = tuple(field.name for field in fields(SampleVariant))


@dataclass(frozen=True)
class AllowedRange:
    """The numbers above `above`, at least `least`, at most `most`, and above the value of `above_parameter`.

    Attributes
    ----------
    above, least, most : float
    above_parameter : str
        Name of another parameter of the measure; empty if there is no such bound.
    """

    above: float = -math.inf
    least: float = -math.inf
    most: float = math.inf
    above_parameter: str = ""

    def __contains__(self, number: float) -> bool:
        return self.above < number and self.least <= number <= self.most

    def __str__(self) -> str:
        bounds = {"above": self.above, "at least": self.least, "at most": self.most}
        return " and ".join(f"{k} {bound}" for k, bound in bounds.items() if math.isfinite(bound))


@dataclass(frozen=True)
class Measure:
    """A measure: its function, the arguments of this function, and the labels in figures.

    Attributes
    ----------
    function : str
        ``"module:function"``. It takes the data of the `family` and the `arguments` by name, and returns a float,
        NaN if the measure is undefined.
    family : {"isotropy", "spectrum", "dimension", "linearity", "windows", "weights"}
        The data that the function takes. Per batch: its vectors (n, d), float32, or a tensor on a GPU (isotropy); the
        eigenvalues of their covariance, descending, float64 (spectrum); or the distances from each distinct
        vector to its nearest neighbours, ascending, (m, `neighbours`), float64 (dimension). From all selected
        vectors at once: the hidden states before and after a block, (n, d) and (n, e), where ``layer`` is the
        block, from 1 (linearity); or the vectors and the window of each, int64 (n,) (windows).
        Per checkpoint: a matrix of its weights (rows, d), float32 (weights).
    label, axis, description : str
        Name on panels, quantity on an axis, clause of a caption. ``{parameter}`` stands for the value of a parameter,
        ``{parameter:percent}`` for the value as a percentage.
    parameters : mapping of str to bool, int, float or str
        The settings and their defaults, which ``measurement.parameters`` in the configuration overrides.
    allowed : mapping of str to AllowedRange or tuple of str
        The allowed values of a setting; its type is that of the default.
    fixed : mapping
        Further arguments of the function, which the configuration cannot change.
    depends_on_n : bool
        Whether values of batches of different sizes cannot be compared.
    neighbours : int or str
        The number of nearest distances that the function takes, or the name of the parameter with this number; 0 for
        ``measurement.neighbours``.
    jackknife_function : str
        For isotropy, linearity and windows: a function in the same module that computes the value and the values
        without each of several sets of rows, faster than `function` could. Its further argument is a list of the row
        numbers of each set. For a block its only argument is a
        :class:`~shape_of_learning.estimators.pair.Pair`, which the measures of the block share and whose `parts` are
        the sets of rows.
    collapse : bool
        Whether identical vectors count as one. If not, a measure of neighbours takes the distances from
        all n vectors to their two nearest neighbours, (n, 2), zero to a copy, in units of
        :func:`~shape_of_learning.estimators.dimension.mean_distance_to_mean`.
    has_interval : bool
        Whether 95 % intervals of this measure are known to contain the true value (docs/explanation/statistics.md).
        Tables have no intervals of other measures.
    shrinks_jackknife : bool
        Whether :func:`.combine_jackknife_values` shrinks the jackknife values of a measure of neighbours. If it does
        not, the neighbours are recomputed, and standard errors are upper bounds in the mean.
    has_jackknife : bool
        Whether there are jackknife values, without which there are no intervals.
    moments : {"", "vectors", "increments"}
        The vectors whose second moments decide the measure: the hidden states (of a block, its outputs), or the
        increments of a block. There are no intervals if a few windows hold the variance in the leading direction of
        these vectors. Empty if a few long vectors cannot decide the measure.
    near_duplicate_limit : float, optional
        The largest share of vectors with a near-duplicate (r2/r1 > 10) at which the measure is valid; figures mark
        points above it.
    matrix : {"final_norm"}, optional
        For weights: the function takes the gain and the bias of the final norm, (d,) each, None without a bias. By
        default it takes the input embeddings, and then the output embeddings.
    rows : mapping
        For isotropy, linearity and windows: keys of ``measurement`` in which the selection of rows differs from the
        configuration, such as ``{"first_token": "drop"}``; or ``{"last_layer": "before_final_norm"}``, which takes
        the last layer before the final norm (with ``forward.last_layer: both``).
    name : str
        The key in the registry; :meth:`configure` sets it.

    Examples
    --------
    >>> Measure("numpy:trace", "isotropy", "Trace {k}", "Trace", {"k": 0}).configure("trace", {"k": 1}).label
    'Trace 1'
    """

    function: str
    family: str
    label: str = ""
    axis: str = ""
    parameters: Mapping[str, Value] = field(default_factory=dict)
    allowed: Mapping[str, AllowedRange | tuple[str, ...]] = field(default_factory=dict)
    fixed: Mapping[str, Value] = field(default_factory=dict)
    depends_on_n: bool = False
    neighbours: int | str = 0
    description: str = ""
    jackknife_function: str = ""
    collapse: bool = True
    has_interval: bool = True
    shrinks_jackknife: bool = True
    has_jackknife: bool = True
    moments: str = ""
    near_duplicate_limit: float | None = None
    matrix: str = ""
    rows: Mapping[str, str] = field(default_factory=dict)
    name: str = ""

    def __post_init__(self) -> None:
        families = (*FAMILIES, WEIGHTS)
        selects = self.family in ("isotropy", "linearity", "windows")
        if self.family not in families:
            raise ValueError(f"`family` must be one of {', '.join(families)}, not {self.family!r}")
        if (self.rows or self.jackknife_function) and not selects:
            raise ValueError(
                f"`rows` and `jackknife_function` are not for the family {self.family}"
            )
        if any(choice not in ROW_SWITCHES.get(key, ()) for key, choice in self.rows.items()):
            raise ValueError(f"`rows` can have {ROW_SWITCHES}, but has {dict(self.rows)}")
        if not self.collapse and (self.family, self.neighbours) != ("dimension", 2):
            raise ValueError("`collapse` may be false for a measure of two neighbours only")
        # Raises an error if a label names a parameter that does not exist.
        self._format_words(self.parameters)

    def _format_words(self, parameters: Mapping[str, Value]) -> dict[str, Any]:
        keys = ("label", "axis", "description")
        return {key: _Template().vformat(getattr(self, key), (), parameters) for key in keys}

    def configure(self, name: str, settings: Mapping[str, Value]) -> "Measure":
        """Return this measure with its name and settings, which the configuration has checked."""
        parameters = {**self.parameters, **settings}
        neighbours = self.neighbours
        if isinstance(neighbours, str):
            neighbours = int(parameters[neighbours])
        words = self._format_words(parameters)
        return replace(self, name=name, parameters=parameters, neighbours=neighbours, **words)

    @property
    def arguments(self) -> dict[str, Value]:
        """The arguments of the function besides the data."""
        return {**self.fixed, **self.parameters}

    @property
    def conditions(self) -> Conditions:
        """The conditions under which a value is not suspect."""
        return Conditions(
            is_dimension=self.family == "dimension",
            is_positive=self.family == "dimension" or self.axis == "Directions",
            has_interval=self.has_interval,
            near_duplicate_limit=self.near_duplicate_limit,
        )

    @property
    def first_layer(self) -> int:
        """The first number in the column ``layer``."""
        return find_first_layer(self.family)

    @property
    def module(self) -> str:
        """The module of the function."""
        return self.function.partition(":")[0]

    def load(self) -> Callable[..., float]:
        """Import the function and bind its arguments."""
        function = self._import_function(self.function.partition(":")[2])
        return lambda *data: float(function(*data, **self.arguments))

    def load_jackknife(self) -> Callable[..., tuple[float, Any]]:
        """Import the function of the jackknife values and bind its arguments."""
        return partial(self._import_function(self.jackknife_function), **self.arguments)

    def _import_function(self, name: str) -> Callable[..., Any]:
        try:
            return getattr(import_module(self.module), name)
        except (ImportError, AttributeError) as error:
            raise InputError(
                f"measure `{self.name}`: {self.module}:{name} cannot be imported ({error}); correct its "
                "entry, or install its package where jobs run"
            ) from error


def drop_labels_and_rules(measures: Iterable[Measure]) -> tuple[Measure, ...]:
    """Return measures without their labels, and without the rules that mark values as suspect.

    Jobs hold these measures, so that a changed label or rule does not rerun a measurement.
    """
    return tuple(
        replace(
            measure,
            label="",
            axis="",
            description="",
            allowed={},
            has_interval=True,
            near_duplicate_limit=None,
            depends_on_n=False,
        )
        for measure in measures
    )


class _Template(string.Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec == "percent":
            return f"{100 * value:.4g} %"
        return super().format_field(value, format_spec)


def count_searched_neighbours(k: int) -> int:
    r"""Return the number of neighbours to search so that k remain without any one group of windows.

    This is the least :math:`K` with :math:`(1 - p) K - 4 \sqrt{p (1 - p) K} \ge k`. Neighbours cluster in some
    windows, so the formula leaves two of the 16 groups out at once, p = 2/16. If the number of neighbours that a
    vector loses is binomial, four standard deviations leave one vector in 30,000 with fewer than k neighbours. With
    MiniLM on 128 windows of real text, at most one vector in 1,000 had fewer.

    Examples
    --------
    >>> [count_searched_neighbours(k) for k in (2, 20, 100, 128)]
    [6, 32, 132, 166]
    """
    p = 2 / 16
    spread = 4 * math.sqrt(p * (1 - p))
    root = (spread + math.sqrt(spread**2 + 4 * (1 - p) * k)) / (2 * (1 - p))
    return math.ceil(root**2)
