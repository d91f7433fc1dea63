"""The measures of the workflow, by their names in tables and configuration.

A new measure is a function and an entry here. A measure of another package is an entry point of the group
``shape_of_learning.measures``; its name is that of the measure, its object a :class:`Measure`. This module imports
nothing heavy, because every start of Snakemake imports it.
"""

from dataclasses import replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from shape_of_learning.errors import InputError
from shape_of_learning.metrics.measure_entry import WEIGHTS, AllowedRange, Measure
from shape_of_learning.metrics.suspects import NEAR_DUPLICATES

DEFAULT_MEASURES = (
    "anisotropy",
    "anisotropy_without_massive_tokens",
    "anisotropy_uncentered",
    "average_cosine",
    "average_cosine_centered",
    "two_nn",
    "two_nn_authors",
    "mada",
    "mada_median",
    "mom",
    "mle",
)
# The definitions of measures in the protocol of a run; ``{parameter}`` stands for the value of a setting.
CLAUSES = {
    "anisotropy": "anisotropy is the largest squared singular value of the centred vectors over the sum of all",
    "two_nn": "TwoNN keeps the lowest {kept:percent} of the ratios of neighbour distances",
    "two_nn_authors": "TwoNN by the authors' code keeps the lowest 20 % and counts vectors that have a copy",
    "mada": "MADA takes k = {k} neighbours (combine: {combine})",
    "mada_median": "MADA (median) is the median of the local dimensions of k = {k} neighbours, and MADA their mean",
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
    "mean_norm": "the mean norm is that of the vectors of all tokens",
    "largest_coordinate": "the largest coordinate is the largest absolute one of all vectors",
    "kurtosis": "kurtosis is the fourth central moment of all coordinates together over their squared variance",
    "participation_ratio_corrected": "the corrected participation ratio is one of unbiased estimators, and biased "
    "where few vectors hold much of the variance",
    "effective_rank": "effective rank is the exponential of the entropy of the shares of variance",
    "rankme": "RankMe is the exponential of the entropy of the shares of singular values",
    "alpha_req": "alpha-ReQ is the exponent of a power law through eigenvalues {first} to {last}",
}


def _define_measure(function: str, family: str, label: str, axis: str, **fields: Any) -> Measure:
    """Define a measure by its ``module:function`` in :mod:`shape_of_learning.estimators`."""
    return Measure(f"shape_of_learning.estimators.{function}", family, label, axis, **fields)


def _define_isotropy(function: str, label: str, axis: str, *, center: bool = False) -> Measure:
    name = function.partition(":")[2]
    fields = {"jackknife_function": f"{name}_jackknife", "fixed": {"center": center}}
    # A cosine ignores lengths, but a few huge vectors move the mean that centring subtracts.
    fields["moments"] = "vectors" if name == "anisotropy" or center else ""
    return _define_measure(function, "isotropy", label, axis, **fields)


def _define_dimension(function: str, label: str, **fields: Any) -> Measure:
    fields |= {"axis": "Intrinsic dimension", "depends_on_n": True}
    return _define_measure(f"dimension:{function}", "dimension", label, **fields)


def _define_local_dimension(
    function: str, k: int, combine: str, *, shrinks_jackknife: bool = True
) -> Measure:
    return _define_dimension(
        function,
        function.upper(),
        parameters={"k": k, "combine": combine},
        allowed={"k": AllowedRange(least=2), "combine": ("mean", "median", "harmonic")},
        neighbours="k",
        shrinks_jackknife=shrinks_jackknife,
    )


def _define_gride(n1: int) -> Measure:
    return _define_dimension(
        "gride",
        f"Gride (n1 = {n1})",
        fixed={"n1": n1},
        neighbours=2 * n1,
        # Intervals of 76 samples of MiniLM hold the truth in 84 to 99 % at n1 = 32, in 91 % or more at n1 = 8.
        shrinks_jackknife=False,
        has_interval=n1 <= 8,
        # At n1 = 1 Gride has the scale of TwoNN.
        near_duplicate_limit=NEAR_DUPLICATES if n1 == 1 else None,
    )


def _define_block_measure(name: str, label: str, axis: str = "Linearity", **fields: Any) -> Measure:
    return _define_measure(
        f"linearity:{name}",
        "linearity",
        label,
        axis,
        jackknife_function=f"{name}_jackknife",
        **fields,
    )


def _define_partition_isotropy(label: str, **variant: bool | str) -> Measure:
    arguments = {"center": False, "signs": "one", **variant}
    # A few long vectors decide the value, and other windows hold other long vectors.
    jackknife = {"has_interval": False, "has_jackknife": False}
    function = "weights:log_partition_isotropy"
    return _define_measure(function, "isotropy", label, "ln I", fixed=arguments, **jackknife)


def _define_window_cosine(pairs: str, label: str) -> Measure:
    name = f"{pairs}_window_cosine"
    fields = {"axis": "Average cosine", "jackknife_function": f"{name}_jackknife"}
    return _define_measure(f"cosine:{name}", "windows", label, **fields)


def _define_size(function: str, label: str, axis: str) -> Measure:
    # One long vector may decide the value, and no trial shows that intervals contain it.
    fields = {"has_interval": False, "has_jackknife": False}
    return _define_measure(f"coordinates:{function}", "windows", label, axis, **fields)


def _define_spread(family: str, function: str, label: str, **fields: Any) -> Measure:
    fields = {"axis": "Directions", "moments": "vectors", **fields}
    return _define_measure(f"spread:{function}", family, label, **fields)


def _define_biased_spread(family: str, function: str, label: str, **fields: Any) -> Measure:
    """Define a measure whose bias depends on the number of vectors."""
    return _define_spread(family, function, label, depends_on_n=True, **fields)


def _define_norm_measure(function: str, label: str, axis: str) -> Measure:
    return _define_measure(f"weights:{function}", WEIGHTS, label, axis, matrix="final_norm")


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
        "two_nn",
        "TwoNN",
        parameters={"kept": 0.9},
        allowed={"kept": AllowedRange(above=0, most=1)},
        neighbours=2,
        near_duplicate_limit=NEAR_DUPLICATES,
    ),
    "two_nn_authors": _define_dimension(
        "two_nn_authors",
        "TwoNN (authors' code)",
        neighbours=2,
        collapse=False,
        near_duplicate_limit=NEAR_DUPLICATES,
    ),
    # Shrunk intervals of these means are too short: a few rare windows hold neighbours of many vectors.
    "mada": _define_local_dimension("mada", 20, "mean", shrinks_jackknife=False),
    "mada_median": _define_dimension(
        "mada",
        "MADA (median)",
        fixed={"combine": "median"},
        parameters={"k": 20},
        allowed={"k": AllowedRange(least=2)},
        neighbours="k",
        shrinks_jackknife=False,
    ),
    "mom": _define_local_dimension("mom", 100, "mean", shrinks_jackknife=False),
    "mle": _define_local_dimension("mle", 20, "harmonic"),
    **{f"gride_{n1}": _define_gride(n1) for n1 in (1, 2, 4, 8, 16, 32, 64)},
    **{
        name: _define_block_measure(
            name,
            label,
            depends_on_n=True,
            moments="increments" if "increment" in name else "vectors",
            # A fit of d inputs scores about d / n more on its own n vectors, and as much less on other vectors. So
            # of 68 intervals on the raw and the held-out score none held the value of a whole text, but 64 of 68
            # intervals on the adjusted score did.
            has_interval="adjusted" in name,
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
        "block_norm_ratio",
        "Norm ratio of a block",
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
    "intra_window_cosine": _define_window_cosine("intra", "Cosine within windows"),
    "inter_window_cosine": _define_window_cosine("inter", "Cosine between windows"),
    "mean_norm": _define_size("mean_norm", "Mean norm", "Norm"),
    "largest_coordinate": _define_size(
        "largest_coordinate", "Largest coordinate", "Absolute value"
    ),
    "kurtosis": _define_size("kurtosis", "Kurtosis", "Kurtosis"),
    # For n Gaussian vectors, the inverse of the plain ratio is 1/n too large.
    "participation_ratio": _define_biased_spread(
        "isotropy", "participation_ratio", "Participation ratio"
    ),
    "participation_ratio_corrected": _define_spread(
        "isotropy", "participation_ratio_corrected", "Participation ratio, corrected"
    ),
    "isoscore": _define_biased_spread("isotropy", "isoscore", "IsoScore", axis="IsoScore"),
    "top_10_share": _define_spread(
        "spectrum",
        "top_share",
        "Variance share of the top 10",
        axis="Share of variance",
        fixed={"directions": 10},
    ),
    "effective_rank": _define_biased_spread(
        "spectrum",
        "effective_rank_of_spectrum",
        "Effective rank (exponent 2)",
        fixed={"exponent": 2},
    ),
    "rankme": _define_biased_spread(
        "spectrum", "effective_rank_of_spectrum", "RankMe (exponent 1)", fixed={"exponent": 1}
    ),
    "alpha_req": _define_biased_spread(
        "spectrum",
        "alpha_req",
        "Alpha-ReQ",
        axis="Decay of eigenvalues",
        parameters={"first": 11, "last": 40},
        allowed={
            "first": AllowedRange(least=1),
            "last": AllowedRange(least=2, above_parameter="first"),
        },
    ),
    # The jackknife needs a smooth value, but this value is a whole number.
    "directions_for_90": _define_biased_spread(
        "spectrum",
        "directions_for",
        "Directions for 90 %",
        fixed={"share": 0.9},
        has_interval=False,
    ),
    "gain_length": _define_norm_measure("gain_length", "Length of the gain", "|g|"),
    "bias_length": _define_norm_measure("bias_length", "Length of the bias", "|b|"),
    "bias_to_gain": _define_norm_measure("bias_gain_ratio", "Bias to gain", "|b| / |g|"),
}
MEASURES |= {name: replace(MEASURES[name], description=clause) for name, clause in CLAUSES.items()}


def _select_rows(name: str, words: str, **rows: str) -> Measure:
    """Return the measure of this name in :data:`MEASURES` with another selection of rows."""
    label = f"{MEASURES[name].label}, {words}"
    return replace(MEASURES[name], label=label, description="", rows=rows)


MEASURES |= {
    f"{name}_without_first_token": _select_rows(name, "without first tokens", first_token="drop")
    for name in ("linearity", "linearity_increment")
}
MEASURES["anisotropy_without_massive_tokens"] = replace(
    _select_rows("anisotropy", "without massive tokens", massive_tokens="drop"),
    description="massive tokens are longer than five times the median in any layer",
)
# The same measures on the model's own matrices.
MEASURES |= {
    f"matrix_partition_isotropy{variant}": replace(
        MEASURES[f"log_partition_isotropy{variant}"], family=WEIGHTS, has_interval=True
    )
    for variant in ("", "_centered")
}
MEASURES |= {
    f"{name}_before_norm": _select_rows(
        name, "before the final norm", last_layer="before_final_norm"
    )
    for name in ("intra_window_cosine", "inter_window_cosine", "log_partition_isotropy")
}


@cache
def find_registered_measures() -> dict[str, EntryPoint]:
    """Find the measures that packages of this environment register, by name.

    Raises
    ------
    InputError
        If two measures have the same name.
    """
    entries: dict[str, EntryPoint] = {}
    for entry in entry_points(group="shape_of_learning.measures"):
        if entry.name in MEASURES or entry.name in entries:
            package = entry.dist.name if entry.dist else entry.module
            raise InputError(
                f"package `{package}` registers the measure `{entry.name}`, but this name is taken; "
                "rename its entry point, or uninstall it"
            )
        entries[entry.name] = entry
    return entries


def list_measure_names() -> list[str]:
    """List the names of our measures, then those of :func:`find_registered_measures`."""
    return [*MEASURES, *find_registered_measures()]


def find_measure(name: str) -> Measure:
    """Find a measure of ours, or one that a package registers.

    Raises
    ------
    KeyError
        If there is no measure of this name.
    InputError
        If the registered object cannot be loaded or is not a :class:`Measure`.
    """
    if name in MEASURES:
        return MEASURES[name]
    entry = find_registered_measures()[name]
    try:
        measure = entry.load()
        if not isinstance(measure, Measure):
            raise TypeError(f"it is a {type(measure).__name__}, not a Measure")
        return measure
    except Exception as error:  # the package can raise any error
        raise InputError(
            f"measure `{name}`: {entry.value} cannot be loaded ({type(error).__name__}: "
            f"{' '.join(str(error).split())}); correct the package that registers it, or uninstall it"
        ) from error
