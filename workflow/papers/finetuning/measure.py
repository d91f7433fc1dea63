"""The tables on the tokens of a task at one checkpoint: layers, spectra, local structure and probes."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from papers.finetuning.adjustments import (
    Adjustment,
    ClusterAdjustment,
    number_frequency_bands,
    share_between,
)
from papers.finetuning.probes import chance_score, fit_probe, make_features, pool_tokens
from shape_of_learning.estimators.arrays import distinct_rows, is_finite
from shape_of_learning.estimators.cosine import average_cosine
from shape_of_learning.estimators.spread import participation_ratio, spectrum
from shape_of_learning.estimators.weights import log_partition_isotropy
from shape_of_learning.random_streams import stream_seed
from shape_of_learning.tasks.examples import Task
from shape_of_learning.tasks.scores import SCORES

LARGEST = 64  # the number of eigenvalues of each layer that a table keeps
REMOVAL_NUMBERS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)  # numbers of principal directions
# Rajaee and Pilehvar (ACL 2021) take these numbers for BERT.
CLUSTERS = 27
CLUSTER_DIRECTIONS = 12
CLUSTER_NUMBERS = (1, 2, 3, 5, 9, 14, 20, 27)

Row = tuple[object, ...]


@dataclass(frozen=True)
class SplitVectors:
    """The tokens of the texts of one split of a task, in the order of the texts.

    Attributes
    ----------
    layers : dict of int to ndarray of float32, shape (tokens, width)
        The hidden states of each layer.
    token_ids : ndarray of int64, shape (tokens,)
    texts : ndarray of int64, shape (tokens,)
        The number of the text of each token, ascending; pair i has the texts 2 i and 2 i + 1.
    labels : ndarray, shape (examples,)
    """

    layers: dict[int, np.ndarray]
    token_ids: np.ndarray
    texts: np.ndarray
    labels: np.ndarray

    @property
    def last(self) -> np.ndarray:
        """The hidden states of the last layer."""
        return self.layers[max(self.layers)]


def make_task_rows(
    train: SplitVectors, held_out: SplitVectors, task: Task, seed: int
) -> dict[str, list[Row]]:
    """Measure a checkpoint on the texts of a task.

    Parameters
    ----------
    train, held_out : SplitVectors
        `train` has the last layer alone, `held_out` has all layers.
    task : Task
    seed : int
        The seed of the run.

    Returns
    -------
    dict of str to list of tuple
        Rows of the tables of :data:`.TASK_COLUMNS`, without the columns of the checkpoint and the sample.
    """
    layers: list[Row] = []
    spectra: list[Row] = []
    for layer, X in held_out.layers.items():
        eigenvalues = spectrum(X) if _is_measurable(X) else np.full(min(X.shape), np.nan)
        layers += [(layer, *row) for row in _measure_layer_values(X, eigenvalues)]
        spectra += [(layer, len(X), *row) for row in _list_largest(eigenvalues, X.shape[1])]
    return {
        "finetuning_layers": layers,
        "finetuning_spectra": spectra,
        "finetuning_structure": list(
            make_structure_rows(held_out.layers, held_out.token_ids, seed)
        ),
        "finetuning_probes": list(make_probe_rows(train, held_out, task, seed)),
    }


def _measure_layer_values(X: np.ndarray, eigenvalues: np.ndarray) -> Iterator[Row]:
    """Yield the name of each measure of a layer, the number of vectors, and the value."""
    trace = float(eigenvalues.sum())
    # Shares of the trace are undefined without variance.
    shares = np.cumsum(eigenvalues) / trace if trace > 0 else np.full(len(eigenvalues), np.nan)
    values = {
        "log_partition_isotropy": _measure_finite(log_partition_isotropy, X),
        "average_cosine": _measure_finite(average_cosine, X),
        "participation_ratio": _measure_finite(participation_ratio, X),
        "top_1_share": float(shares[0]),
        "top_10_share": float(shares[:10][-1]),
    }
    for estimator, value in values.items():
        yield estimator, len(X), value


def _list_largest(eigenvalues: np.ndarray, width: int) -> Iterator[Row]:
    """Yield for each of the largest eigenvalues the median and the sum of all, its place, and its value."""
    # If there are fewer vectors than coordinates, the eigenvalues that are missing here are zero.
    spectrum_values = np.concatenate([eigenvalues, np.zeros(width - len(eigenvalues))])
    median = float(np.median(spectrum_values))
    trace = float(spectrum_values.sum())
    for place, eigenvalue in enumerate(eigenvalues[:LARGEST].tolist(), start=1):
        yield median, trace, place, eigenvalue


def make_structure_rows(
    layers: Mapping[int, np.ndarray], token_ids: np.ndarray, seed: int
) -> Iterator[Row]:
    """Yield shares of the variance of each layer between kinds of tokens, and ln I of the last layer by clusters.

    Parameters
    ----------
    layers : mapping of int to ndarray, shape (tokens, width)
    token_ids : ndarray of int, shape (tokens,)
    seed : int
        The seed of the run.
    """
    groupings = {
        "share_between_token_types": token_ids,
        "share_between_frequency_bands": number_frequency_bands(token_ids),
    }
    for layer, X in layers.items():
        for quantity, groups in groupings.items():
            yield layer, quantity, None, len(X), _measure_finite(share_between, X, groups)
    last = max(layers)
    X = layers[last]
    for clusters in CLUSTER_NUMBERS:
        value = math.nan
        if _has_clusters(X, clusters):
            adjusted_vectors = ClusterAdjustment(clusters, 0, _derive_seed(seed)).fit(X).apply(X)
            value = log_partition_isotropy(adjusted_vectors)
        yield last, "log_partition_isotropy", clusters, len(X), value


def make_probe_rows(
    train: SplitVectors, held_out: SplitVectors, task: Task, seed: int
) -> Iterator[Row]:
    """Yield the score of a probe and the isotropy after each adjustment of the space.

    If column ``fitted_on`` is "training", an adjustment is fitted on the training tokens and applied to both splits;
    if it is "each split", as in the papers, an adjustment is fitted on the tokens of each split and applied to them.
    Probes are fitted on the training split. Isotropy and cosine are those of the held-out tokens.

    Parameters
    ----------
    train, held_out : SplitVectors
    task : Task
    seed : int
        The seed of the run.
    """
    layer = max(held_out.layers)
    splits = (train, held_out)
    chance = chance_score(task.metric, held_out.labels)
    vectors = [split.last for split in splits]
    has_finite_vectors = all(map(is_finite, vectors))

    def make_row(
        name: Sequence[object], fitted_on: str, adjusted_splits: Sequence[np.ndarray]
    ) -> Row:
        X_held_out = adjusted_splits[1]
        score = math.nan
        if has_finite_vectors:
            features = [
                make_features(pool_tokens(X, split.texts), has_pairs=task.has_pairs)
                for X, split in zip(adjusted_splits, splits, strict=True)
            ]
            predict = fit_probe(
                features[0], train.labels, has_classes=task.has_classes, blocks=1 + task.has_pairs
            )
            score = SCORES[task.metric](held_out.labels, predict(features[1]))
        isotropy, cosine = (
            _measure_finite(measure, X_held_out)
            for measure in (log_partition_isotropy, _average_nonzero_cosine)
        )
        # Zero vectors, which have no cosine, are counted.
        zeros = int((~X_held_out.any(axis=1)).sum()) if has_finite_vectors else None
        space = (len(X_held_out), zeros, isotropy, cosine)
        examples = len(held_out.labels)
        return (layer, *name, fitted_on, *space, task.metric, examples, score, chance)

    yield make_row(("none", None, None), "nothing", vectors)
    if has_finite_vectors:
        for fitted_on, fitting_splits in (("training", vectors[:1]), ("each split", vectors)):
            for name, adjusted_splits in _adjust_splits(vectors, fitting_splits, seed):
                yield make_row(name, fitted_on, adjusted_splits)


def _adjust_splits(
    splits: Sequence[np.ndarray], fitting_splits: Sequence[np.ndarray], seed: int
) -> Iterator[tuple[tuple[str, int, int], list[np.ndarray]]]:
    """Yield the name of each adjustment with both adjusted splits.

    If `fitting_splits` holds one split, adjustments are fitted on it for both splits; if it holds both splits, they
    are fitted on each split for itself.
    """

    def fit_adjustments(method: ClusterAdjustment) -> Iterable[tuple[Adjustment, np.ndarray]]:
        adjustments = [method.fit(X) for X in fitting_splits]
        return list(zip(adjustments * (len(splits) // len(fitting_splits)), splits, strict=True))

    directions = fit_adjustments(ClusterAdjustment(1, max(REMOVAL_NUMBERS)))
    for k in (0, *REMOVAL_NUMBERS):
        yield (
            ("without_directions", 1, k),
            [adjustment.select_leading(k).apply(X) for adjustment, X in directions],
        )
    for k in REMOVAL_NUMBERS:
        yield (
            ("only_directions", 1, k),
            [adjustment.select_leading(k).project(X) for adjustment, X in directions],
        )
    if all(_has_clusters(X, CLUSTERS) for X in fitting_splits):
        clusters = fit_adjustments(
            ClusterAdjustment(CLUSTERS, CLUSTER_DIRECTIONS, _derive_seed(seed))
        )
        for k in (0, CLUSTER_DIRECTIONS):
            yield (
                ("cluster_based", CLUSTERS, k),
                [adjustment.select_leading(k).apply(X) for adjustment, X in clusters],
            )


def _average_nonzero_cosine(X: np.ndarray) -> float:
    """Return the average cosine of the vectors that are not zero."""
    vectors = X[X.any(axis=1)]
    return average_cosine(vectors) if len(vectors) > 1 else math.nan


def _has_clusters(X: np.ndarray, clusters: int) -> bool:
    """Return whether vectors are finite, and at least as many as `clusters` are distinct."""
    return is_finite(X) and len(distinct_rows(X)) >= clusters


def _measure_finite(measure: Callable[..., float], X: np.ndarray, *arguments: np.ndarray) -> float:
    """Return a measure of vectors; NaN if they are not finite, or fewer than two."""
    return measure(X, *arguments) if _is_measurable(X) else math.nan


def _is_measurable(X: np.ndarray) -> bool:
    return len(X) > 1 and is_finite(X)


def _derive_seed(seed: int) -> int:
    return stream_seed(seed, "clusters of a task") % 2**32
