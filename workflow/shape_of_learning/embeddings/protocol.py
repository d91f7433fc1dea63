"""Describe the forward pass of a checkpoint for jobs: its weights, its windows, and the measures.

This module imports nothing heavy, because the Snakefile reads it at every start.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from shape_of_learning.checkpoints.shapes import Shape
from shape_of_learning.metrics.measure_entry import Measure, SampleVariant
from shape_of_learning.metrics.protocol import MeasuringProtocol


class Weights(NamedTuple):
    """The weights of a checkpoint, wherever their folder lies.

    Attributes
    ----------
    model, revision : str
    shape : Shape
    is_download : bool
        Whether the files were downloaded, with a record of their content beside them.
    identity : str
        Hashes of the files, so that Snakemake notices changed weights; empty if a job of this run makes the files.
    """

    model: str
    revision: str
    shape: Shape
    is_download: bool
    identity: str = ""


class ForwardFiles(NamedTuple):
    """The files of a job that runs a text through a checkpoint; no number depends on their places.

    Attributes
    ----------
    checkpoint, tokenizer : Path
        Folders.
    text : Path
    """

    checkpoint: Path
    tokenizer: Path
    text: Path


def find_forward_files(snakemake: Any) -> ForwardFiles:
    """Find the files of a job of Snakemake."""
    resources, text = snakemake.resources, snakemake.input.text
    return ForwardFiles(Path(resources.checkpoint), Path(resources.tokenizer), Path(text))


@dataclass(frozen=True)
class SamplingProtocol:
    """The settings that hidden states depend on, besides the text and the checkpoint.

    Attributes
    ----------
    windows : int
        Windows of text, drawn without replacement.
    window_characters : int
        Length of a window.
    seed : int
        Seed for drawing windows and the tokens that an encoder predicts.
    precision : str
        ``"float32"``, ``"bfloat16"`` or ``"float16"``, for weights and activations.
    last_layer : str
        ``"after_final_norm"``: the last hidden state as transformers returns it, which for most decoders is
        after the final normalisation. ``"before_final_norm"``: the input of that normalisation; the
        same state if there is none.
        ``"both"``: the state after the norm as the last layer, then the state before it.
    """

    windows: int
    window_characters: int
    seed: int
    precision: str = "float32"
    last_layer: str = "after_final_norm"


class MatrixProtocol(NamedTuple):
    """The measures of a checkpoint other than those of its hidden states.

    Attributes
    ----------
    measures : tuple of Measure
        Measures of its matrices.
    points : bool
        Whether a figure draws the points of its vocabulary.
    massive : bool
        Whether the massive tokens of each layer are listed.
    seed : int
        The seed of the run.
    """

    measures: tuple[Measure, ...]
    points: bool
    massive: bool
    seed: int


class DumpJob(NamedTuple):
    """A checkpoint whose hidden states are written to files."""

    weights: Weights
    sampling: SamplingProtocol
    matrices: MatrixProtocol


class CheckpointJob(NamedTuple):
    """A checkpoint whose layers are all measured in memory."""

    weights: Weights
    sampling: SamplingProtocol
    matrices: MatrixProtocol
    measures: tuple[Measure, ...]
    protocol: MeasuringProtocol


class ChoicesJob(NamedTuple):
    """A checkpoint that is measured in memory under the choices of an analysis.

    Attributes
    ----------
    step : int or None
        Its training step.
    texts : tuple of str
        Names of the texts, in the order of their files.
    variants : tuple of SampleVariant
        Combinations of choices, which replace the selection of the protocol.
    """

    weights: Weights
    step: int | None
    texts: tuple[str, ...]
    sampling: SamplingProtocol
    measures: tuple[Measure, ...]
    protocol: MeasuringProtocol
    variants: tuple[SampleVariant, ...]


class ControlsJob(NamedTuple):
    """A checkpoint whose null models are measured.

    Attributes
    ----------
    step, tokens : int or None
        Its training step, and the number of tokens that it was trained on until then.
    kinds : tuple of str
        Null models, as key `controls.kinds` of the configuration names them.
    """

    weights: Weights
    step: int | None
    tokens: int | None
    sampling: SamplingProtocol
    measures: tuple[Measure, ...]
    protocol: MeasuringProtocol
    kinds: tuple[str, ...]
