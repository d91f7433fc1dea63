"""Measure one layer of a dumped checkpoint with all measures of one family."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shape_of_learning.embeddings.states import StateFiles
from shape_of_learning.job import job
from shape_of_learning.metrics.measure import MeasuringProtocol, measure_layer
from shape_of_learning.metrics.measure_entry import Measure
from shape_of_learning.metrics.tidy import write_tidy


def main(
    folder: Path,
    model: str,
    layers: int,
    layer: int,
    family: str,
    measures: Sequence[Mapping[str, Any]],
    measuring: Mapping[str, Any],
    output: Path,
) -> None:
    """Read ``{folder}/layer_{layer}.h5``, and the one before for blocks; write the tidy table.

    Parameters
    ----------
    folder : Path
        Of the dump.
    model : str
        Its name.
    layers, layer : int
        Number of layers of the model, and which one is measured.
    family : str
    measures : sequence of mapping
        Fields of :class:`.Measure`.
    measuring : mapping
        Fields of :class:`.MeasuringProtocol`.
    output : Path
    """
    how = MeasuringProtocol.of(model, measuring)
    chosen = [Measure(**each) for each in measures]
    write_tidy(output, measure_layer(StateFiles(folder, layers), layer, family, chosen, how))


if __name__ == "__main__":
    with job(snakemake.log[0]):
        main(
            Path(snakemake.input.embeddings),
            model=snakemake.wildcards.model,
            layer=int(snakemake.wildcards.layer),
            family=snakemake.wildcards.family,
            layers=snakemake.params.layers,
            measures=snakemake.params.measures,
            measuring=snakemake.params.measuring,
            output=Path(snakemake.output[0]),
        )
