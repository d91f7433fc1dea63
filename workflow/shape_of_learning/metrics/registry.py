"""The measures that the workflow knows, by the names of tables and configuration.

A new measure is a function and an entry here. Or it is in a package of one's own, as an entry point of the
group ``shape_of_learning.measures``, whose name is the measure's and whose object is a :class:`Measure`. This
module imports nothing heavy, because the Snakefile reads it at every start.
"""

from dataclasses import replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from shape_of_learning.errors import InputError
from shape_of_learning.metrics.measure_entry import WEIGHTS, Interval, Measure

# Those of the first paper, which are measured by default.
OF_THE_PAPER = (
    *("anisotropy", "anisotropy_without_massive_tokens", "anisotropy_uncentered"),
    *("average_cosine", "average_cosine_centered"),
    *("two_nn", "two_nn_authors", "mada", "mom", "mle"),
)
# How the protocol of a run defines them; ``{parameter}`` is the value of a setting.
CLAUSES = {
    "anisotropy": "anisotropy is the largest squared singular value of the centred vectors over the sum of all",
    "two_nn": "TwoNN keeps the lowest {kept:percent} of the ratios of neighbour distances",
    "two_nn_authors": "TwoNN by the authors' code keeps the lowest 20 % and counts vectors that have a copy",
    "mada": "MADA takes k = {k} neighbours (combine: {combine})",
    "mom": "MOM takes k = {k} neighbours (combine: {combine})",
    "mle": "MLE takes k = {k} neighbours (combine: {combine})",
    "linearity": "linearity is the share of the variance of a block's output that an affine map of its input explains",
    "linearity_increment": "linearity of the increment is that of what a block adds to its input",
    "linearity_adjusted": "adjusted linearity is 2 a(n) - a(n/2), with a = 1 - (1 - s) (n - 1) / (n - 1 - r) of the "
    "score s and the input's rank r, over all windows and over halves of them",
    "linearity_held_out": "held-out linearity is that on each half of the windows by the map of the other half",
    "block_norm_ratio": "the norm ratio is the median over tokens",
    "log_partition_isotropy": "partition isotropy is the logarithm of the smallest over the largest value of the "
    "partition function over the eigenvectors of X'X, each turned to the mean",
    "log_partition_isotropy_centered": "partition isotropy, centred is that of the vectors less their mean",
    "log_partition_isotropy_both_signs": "partition isotropy, both signs counts each eigenvector in both directions, "
    "which makes the value about twice that of one",
    "participation_ratio_corrected": "the corrected participation ratio is one of unbiased estimators, and biased "
    "where few vectors hold much of the variance",
    "effective_rank": "effective rank is the exponential of the entropy of the shares of variance",
    "rankme": "RankMe is the exponential of the entropy of the shares of singular values",
    "alpha_req": "alpha-ReQ is the exponent of a power law through eigenvalues {first} to {last}",
}


def _define_own(where: str, family: str, label: str, axis: str, **others: Any) -> Measure:
    """One of our own; `where` is its module and its function."""
    return Measure(f"shape_of_learning.estimators.{where}", family, label, axis, **others)


def _define_isotropy(where: str, label: str, axis: str, *, center: bool = False) -> Measure:
    function = where.partition(":")[2]
    others = {"leaving_out": f"{function}_without", "fixed": {"center": center}}
    # Cosines are of unit vectors, but a few huge ones move the mean that is subtracted.
    others["moments"] = "vectors" if function == "anisotropy" or center else ""
    return _define_own(where, "isotropy", label, axis, **others)


def _define_dimension(function: str, label: str, **others: Any) -> Measure:
    others |= {"axis": "Intrinsic dimension", "depends_on_n": True}
    return _define_own(f"dimension:{function}", "dimension", label, **others)


def _define_local_dimension(function: str, k: int, combine: str, *, shrunk: bool = True) -> Measure:
    return _define_dimension(
        *(function, function.upper()),
        parameters={"k": k, "combine": combine},
        allowed={"k": Interval(least=2), "combine": ("mean", "median", "harmonic")},
        neighbours="k",
        shrunk=shrunk,
    )


def _define_gride(n1: int) -> Measure:
    return _define_dimension(
        *("gride", f"Gride (n1 = {n1})"),
        fixed={"n1": n1},
        neighbours=2 * n1,
        # Of 76 samples of MiniLM, intervals at n1 = 32 held the truth in 84 to 99 %, those at 8 in 91 % or more.
        shrunk=False,
        interval=n1 <= 8,
        # The smallest scale is TwoNN's, by another fit.
        suspect_above=0.1 if n1 == 1 else None,
    )


def _define_block_measure(name: str, label: str, axis: str = "Linearity", **others: Any) -> Measure:
    return _define_own(
        f"linearity:{name}", "linearity", label, axis, leaving_out=f"{name}_without", **others
    )


def _define_partition_isotropy(label: str, **variant: bool | str) -> Measure:
    fixed = {"center": False, "signs": "one", **variant}
    # A few long vectors decide, and other windows have others.
    kept = {"interval": False, "left_out": False}
    where = "weights:log_partition_isotropy"
    return _define_own(where, "isotropy", label, "ln I", fixed=fixed, **kept)


def _window_cosine(pairs: str, label: str) -> Measure:
    name = f"{pairs}_window_cosine"
    others = {"axis": "Average cosine", "leaving_out": f"{name}_without"}
    return _define_own(f"cosine:{name}", "windows", label, **others)


def _spread(family: str, function: str, label: str, **others: Any) -> Measure:
    others = {"axis": "Directions", "moments": "vectors", **others}
    return _define_own(f"spread:{function}", family, label, **others)


def _spread_with_n(family: str, function: str, label: str, **others: Any) -> Measure:
    return _spread(family, function, label, depends_on_n=True, **others)


def _final_norm(function: str, label: str, axis: str) -> Measure:
    return _define_own(f"weights:{function}", WEIGHTS, label, axis, matrix="final_norm")


MEASURES: dict[str, Measure] = {
    "anisotropy": _define_isotropy(
        "anisotropy:anisotropy", "Anisotropy", "Anisotropy", center=True
    ),
    "anisotropy_uncentered": _define_isotropy(
        "anisotropy:anisotropy", "Anisotropy, not centred", "Anisotropy"
    ),
    "average_cosine": _define_isotropy("cosine:average_cosine", "Average cosine", "Average cosine"),
    "average_cosine_centered": _define_isotropy(
        "cosine:average_cosine", "Average cosine, centred", "Average cosine", center=True
    ),
    "two_nn": _define_dimension(
        *("two_nn", "TwoNN"),
        parameters={"kept": 0.9},
        allowed={"kept": Interval(above=0, most=1)},
        neighbours=2,
        suspect_above=0.1,
    ),
    "two_nn_authors": _define_dimension(
        "two_nn_authors", "TwoNN (authors' code)", neighbours=2, collapse=False, suspect_above=0.1
    ),
    # A few rare windows can change their means, as the neighbours of many: shrunk intervals are too short.
    "mada": _define_local_dimension("mada", 20, "mean", shrunk=False),
    "mom": _define_local_dimension("mom", 100, "mean", shrunk=False),
    "mle": _define_local_dimension("mle", 20, "harmonic"),
    **{f"gride_{n1}": _define_gride(n1) for n1 in (1, 2, 4, 8, 16, 32, 64)},
    **{
        name: _define_block_measure(
            *(name, label),
            depends_on_n=True,
            moments="increments" if "increment" in name else "vectors",
        )
        for name, label in {
            "linearity": "Linearity",
            "linearity_increment": "Linearity of the increment",
            "linearity_adjusted": "Linearity, adjusted",
            "linearity_increment_adjusted": "Linearity of the increment, adjusted",
            "linearity_held_out": "Linearity, held out",
            "linearity_increment_held_out": "Linearity of the increment, held out",
        }.items()
    },
    "block_norm_ratio": _define_block_measure(
        *("block_norm_ratio", "Norm ratio of a block"),
        axis="Norm of the increment / norm of the output",
    ),
    "block_cosine": _define_block_measure(
        "block_cosine", "Cosine of a block's input and output", axis="Cosine"
    ),
    "log_partition_isotropy": _define_partition_isotropy("Partition isotropy"),
    "log_partition_isotropy_centered": _define_partition_isotropy(
        "Partition isotropy, centred", center=True
    ),
    "log_partition_isotropy_both_signs": _define_partition_isotropy(
        "Partition isotropy, both signs", signs="both"
    ),
    "intra_window_cosine": _window_cosine("intra", "Cosine within windows"),
    "inter_window_cosine": _window_cosine("inter", "Cosine between windows"),
    # Of n vectors from a Gaussian, the inverse of the first is 1/n too large.
    "participation_ratio": _spread_with_n("isotropy", "participation_ratio", "Participation ratio"),
    "participation_ratio_corrected": _spread(
        "isotropy", "participation_ratio_corrected", "Participation ratio, corrected"
    ),
    "isoscore": _spread_with_n("isotropy", "isoscore", "IsoScore", axis="IsoScore"),
    "top_10_share": _spread(
        *("spectrum", "top_share", "Variance share of the top 10"),
        axis="Share of variance",
        fixed={"directions": 10},
    ),
    "effective_rank": _spread_with_n(
        *("spectrum", "effective_rank_of_spectrum", "Effective rank (exponent 2)"),
        fixed={"exponent": 2},
    ),
    "rankme": _spread_with_n(
        *("spectrum", "effective_rank_of_spectrum", "RankMe (exponent 1)"), fixed={"exponent": 1}
    ),
    "alpha_req": _spread_with_n(
        *("spectrum", "alpha_req", "Alpha-ReQ"),
        axis="Decay of eigenvalues",
        parameters={"first": 11, "last": 40},
        allowed={"first": Interval(least=1), "last": Interval(least=2, above_parameter="first")},
    ),
    # A whole number, which most groups do not change.
    "directions_for_90": _spread_with_n(
        *("spectrum", "directions_for", "Directions for 90 %"), fixed={"share": 0.9}, interval=False
    ),
    "gain_length": _final_norm("gain_length", "Length of the gain", "|g|"),
    "bias_length": _final_norm("bias_length", "Length of the bias", "|b|"),
    "bias_to_gain": _final_norm("bias_gain_ratio", "Bias to gain", "|b| / |g|"),
}
MEASURES |= {name: replace(MEASURES[name], description=said) for name, said in CLAUSES.items()}


def _variant(name: str, what: str, **rows: str) -> Measure:
    """One of the measures above, of other rows."""
    label = f"{MEASURES[name].label}, {what}"
    return replace(MEASURES[name], label=label, description="", rows=rows)


MEASURES |= {
    f"{name}_without_first_token": _variant(name, "without first tokens", first_token="drop")
    for name in ("linearity", "linearity_increment")
}
MEASURES["anisotropy_without_massive_tokens"] = replace(
    _variant("anisotropy", "without massive tokens", massive_tokens="drop"),
    description="massive tokens are longer than five times the median",
)
# Of the matrices of a model itself; the function is that of hidden states.
MEASURES |= {
    f"matrix_partition_isotropy{variant}": replace(
        MEASURES[f"log_partition_isotropy{variant}"], family=WEIGHTS, interval=True
    )
    for variant in ("", "_centered")
}
MEASURES |= {
    f"{name}_before_norm": _variant(name, "before the final norm", last_layer="before_final_norm")
    for name in ("intra_window_cosine", "inter_window_cosine", "log_partition_isotropy")
}


@cache
def find_registered_measures() -> dict[str, EntryPoint]:
    """Find the measures that packages of this environment register, by name; InputError if one is taken."""
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group="shape_of_learning.measures"):
        if entry.name in MEASURES or entry.name in found:
            package = entry.dist.name if entry.dist else entry.module
            raise InputError(
                f"package `{package}` registers the measure `{entry.name}`, a name that is taken already; "
                "rename its entry point, or uninstall it"
            )
        found[entry.name] = entry
    return found


def measure_names() -> list[str]:
    """List ours and the registered ones; raises as :func:`find_registered_measures`."""
    return [*MEASURES, *find_registered_measures()]


def find_measure(name: str) -> Measure:
    """Look a measure up among ours and the registered ones; KeyError if there is none.

    Raises
    ------
    InputError
        If it is registered, but cannot be loaded or is no :class:`Measure`.
    """
    if name in MEASURES:
        return MEASURES[name]
    entry = find_registered_measures()[name]
    try:
        measure = entry.load()
        if not isinstance(measure, Measure):
            raise TypeError(f"it is no Measure but {type(measure).__name__}")
        return measure
    except Exception as error:  # whatever the package's code raises
        raise InputError(
            f"measure `{name}`: {entry.value} cannot be loaded ({type(error).__name__}: "
            f"{' '.join(str(error).split())}); correct the package that registers it, or uninstall it"
        ) from error
