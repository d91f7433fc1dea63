"""Find and measure the matrices of a model itself: its embeddings and its final norm."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shape_of_learning.checkpoints.weight_evidence import (
    CrossEntropy,
    TensorDigests,
    write_loss,
    write_tensor_digests,
)
from shape_of_learning.embeddings.forward_pass import ForwardPass
from shape_of_learning.embeddings.protocol import MatrixProtocol
from shape_of_learning.estimators.arrays import NotFiniteError
from shape_of_learning.estimators.weights import principal_coordinates
from shape_of_learning.files import write_table
from shape_of_learning.metrics.measure_entry import Measure
from shape_of_learning.metrics.tidy import (
    FINAL_NORM,
    MASSIVE_COLUMNS,
    MATRIX_COLUMNS,
    POINT_COLUMNS,
)
from shape_of_learning.random_streams import random_stream

if TYPE_CHECKING:
    import torch

MOST_POINTS = 20_000  # entries of a vocabulary
DIGITS = 6  # of a coordinate: more than a page shows


def write_checkpoint_tables(
    forward: ForwardPass,
    digests: TensorDigests,
    cross_entropy: CrossEntropy,
    output: Mapping[str, str],
    matrices: MatrixProtocol,
    massive: Iterable[tuple[object, ...]] = (),
) -> None:
    """Write the tables of a checkpoint that hold no measures of its hidden states.

    Parameters
    ----------
    forward : ForwardPass
        The loaded checkpoint.
    digests : TensorDigests
        Digests of its tensors.
    cross_entropy : CrossEntropy
        Its cross-entropy on all windows.
    output : mapping of str to str
        Paths: ``tensors``, a table with a row for each tensor; ``loss``, a table with one row; ``weights``,
        ``weight_points`` and ``massive``, if a figure or a table reads them.
    matrices : MatrixProtocol
        The measures of matrices; without measures the table ``weights`` has no rows.
    massive : iterable of tuple
        Rows of the table ``massive``.
    """
    if "weights" in output:
        named_matrices = find_matrices(forward).items()
        rows = measure_matrices(named_matrices, matrices.measures)
        write_table(Path(output["weights"]), MATRIX_COLUMNS, rows)
        points = place_entries(named_matrices, matrices.seed) if matrices.points else ()
        write_table(Path(output["weight_points"]), POINT_COLUMNS, points)
        write_table(Path(output["massive"]), MASSIVE_COLUMNS, massive)
    write_tensor_digests(Path(output["tensors"]), digests)
    write_loss(Path(output["loss"]), cross_entropy)


def measure_matrices(
    matrices: Iterable[tuple[str, Any]], measures: Sequence[Measure]
) -> Iterator[tuple[str, str, int, int, float]]:
    """Measure the matrices of one checkpoint.

    Parameters
    ----------
    matrices : iterable of (str, array)
        ``input``, ``output`` or ``tied``, embeddings of shape (V, d), read by rows; and ``final_norm``, gain
        and, if there is one, bias, (1, d) or (2, d).
    measures : sequence of Measure
        Measures of weights.

    Yields
    ------
    tuple
        The cells of ``MATRIX_COLUMNS``. `n` is the number of vectors: 1 for the final norm. The value is NaN if it is
        undefined, or if the matrix holds NaN or infinity.
    """
    for name, matrix in matrices:
        n, d = matrix.shape
        arguments = (matrix,)
        if name == FINAL_NORM:
            n, arguments = 1, (matrix[0], matrix[1] if len(matrix) == 2 else None)
        for measure in measures:
            if (measure.matrix == FINAL_NORM) != (name == FINAL_NORM):
                continue
            try:
                value = measure.load()(*arguments)
            except NotFiniteError:
                value = math.nan
            yield name, measure.name, n, d, value


def place_entries(
    matrices: Iterable[tuple[str, Any]], seed: int
) -> Iterator[tuple[str, str, int, float, float]]:
    """Project the embeddings of a vocabulary on the plane of their largest spread.

    Parameters
    ----------
    matrices : iterable of (str, array)
        As in :func:`measure_matrices`; the final norm has no points.
    seed : int
        The seed of the run. It chooses :data:`MOST_POINTS` entries of a larger vocabulary, the same entries at all
        checkpoints and in all matrices.

    Yields
    ------
    tuple
        The cells of ``POINT_COLUMNS``; ``centered`` is ``yes`` or ``no``. A matrix with NaN or infinity has no points.
    """
    for name, matrix in matrices:
        if name == FINAL_NORM:
            continue
        for center in (False, True):
            try:
                points = principal_coordinates(matrix, center)
            except NotFiniteError:
                continue
            entries = np.arange(len(points))
            if len(points) > MOST_POINTS:
                stream = random_stream(seed, "points of the plane")
                entries = np.sort(stream.choice(len(points), MOST_POINTS, replace=False))
            for entry, point in zip(entries.tolist(), points[entries].tolist(), strict=True):
                x, y = (float(f"{coordinate:.{DIGITS}g}") for coordinate in point)
                yield name, "yes" if center else "no", entry, x, y


def find_matrices(forward: ForwardPass) -> dict[str, np.ndarray]:
    """Find the matrices of a model that are measured.

    Returns
    -------
    dict of str to ndarray of float32
        ``input`` and ``output``, the embeddings of all entries of the vocabulary, (V, d), as the library finds them for
        any architecture; or ``tied`` if both are the same. Then ``final_norm``, (1, d) or (2, d): its rows are the gain
        of the normalisation after the last block and, if there is one, its bias. An encoder whose blocks end with a
        normalisation has no final norm. The arrays may share the model's memory, so never write into them.
    """
    ends: dict[str, Any] = {"input": forward.model.get_input_embeddings()}
    if forward.head is not None:
        ends["output"] = forward.head.model.get_output_embeddings()
    weights = {name: getattr(module, "weight", None) for name, module in ends.items()}
    ends = {name: ends[name] for name in ends if getattr(weights[name], "ndim", 0) == 2}
    if len(ends) == 2 and _share_weights(*ends.values()):
        ends = {"tied": ends["input"]}
    matrices = {name: _convert_weight(module.weight) for name, module in ends.items()}
    norm: Any = forward.final_norm
    if getattr(norm, "weight", None) is not None:
        matrices[FINAL_NORM] = np.stack(
            [_convert_weight(vector) for vector in _read_gain_and_bias(norm)]
        )
    return matrices


def _share_weights(first: Any, second: Any) -> bool:
    """Return whether two modules share their weight, or have equal weights because a tie was saved twice."""
    if first.weight is second.weight:
        return True
    if first.weight.shape != second.weight.shape:
        return False
    return bool((first.weight == second.weight).all())


def _read_gain_and_bias(norm: Any) -> "list[torch.Tensor]":
    """Return the gain of a normalisation, which in Gemma is its weight plus 1, and its bias if there is one."""
    import torch

    weight, bias = norm.weight, getattr(norm, "bias", None)
    shift = torch.zeros_like(weight) if bias is None else bias
    # The probe has mean 0. Times 16 it is so large that the constant under the root does not matter.
    probe = torch.ones_like(weight)
    probe[1::2] = -1
    with torch.inference_mode():
        answer = (norm(16 * probe) - shift) * probe
        gain = min((weight, 1 + weight), key=lambda gain: float((answer - gain).abs().mean()))
    return [gain] if bias is None else [gain, bias]


def _convert_weight(weight: "torch.Tensor") -> np.ndarray:
    return weight.detach().float().cpu().numpy()
