"""Measure some checkpoints of a model as all specifications of an analysis have it, on every text.

Where there is a GPU, it measures, too.
"""

import argparse
import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shape_of_learning.checkpoints.tensors import checked_tensors
from shape_of_learning.claims.choice_tables import AFTER, BEFORE, COLUMNS, Place, choice_rows
from shape_of_learning.claims.choices import Rows, WantedMeasures
from shape_of_learning.claims.measured_rows import MeasuredRows
from shape_of_learning.embeddings.run import SampleRun, draw_windows
from shape_of_learning.metrics.batches import shuffle_of
from shape_of_learning.script_arguments.protocol import SamplingProtocol
from shape_of_learning.script_arguments.running import run
from shape_of_learning.script_arguments.sample import checkpoint_folder, window_batch_size
from shape_of_learning.storage.csv_table import write_table

if TYPE_CHECKING:
    import numpy as np
    import torch

logger = logging.getLogger("shape_of_learning")
# The other windows of the same text are drawn with the next seed.
SEEDS = {"resampled": 1}


def main(
    model: str,
    checkpoints: list[dict[str, Any]],
    texts: dict[str, str],
    protocol: SamplingProtocol,
    shape: dict[str, Any],
    threads: int,
    wanted: WantedMeasures,
    output: Path,
) -> None:
    """Write one table: rows, layer and estimator of each value, and those without groups of windows."""
    rows: list[tuple[object, ...]] = []
    for checkpoint in checkpoints:
        folder = checkpoint_folder(checkpoint["folder"])
        receipt = Path(checkpoint["receipt"]) if checkpoint["receipt"] else None
        checked_tensors(folder, receipt, threads)
        asked = wanted.only(checkpoint["estimators"])
        for text, file in texts.items():
            drawn = replace(protocol, seed=protocol.seed + SEEDS.get(text, 0), last_layer="both")
            chosen = MeasuredRows(asked, text, drawn.windows, drawn.seed)
            loaded = {"checkpoint": folder, "shape": shape, "threads": threads}
            for layer, last_layer, choice, name, value in measured(
                model, Path(file), drawn, chosen, **loaded
            ):
                place = Place(checkpoint["revision"], choice, last_layer, name)
                rows += choice_rows(place, [(layer, value.estimate)])
            logger.info("%s at %s: text %s is measured", model, checkpoint["revision"], text)
    write_table(output, COLUMNS, rows)


def measured(
    model: str, text: Path, protocol: SamplingProtocol, chosen: MeasuredRows, **loaded: Any
) -> Iterator[tuple[int, str, Rows, str, Measured]]:
    """Run a sample and measure each layer, the last one also as it is before the final norm."""
    drawn = draw_windows(text, protocol)
    sample = SampleRun.load(
        windows=[drawn[number] for number in chosen.windows],
        protocol=protocol,
        window_batch_size=window_batch_size(),
        in_memory=True,
        **loaded,
    )
    last = len(sample.widths) - 2
    chosen.choose(sample.rows, last)
    places = [*((layer, AFTER) for layer in range(last + 1)), (last, BEFORE)]
    needed = [chosen.states(*place) for place in places]
    states = HiddenStatesInMemory(sample)
    sample.into(states)
    del sample  # which leaves the memory of its weights to the measuring

    def measure(
        place: int, *found: "np.ndarray | torch.Tensor"
    ) -> list[tuple[Rows, str, Measured]]:
        state = dict(zip(needed[place], found, strict=True))
        return chosen.measured(state, *places[place], lambda: shuffle_of(protocol.seed, model))

    every = states.measured(measure, loaded["threads"], needed)
    for place, values in zip(places, every, strict=True):
        for each in values:
            yield *place, *each


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument(
        "--checkpoints",
        type=json.loads,
        required=True,
        help="JSON: of each its revision, folder, receipt and estimators",
    )
    parser.add_argument("--texts", type=json.loads, required=True, help="JSON: file of each text")
    parser.add_argument("--protocol", type=SamplingProtocol.from_json, required=True)
    parser.add_argument("--shape", type=json.loads, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--wanted", type=WantedMeasures.from_json, required=True)
    parser.add_argument("--output", type=Path, required=True)
    run(main, parser)
