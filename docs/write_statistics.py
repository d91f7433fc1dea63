"""Write docs/statistics.md from the tables `coverage` and `dependence`: `make docs/statistics.md`."""

import sys
from collections.abc import Mapping

from benchmarks.results import RESULTS, Results
from benchmarks.tables import coverage, dependence, further_coverage
from scipy.stats import binom
from write_performance import markdown

from shape_of_learning.metrics.registry import MEASURES

# The coverage that is wanted, and the chance below which draws contradict it.
LEAST, MOST = 0.92, 0.98
CHANCE = 0.025
PAGE = """\
# How sure a number is

Every value comes with a standard error and a 95 % interval (`results/tables/estimates.csv`), every
difference between checkpoints, too (`changes.csv`). This page says how they are made, how often they hold
the truth, and what a value depends on besides the model.

## The unit is the window

The tokens of one window depend on each other, so nothing is left out but whole windows. The seed divides
the windows into 16 groups, the same for every layer, revision and model. Each value is computed again
without each group. With v_g the value without group g, the standard error is

    s = sqrt(15/16 * sum_g (v_g - mean v)^2)

and the interval v -+ 2.131 s, Student's t with 15 degrees of freedom (the delete-a-group jackknife). An
average over layers has the averages of its layers' left-out values for its own, and a difference between
steps the differences: what both owe to the same windows cancels. All layers and revisions of a model also
share one shuffle of their tokens into batches.

The paper's band, the standard deviation over batches, says something else: batches hold tokens of the
same windows, so it knows nothing of other windows. It stays a column, `batch_sd`.

**Anisotropy and cosine.** The group's vectors are left out, exactly: cosines from sums per group,
anisotropy by a few steps of Lanczos' method that start from the leading direction of all vectors.

**Intrinsic dimension.** A window bears on an estimate in two ways: its vectors have neighbours, and they
are neighbours of others. Two kinds of left-out values see this differently.

- *Rows*: the group's vectors are left out, the distances of the others stay as they were found. This sees
  what the group's own vectors say, but not that others would have other neighbours. It is too small where
  neighbours lie in other windows.
- *Anew*: neighbours are found anew among the others, from lists that are long enough
  (`measurement.neighbours` and a margin), so no further search is needed. This sees both. But it is too
  large: leaving out a sixteenth gives many vectors another nearest neighbour, a change that the other
  groups decide as well. In the decomposition of Efron and Stein a part that k groups decide jointly
  counts k times, so the variance is an upper bound in the mean. Here the standard error is up to twice
  the true one.

The truth lies between, and what is between depends on the hidden states: on how often neighbours lie in
the same window. We take the left-out values anew and shrink their deviations so that the standard error
becomes the geometric mean of the two. Three others were tried on the same draws and were worse: either
kind alone; half samples of windows (a value of half as many vectors is another value, up to 2.4 times as
large); and the correction by leaving out two groups (parts of higher order than two dominate). That the
geometric mean comes near the truth is no theorem; it is what the next table shows.

## Coverage

`make bench TABLE=coverage` draws samples of {windows} windows and asks how often the interval holds the
mean of all draws: {simulated} simulated samples of each kind (128 windows of 110 vectors;
`benchmarks/sampled_windows.py` says which), and {encoder} samples of a real encoder, MiniLM, on disjoint
sets of windows of enwik8. Its "steps" are MiniLM and MiniLM with a fifth of its training undone. In
brackets the standard error over the true standard deviation. What draws can tell is limited: of 27 that are
covered with 95 % each, 23 to 27 are (85 to 100 %), of 200 184 to 196 (92 to 98 %).

{coverage}

{marked}

Of measures of blocks and of spread, `make bench TABLE=further_coverage` measures {further} simulated
samples of each kind: 128 windows of 32 vectors of width 128, before and after a block that changes each
vector by itself and all vectors of a window alike (`benchmarks/sampled_blocks.py`). Of these measures no
real encoder was drawn from.

{further_coverage}

{further_marked}

## What a value depends on

{dependence_text}

{dependence}

![{dependence_title}](../benchmarks/results/dependence.png)

- *The number of vectors.* Anisotropy and the average cosine change little. Estimates by k neighbours fall
  as n grows where a cloud is dense at small scales: of a token's k nearest vectors more and more lie in
  its own window. MLE goes from 19 at 512 vectors to 6 at 8,192.
- *The number of windows* at the same n matters as much: from 40 windows to 1,280 MLE triples.
- *The scale.* Gride on MiniLM is 6 to 8 up to n1 = 8 and 26 at n1 = 64: there is no plateau, so there is
  no one dimension. The figure `dimension_by_scale` shows it for each model.
- *High dimensions* are underestimated by all of them: of a Gaussian cloud of 50 dimensions they find 26
  to 33.

## Verdicts on claims

Pages of `results/claims/` judge what papers claim. A statistic is computed with all windows and without
each of the 16 groups, so that a contrast of layers, steps or models has an interval of its own, in
which what they owe to the same windows cancels. A rule then asks for a bound to be passed by whole
intervals.

- *Many at once.* The k-th largest of m numbers lies above a bound if k of m lower bounds do, each at a
  chance of 2.5 % over m - k + 1 (Bonferroni); of "in all" nothing is divided. So rules such as "in
  three quarters of the models", or a peak at whichever step, are wrong as rarely as one comparison,
  whatever the parts share.
- *Contrasts are fixed beforehand.* Where a maximum lies is not estimated, since noise moves it: a peak
  in the middle is the middle half of the layers above the first quarter and above the last one.
- *Suspect values decide nothing.* A model with any (near-duplicates, as above) counts among those that a
  rule needs, but for nothing. Where that alone makes a claim `undecided`, the reason says what it would
  be. Layers that are undefined at one step are left out at all.
- *Only sound checkpoints count*, those whose verdict is `ok`.
- *What was repeated with other seeds*, such as twins and fine-tunings, has the interval of its mean over
  seeds, by Student's t. One seed of a fine-tuning decides nothing.
- *What has no interval*, such as measures of a model's weights and perplexities after edits, is compared
  as it is.

Under other choices of the analysis the same rules judge the same claim (target `choices`). Its
specifications share windows and models: their number is no number of independent tests, and a share of
supported ones no probability. The curve shows which choice an answer rests on.

`tests/unit/test_claims_on_simulations.py` judges simulated tables 1,000 times. Their truth is a hair
beside the bound in as many models, layers and steps as decide, where verdicts are false most often. Of
each claim fewer than 2.5 % are, and the more noise there is, the more are `undecided`. Where the
division above is left out, more than 5 % are false. The simulation takes intervals as right; how often
those of real hidden states are is said above.

## Which differences to believe

- Between steps or layers of one model, and between models on the same windows: those whose interval in
  `changes.csv` does not hold zero. `smallest_visible` is the least that could have been told from none.
- Between values of different n, number of windows, window length or text: none, for intrinsic dimension.
  Anisotropy and cosines hardly depend on either.
- By TwoNN where points are hollow with a dot: none. More than a tenth of the vectors have a
  near-duplicate there, such as the same token elsewhere, and TwoNN measures how near that is. MLE and
  Gride at n1 = 1 suffer likewise.
- Between estimators: they look at different scales. What agrees in all of them is sure; what one alone
  says is not.
- Many intervals at once: of twenty that hold no difference, one shows one.
"""


def coverage_table(results: Results) -> str:
    """A line per case, a column per measure."""
    rows = []
    for case in results.sizes():
        cells = [covered(results[case, name].values) for name in coverage.ESTIMATORS]
        draws = results[case, coverage.ESTIMATORS[0]].values["draws"]
        rows.append([f"{case} ({draws:.0f} draws)", *cells])
    return markdown(["of", *coverage.ESTIMATORS], rows, 1)


def further_coverage_table(results: Results) -> str:
    """A line per measure, of which there are more than cases, and a column per case."""
    cases = results.sizes()
    rows = [
        [f"`{name}`", *(covered(results[case, name].values) for case in cases)]
        for name in further_coverage.ESTIMATORS
    ]
    return markdown(["of", *cases], rows, 1)


def covered(values: Mapping[str, float]) -> str:
    """Coverage and the standard error over the true one, in bold if contradicted."""
    found = f"{values['coverage']:.1%} ({values['standard_error'] / values['sd']:.2f})"
    return f"**{found}**" if contradicts(values) else found


def contradicts(values: Mapping[str, float]) -> bool:
    """Whether so few or so many draws are hardly covered by chance where the coverage is as wanted."""
    draws, covered = values["draws"], round(values["coverage"] * values["draws"])
    few, many = binom.cdf(covered, draws, LEAST), binom.sf(covered - 1, draws, MOST)
    return bool(min(few, many) < CHANCE)


def marked() -> str:
    """Say what lies outside, and for which measures no interval is given."""
    without = [
        f"`{name}`"
        for name, measure in MEASURES.items()
        if not measure.interval and name in coverage.ESTIMATORS
    ]
    words = (
        f"Bold is what contradicts a coverage between {LEAST:.0%} and {MOST:.0%}, "
        f"by a chance below {CHANCE:.1%}. "
    )
    if not without:
        return words + "All measures have intervals in tables and figures."
    return (
        f"{words}For {' and '.join(without)} tables have no intervals of single layers and figures no bands, "
        "only of averages over layers: the windows at hand do not tell how much a few rare ones, which other "
        "samples hold, would change the mean of a layer. In the last layer of MiniLM one group of windows "
        "moved MADA by a tenth. Gride's coverage was not measured, so it has none either."
    )


def further_marked() -> str:
    """Say which of these measures have no interval."""
    without = [name for name in further_coverage.ESTIMATORS if not MEASURES[name].interval]
    if not without:
        return "All of them have intervals in tables and figures."
    names = ", ".join(f"`{name}`" for name in without)
    return (
        f"For {names} tables have no intervals of single layers either. A few long vectors decide the "
        "partition function, of which other windows have others; a number of directions is a whole number, "
        "which most groups of windows do not change."
    )


def cell(results: Results, size: str, name: str) -> str:
    """A value and, where there are several draws, its standard deviation."""
    try:
        values = results[size, name].values
    except KeyError:
        return ""
    digits = 3 if name in dependence.ISOTROPY else 1
    sd = f" ± {values['sd']:.{digits}f}" if "sd" in values else ""
    return f"{values['value']:.{digits}f}{sd}"


def dependence_tables(results: Results) -> str:
    """A line per cloud, a column per measure, Gride in a table of its own."""
    tables = []
    for names in ({**dependence.ISOTROPY, **dependence.ESTIMATORS}, dependence.GRIDE):
        rows = [[size, *(cell(results, size, name) for name in names)] for size in results.sizes()]
        tables.append(markdown(["of", *names], rows, 1))
    return "\n\n".join([*tables, *(row.note for row in results.rows if row.note)])


def page() -> str:
    """The whole page."""
    return PAGE.format(
        windows=128,
        simulated=coverage.DRAWS["simulated"],
        encoder=coverage.DRAWS["encoder"],
        coverage=coverage_table(Results.read(RESULTS / "coverage.csv")),
        marked=marked(),
        further=further_coverage.DRAWS,
        further_coverage=further_coverage_table(Results.read(RESULTS / "further_coverage.csv")),
        further_marked=further_marked(),
        dependence_title=dependence.TITLE,
        dependence_text=(dependence.__doc__ or "").strip(),
        dependence=dependence_tables(Results.read(RESULTS / "dependence.csv")),
    )


if __name__ == "__main__":
    sys.stdout.write(page())
