"""What an entry of the registry of measures says, and what is chosen by it.

This module imports nothing heavy, because the Snakefile reads it at every start.
"""

import json
import string
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from typing import Any

from shape_of_learning.errors import InputError

# What a measure can be taken of. A new kind is a name here, what it takes in `metrics/layer.py`, and a job.
KINDS = ("vectors", "spectrum", "neighbours", "pair", "labelled", "weights")
# What the groups of a labelled measure can be: of each vector its window, or its entry of the vocabulary.
LABELS = ("windows", "token_ids")
# What an entry can choose in the place of the configuration: keys of `measurement`, and of the last
# layer the state before the final norm.
ROW_SWITCHES = {
    "special_tokens": ("keep", "drop"),
    "first_token": ("keep", "drop"),
    "token_types": ("all", "one"),
    "last_layer": ("before_final_norm",),
}
# Of what is kept for all measures of a kind, there is one selection of rows.
OF_HIDDEN_STATES = ("vectors", "pair", "labelled")

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
    of : {"vectors", "spectrum", "neighbours", "pair", "labelled", "weights"}
        Of a batch: its vectors (n, d), float32 or a tensor on a GPU; the eigenvalues of their covariance,
        descending, float64; or the distances from each distinct vector to its nearest others, ascending,
        (m, `neighbours`), float64 (see `collapse`). Of all selected vectors together, without batches: the
        hidden states before a block and after it, two arguments (n, d) and (n, e), and `layer` is the block,
        from 1; or vectors and the group of each, int64 (n,) (see `groups`). Of a checkpoint: a matrix of its
        weights (rows, d), float32, that is read by rows.
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
        Of a measure of vectors, a pair or labelled vectors: a function in the same module that finds the
        values without each of some sets of rows faster than by measuring again and again. It is given a list
        of their row numbers besides, and returns the value and those without each set. One of a pair is given
        a :class:`~shape_of_learning.estimators.pair.Pair`, which all measures of this block share.
    collapse : bool
        Whether identical vectors count as one. If not, a measure of neighbours is given the distances from
        all n vectors to their two nearest others, (n, 2), zero to a copy, in units of
        :func:`~shape_of_learning.estimators.dimension.mean_distance_to_mean`.
    interval : bool
        Whether the 95 % intervals of single layers are known to cover (docs/statistics.md); if not, tables
        and figures have them of averages over layers only.
    suspect_above : float, optional
        The largest share of vectors with a near-duplicate (r2/r1 > 10) up to which its conditions hold; above
        it, figures mark the point.
    groups : {"windows", "token_ids"}, optional
        Of a labelled measure, and only of one: what the groups are.
    matrix : {"final_norm"}, optional
        Of a measure of weights: that it is given the gain of the final norm and its bias, (d,) each, or None
        where it has no bias; else it is given the input and the output embeddings, each by itself.
    rows : mapping
        Of a measure of hidden states (vectors, pair, labelled): in which keys of ``measurement`` its
        selection of rows differs from the configuration's, such as ``{"first_token": "drop"}``; or
        ``{"last_layer": "before_final_norm"}``, with which the last layer is the state before the final
        norm (``forward.last_layer: both``).

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
    groups: str = ""
    matrix: str = ""
    rows: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.of not in KINDS:
            raise ValueError(f"`of` must be one of {', '.join(KINDS)}, but is {self.of!r}")
        if not self.collapse and (self.of, self.neighbours) != ("neighbours", 2):
            raise ValueError("`collapse` may be false for a measure of two neighbours only")
        if self.of == "labelled" and self.groups not in LABELS:
            raise ValueError(f"`groups` must be one of {', '.join(LABELS)}, but is {self.groups!r}")
        if self.of != "labelled" and self.groups:
            raise ValueError(f"`groups` is for labelled measures, but this one is of {self.of}")
        if self.matrix and (self.of, self.matrix) != ("weights", "final_norm"):
            raise ValueError("`matrix` can be 'final_norm', and that for a measure of weights only")
        for key in ("rows", "leaving_out"):
            if getattr(self, key) and self.of not in OF_HIDDEN_STATES:
                kinds = ", ".join(OF_HIDDEN_STATES)
                raise ValueError(f"`{key}` is for {kinds}, but this measure is of {self.of}")
        for key, choice in self.rows.items():
            if choice not in ROW_SWITCHES.get(key, ()):
                known = ", ".join(f"{k}: {' or '.join(v)}" for k, v in ROW_SWITCHES.items())
                raise ValueError(f"`rows` can have {known}, but has {key}: {choice!r}")
        if ":" not in self.function:
            raise ValueError(f"`function` must be 'module:function', but is {self.function!r}")
        # Which fails where words or `neighbours` name a parameter that there is not.
        self.chosen("", {})

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
            groups=self.groups,
            matrix=self.matrix,
            rows=dict(self.rows),
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
        All arguments of the function but what it is taken of.
    neighbours : int
        How many nearest distances it is given.
    function, of, depends_on_n, leaving_out, collapse, interval, suspect_above, groups, matrix, rows
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
    groups: str = ""
    matrix: str = ""
    rows: Mapping[str, str] = field(default_factory=dict)

    @property
    def first_layer(self) -> int:
        """The first number in the column ``layer``: 0, or 1 where layers are blocks."""
        return 1 if self.of == "pair" else 0

    @property
    def module(self) -> str:
        """Where the function lives."""
        return self.function.partition(":")[0]

    def load(self) -> Callable[..., float]:
        """Import the function; what is returned takes what the measure is taken of.

        Raises
        ------
        InputError
            If there is no such function.
        """
        function = self._function(self.function.partition(":")[2])
        return lambda *taken: float(function(*taken, **self.parameters))

    def load_leaving_out(self) -> Callable[..., tuple[float, Any]] | None:
        """Import the function that also measures without sets of rows, if there is one; errors likewise."""
        if not self.leaving_out:
            return None
        function = self._function(self.leaving_out)
        return lambda *taken: function(*taken, **self.parameters)

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


def by_rows(
    measures: Iterable[ChosenMeasure],
) -> list[tuple[dict[str, str], dict[str, ChosenMeasure]]]:
    """Put measures together that are of the same rows: their `rows`, and they by name."""
    together: dict[tuple[tuple[str, str], ...], dict[str, ChosenMeasure]] = {}
    for measure in measures:
        together.setdefault(tuple(sorted(measure.rows.items())), {})[measure.name] = measure
    return [(dict(rows), chosen) for rows, chosen in together.items()]


class _Template(string.Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec == "percent":
            return f"{100 * value:.4g} %"
        return super().format_field(value, format_spec)
