"""What the registry says of a measure, what is chosen of it, and of which rows it is taken.

This module imports nothing heavy, because the Snakefile reads it at every start.
"""

import math
import string
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from importlib import import_module
from typing import Any

from shape_of_learning.errors import InputError
from shape_of_learning.metrics.suspects import Conditions

FAMILIES = ("isotropy", "dimension", "spectrum", "linearity", "windows")  # of hidden states
WHOLE = ("linearity", "windows")  # whose measures take all vectors together, without batches
WEIGHTS = "weights"  # the family of what is measured of a model's own matrices
# What an entry can choose in the place of the configuration: keys of `measurement`, and of the last
# layer the state before the final norm.
ROW_SWITCHES = {
    "special_tokens": ("keep", "drop"),
    "first_token": ("keep", "drop"),
    "token_types": ("all", "one"),
    "massive_tokens": ("keep", "drop"),
    "last_layer": ("before_final_norm",),
}
Value = bool | int | float | str
# States that the last layer can be.
AFTER, BEFORE = ("after_final_norm", "before_final_norm")


@dataclass(frozen=True)
class SampleVariant:
    """Which vectors are measured, and in batches of how many; the options as the tables write them.

    Attributes
    ----------
    text : str
        ``"own"``, the windows of the run; ``"resampled"``, as many others of the same text; or a source.
    first_token, special_tokens, token_types, massive_tokens, same_window : str
        As in section ``measurement``.
    windows_share, batch_share : str
        Numbers: the share of the windows, and the size of a batch as a share of the run's.
    """

    text: str = "own"
    first_token: str = "keep"
    special_tokens: str = "keep"
    token_types: str = "all"
    massive_tokens: str = "keep"
    same_window: str = "keep"
    windows_share: str = "1"
    batch_share: str = "1"


ROW_CHOICES = tuple(field.name for field in fields(SampleVariant))


@dataclass(frozen=True)
class Interval:
    """Numbers above `above`, from `least` on, up to `most`, and above another parameter, `above_parameter`."""

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
    """What is measured, of what, with which settings, and how figures call it.

    Attributes
    ----------
    function : str
        ``"module:function"``. It is given what `family` says and the arguments by name, and returns a float,
        NaN where it is undefined.
    family : {"isotropy", "spectrum", "dimension", "linearity", "windows", "weights"}
        What the function takes. Of a batch: its vectors (n, d), float32, or a tensor on a GPU (isotropy); the
        eigenvalues of their covariance, descending, float64 (spectrum); or the distances from each distinct
        vector to its nearest others, ascending, (m, `neighbours`), float64 (dimension). Of all selected
        vectors together, without batches: hidden states before a block and after it, (n, d) and (n, e), and
        ``layer`` is the block, from 1 (linearity); or vectors and the window of each, int64 (n,) (windows).
        Of a checkpoint: a matrix of its weights (rows, d), float32 (weights).
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
        Of vectors, blocks or windows: a function in the same module that finds the values without each of
        some sets of rows faster than by measuring again and again. It is given a list of their row numbers
        besides, and returns the value and those without each set. One of a block is given nothing but a
        :class:`~shape_of_learning.estimators.pair.Pair`, which all measures of this block share and which has
        the sets of rows, its `parts`.
    collapse : bool
        Whether identical vectors count as one. If not, a measure of neighbours is given the distances from
        all n vectors to their two nearest others, (n, 2), zero to a copy, in units of
        :func:`~shape_of_learning.estimators.dimension.mean_distance_to_mean`.
    interval : bool
        Whether its 95 % intervals are known to cover (docs/explanation/statistics.md); if not, there are none.
    shrunk : bool
        Whether left-out values of a measure of neighbours are shrunk, as :func:`.combine_jackknife_values` says; if
        not, they are those whose neighbours are found anew, whose standard errors are upper bounds in the mean.
    left_out : bool
        Whether values without groups of windows are taken at all; if not, there are no intervals.
    moments : {"", "vectors", "increments"}
        Whose moments it is made of, which a few windows can decide: those of the vectors (of blocks those after
        it), or of what a block adds to them. Where few windows hold the direction of their largest variance,
        there are no intervals. Empty of what a few long vectors do not decide.
    suspect_above : float, optional
        The largest share of vectors with a near-duplicate (r2/r1 > 10) up to which its conditions hold; above
        it, figures mark the point.
    matrix : {"final_norm"}, optional
        Of weights: that it is given the gain of the final norm and its bias, (d,) each, or None where it has
        no bias; else it is given the input and the output embeddings, each by itself.
    rows : mapping
        Of vectors, blocks or windows: in which keys of ``measurement`` its selection of rows differs from the
        configuration's, such as ``{"first_token": "drop"}``; or ``{"last_layer": "before_final_norm"}``, with
        which the last layer is the state before the final norm (``forward.last_layer: both``).
    name : str
        Its key in the registry; :meth:`configure` fills it in.

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
    allowed: Mapping[str, Interval | tuple[str, ...]] = field(default_factory=dict)
    fixed: Mapping[str, Value] = field(default_factory=dict)
    depends_on_n: bool = False
    neighbours: int | str = 0
    description: str = ""
    leaving_out: str = ""
    collapse: bool = True
    interval: bool = True
    shrunk: bool = True
    left_out: bool = True
    moments: str = ""
    suspect_above: float | None = None
    matrix: str = ""
    rows: Mapping[str, str] = field(default_factory=dict)
    name: str = ""

    def __post_init__(self) -> None:
        families = (*FAMILIES, WEIGHTS)
        selects = self.family in ("isotropy", "linearity", "windows")
        if self.family not in families:
            raise ValueError(f"`family` must be one of {', '.join(families)}, not {self.family!r}")
        if (self.rows or self.leaving_out) and not selects:
            raise ValueError(f"`rows` and `leaving_out` are not for the family {self.family}")
        if any(choice not in ROW_SWITCHES.get(key, ()) for key, choice in self.rows.items()):
            raise ValueError(f"`rows` can have {ROW_SWITCHES}, but has {dict(self.rows)}")
        if not self.collapse and (self.family, self.neighbours) != ("dimension", 2):
            raise ValueError("`collapse` may be false for a measure of two neighbours only")
        # Fails where words name a parameter that there is not.
        self._format_words(self.parameters)

    def _format_words(self, parameters: Mapping[str, Value]) -> dict[str, Any]:
        keys = ("label", "axis", "description")
        return {key: _Template().vformat(getattr(self, key), (), parameters) for key in keys}

    def configure(self, name: str, settings: Mapping[str, Value]) -> "Measure":
        """Fill in the settings that differ from the defaults; what they may be is checked elsewhere."""
        parameters, needed = {**self.parameters, **settings}, self.neighbours
        if isinstance(needed, str):
            needed = int(parameters[needed])
        words = self._format_words(parameters)
        return replace(self, name=name, parameters=parameters, neighbours=needed, **words)

    @property
    def arguments(self) -> dict[str, Value]:
        """All arguments of the function but what it is taken of."""
        return {**self.fixed, **self.parameters}

    @property
    def conditions(self) -> Conditions:
        """What it needs of its values, beyond which they are suspect."""
        return Conditions(
            is_dimension=self.family == "dimension",
            is_positive=self.family in ("dimension", "spectrum"),
            has_interval=self.interval,
            near_duplicates=self.suspect_above,
        )

    @property
    def first_layer(self) -> int:
        """The first number in the column ``layer``: 0, or 1 where layers are blocks."""
        return 1 if self.family == "linearity" else 0

    @property
    def module(self) -> str:
        """Where the function lives."""
        return self.function.partition(":")[0]

    def load(self) -> Callable[..., float]:
        """Import the function; what is returned takes what the measure is taken of."""
        function = self._import_function(self.function.partition(":")[2])
        return lambda *taken: float(function(*taken, **self.arguments))

    def load_leaving_out(self) -> Callable[..., tuple[float, Any]]:
        """Import the function that also measures without sets of rows, where there is one."""
        return partial(self._import_function(self.leaving_out), **self.arguments)

    def _import_function(self, name: str) -> Callable[..., Any]:
        try:
            return getattr(import_module(self.module), name)
        except (ImportError, AttributeError) as error:
            raise InputError(
                f"measure `{self.name}`: {self.module}:{name} cannot be imported ({error}); correct its "
                "entry, or install its package where jobs run"
            ) from error

    def strip_presentation(self) -> "Measure":
        """Return the measure without the fields that decide how figures call and judge it, but no value."""
        return replace(
            self,
            label="",
            axis="",
            description="",
            allowed={},
            interval=True,
            suspect_above=None,
            depends_on_n=False,
        )

    def make_job(self) -> dict[str, Any]:
        """All that its values depend on; what figures call it is no reason to measure again."""
        words = {
            "label",
            "axis",
            "description",
            "allowed",
            "interval",
            "suspect_above",
            "depends_on_n",
        }
        return {key: value for key, value in asdict(self).items() if key not in words}


def describe_for_figures(measures: Iterable[Measure]) -> list[dict[str, Any]]:
    """Describe measures in the order of panels; axes of dimensions need not begin at 0."""
    return [
        {
            **{key: getattr(measure, key) for key in ("name", "label", "axis", "interval")},
            "from_zero": not (measure.depends_on_n and measure.family == "dimension"),
            "per_dimension": measure.depends_on_n and measure.family == "linearity",
            "parameters": dict(measure.arguments),
        }
        for measure in measures
    ]


class _Template(string.Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec == "percent":
            return f"{100 * value:.4g} %"
        return super().format_field(value, format_spec)


def count_searched_neighbours(k: int) -> int:
    r"""How many neighbours are searched, of which, without a group of windows, k are left.

    The least :math:`K` with :math:`(1 - p) K - 4 \sqrt{p (1 - p) K} \ge k`. Neighbours gather in some
    windows, as if two of the 16 groups were left out at a time, p = 2/16; four standard deviations of a
    binomial leave one vector in 30,000 with fewer. With MiniLM on 128 windows of real text, one in 1,000 at
    most had fewer.

    Examples
    --------
    >>> [count_searched_neighbours(k) for k in (2, 20, 100, 128)]
    [6, 32, 132, 166]
    """
    p = 2 / 16
    spread = 4 * math.sqrt(p * (1 - p))
    root = (spread + math.sqrt(spread**2 + 4 * (1 - p) * k)) / (2 * (1 - p))
    return math.ceil(root**2)
