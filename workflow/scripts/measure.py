"""Measure one layer of a dumped checkpoint with all measures of one family."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shape_of_learning.embeddings.states import StateFiles
from shape_of_learning.job import read_parameters, run_job
from shape_of_learning.metrics.measure import MeasuringProtocol, measure_layer
from shape_of_learning.metrics.measure_entry import Measure
from shape_of_learning.metrics.tidy import write_tidy


def main(
    place: tuple[str, int, str],
    folder: Path,
    layers: int,
    measures: Sequence[Mapping[str, Any]],
    measuring: Mapping[str, Any],
    output: Path,
) -> None:
    """Read ``layer_{layer}.h5`` of a dump of so many layers, and the one before for blocks; write the tidy table.

    The place is the model's name, the layer and the family. `measures` are fields of :class:`.Measure`,
    `measuring` those of :class:`.MeasuringProtocol`.
    """
    model, layer, family = place
    how = MeasuringProtocol.read_fields(model, measuring)
    chosen = [Measure(**measure) for measure in measures]
    write_tidy(output, measure_layer(StateFiles(folder, layers), layer, family, chosen, how))


if __name__ == "__main__":
    with run_job(snakemake.log[0]):
        model, layer, family = (snakemake.wildcards[key] for key in ("model", "layer", "family"))
        main(
            (model, int(layer), family),
            folder=Path(snakemake.input.embeddings),
            output=Path(snakemake.output[0]),
            **read_parameters(snakemake),
        )
