"""The shape of a model while it trains: measures of a fixed probe text, in any loop and in a Trainer's."""

import logging
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from transformers import TrainerCallback

from shape_of_learning.errors import InputError
from shape_of_learning.metrics.tidy import ESTIMATE_COLUMNS
from shape_of_learning.one_model.in_python import measure
from shape_of_learning.one_model.measured import measures_named

logger = logging.getLogger(__name__)

MEASURES = ("anisotropy", "two_nn", "mada", "effective_rank")


class ShapeProbe:
    """Measures of some layers of a model on a fixed text, step by step, in a table on disk.

    Parameters
    ----------
    tokenizer : transformers.PreTrainedTokenizerBase
    texts : sequence of str
        Windows of the probe text, each within the model's context. Intervals need 16 or more.
    measures : sequence of str
        Names of measures.
    layers : sequence of int, optional
        0 is the embedding output; by default the first block, the middle one and the last.
    bands : mapping of str to (float, float)
        By measure, where the mean over the chosen blocks should stay; a warning is logged when it does not.
    table : Path or str
        CSV file with the columns of ``tables/estimates.csv``, written anew after each step. A training that
        resumes goes on with it.
    name : str
        Of the model, in the table.

    Raises
    ------
    InputError
        If a band is of no measure that is taken.

    Examples
    --------
    In any loop::

        probe = ShapeProbe(tokenizer, texts, table="shape.csv", bands={"anisotropy": (0, 0.5)})
        for step, batch in enumerate(batches):
            loss = model(**batch).loss
            ...
            if step % 1000 == 0:
                print(probe(model, step))
    """

    def __init__(
        self,
        tokenizer: Any,
        texts: Sequence[str],
        *,
        measures: Sequence[str] = MEASURES,
        layers: Sequence[int] | None = None,
        bands: Mapping[str, tuple[float, float]] | None = None,
        table: Path | str = "shape.csv",
        name: str = "model",
    ):
        if isinstance(texts, str) or not len(texts):
            raise InputError("a probe needs a list of texts")
        measures_named(measures)
        self.tokenizer, self.texts, self.measures = tokenizer, list(texts), tuple(measures)
        self.layers, self.bands, self.table, self.name = (
            layers,
            dict(bands or {}),
            Path(table),
            name,
        )
        if unknown := self.bands.keys() - set(self.measures):
            raise InputError(
                f"a band is given for `{min(unknown)}`, which is not measured; add it to `measures`"
            )

    def __call__(self, model: Any, step: int) -> dict[str, float]:
        """Measure a model, which is left as it was, add to the table, and warn where a band is left.

        Returns
        -------
        dict of str to float
            By ``shape/MEASURE/layer_LAYER`` and ``shape/MEASURE``, the mean over the chosen blocks.
        """
        model = getattr(model, "module", model)
        last = model.config.get_text_config().num_hidden_layers
        layers = self.layers or sorted({1, max(1, last // 2), last})
        found = measure(
            *(model, self.tokenizer, self.texts),
            measures=self.measures,
            layers=layers,
            name=self.name,
            step=step,
        ).assign(revision=f"step{step}")
        self._append(found[list(ESTIMATE_COLUMNS)], step)
        values: dict[str, float] = {}
        for row in found.itertuples():
            place = "" if pd.isna(row.layer) else f"/layer_{row.layer}"
            values[f"shape/{row.estimator}{place}"] = float(row.value)
        for name, (low, high) in self.bands.items():
            if not low <= (value := values.get(f"shape/{name}", math.nan)) <= high:
                logger.warning(
                    "step %d: %s is %.4g, outside of %g to %g", step, name, value, low, high
                )
        return values

    def _append(self, rows: pd.DataFrame, step: int) -> None:
        if self.table.exists():
            old = pd.read_csv(
                self.table, dtype={"step": "Int64", "tokens": "Int64", "layer": "Int64"}
            )
            kept = old[(old["step"] < step) | (old["model"] != self.name)]
            rows = pd.concat([kept, rows], ignore_index=True)
        self.table.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.table.with_suffix(".partial")
        rows.to_csv(unfinished, index=False)
        unfinished.replace(self.table)


class ShapeCallback(TrainerCallback):
    """A :class:`ShapeProbe` for the Trainer of transformers, logged through its own trackers.

    Parameters
    ----------
    trainer : transformers.Trainer
        To which it adds itself.
    texts, **options
        As :class:`ShapeProbe` takes them; the tokenizer is the trainer's own if it has one.
    every : int
        Steps between two measurements; the first is before training.

    Examples
    --------
    ::

        trainer = Trainer(model, arguments, train_dataset=data, processing_class=tokenizer)
        ShapeCallback(trainer, texts, every=1000)
        trainer.train()
    """

    def __init__(
        self,
        trainer: Any,
        texts: Sequence[str],
        *,
        every: int = 1000,
        tokenizer: Any = None,
        **options: Any,
    ):
        if every < 1:
            raise InputError(f"`every` is {every}; measure every 1 or more steps")
        self.every, self._log = every, trainer.log
        self.probe = ShapeProbe(tokenizer or trainer.processing_class, texts, **options)
        trainer.add_callback(self)

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Measure the model as it is before the first step."""
        if state.global_step == 0:
            self._measure(state, control, given["model"])

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Measure it every so many updates, however many batches each of them accumulates."""
        if state.global_step % self.every == 0:
            self._measure(state, control, given["model"])

    def _measure(self, state: Any, control: Any, model: Any) -> None:
        if state.is_world_process_zero:
            is_due = control.should_log
            self._log(self.probe(model, state.global_step))
            control.should_log = is_due  # else the trainer would not log its loss at this step
