"""The shape of a model while it trains: measures of a fixed probe text, in any loop and in a Trainer's."""

import csv
import logging
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers import Trainer, TrainerCallback

from shape_of_learning.embeddings.model import is_memory_exhausted
from shape_of_learning.embeddings.run import NullStore, StatesInMemory
from shape_of_learning.errors import InputError, shorten_error
from shape_of_learning.files import read_rows, write_table
from shape_of_learning.metrics.measure_entry import AFTER
from shape_of_learning.metrics.tidy import ESTIMATE_COLUMNS
from shape_of_learning.one_model.in_python import (
    check_whole_numbers,
    choose_layers,
    find_tokenizer,
    list_texts,
    name_role,
    protocol_of,
    rewrite_log_for_python,
    sample_of,
    say_size,
)
from shape_of_learning.one_model.loaded_model import LoadedModel, preserve_model
from shape_of_learning.one_model.measured import find_measures, measure_states

logger = logging.getLogger(__name__)

MEASURES = ("anisotropy", "two_nn", "mada", "effective_rank")
MODEL, STEP, LAYER, ESTIMATOR, VALUE = map(
    ESTIMATE_COLUMNS.index, ("model", "step", "layer", "estimator", "value")
)


class ShapeProbe:
    """Measures of some layers of a model on a fixed text, step by step, in a table on disk.

    Parameters
    ----------
    tokenizer : transformers.PreTrainedTokenizerBase, or a processor that has one
    texts : iterable of str
        Windows of the probe text, each within the model's context. Intervals need 16 or more.
    measures : iterable of str
        Names of measures.
    layers : int or iterable of int, optional
        0 is the embedding output, -1 the last layer; by default the first block, the middle one and the last.
    bands : mapping of str to (float, float)
        By measure, where the mean over the chosen blocks should stay; a warning is logged when it does not, or is
        undefined.
    table : Path or str
        CSV file with the columns of ``tables/estimates.csv``, written anew after each step. A training that
        resumes goes on with it.
    name : str
        Of the model, in the table.

    Raises
    ------
    InputError
        If there is no such measure, a band is of none that is taken, or there is no text or tokenizer.

    Notes
    -----
    What is wrong with what was given is an InputError of the first call, or of :meth:`check`. Whatever happens later,
    such as a full disk or exhausted memory, is logged, once for each kind, and a training goes on: a call then gives
    what could be measured. Rows that could not be written are written with those of a later step.

    Of a model that is sharded over processes (FSDP, tensor parallelism), whose weights all of them have to gather, the
    probe is called on every rank at the same steps. The first one writes the table and gets the values, others get
    none.

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
        texts: Iterable[str],
        *,
        measures: Iterable[str] = MEASURES,
        layers: int | Iterable[int] | None = None,
        bands: Mapping[str, tuple[float, float]] | None = None,
        table: Path | str = "shape.csv",
        name: str = "model",
    ):
        # A callback finds that of its trainer when the training begins.
        self.tokenizer = None if tokenizer is None else find_tokenizer(tokenizer)
        self.texts = list_texts(texts)
        self._chosen = find_measures(measures)
        self.measures = tuple(measure.name for measure in self._chosen)
        self.layers = None if layers is None else check_whole_numbers(layers)
        self.bands, self.table, self.name = dict(bands or {}), Path(table), name
        if unknown := self.bands.keys() - set(self.measures):
            raise InputError(
                f"a band is given for `{min(unknown)}`, which is not measured; add it to `measures`"
            )
        if self.table.is_dir():
            raise InputError(f"`table` is the folder {table}; name a file")
        self._is_checked = self._is_alone = False
        self._unwritten: list[list[Any]] = []
        self._said: set[tuple[object, ...]] = set()

    def check(self, model: Any) -> None:
        """Run a text through a model, which is left as it was, so that what was given is refused before a training.

        Raises
        ------
        InputError
            If a text is too long for the model, there is no such layer, or the model cannot be measured.
        """
        with self._log_errors("measured", InputError):
            loaded = LoadedModel.inspect_model(model)
            if self._does_take_part(loaded, "check"):
                with preserve_model(loaded), rewrite_log_for_python():
                    sample = sample_of(loaded, self.tokenizer, self.texts, self.name)
                self._choose_layers(sample.layers)
                say_size(protocol_of(sample.rows, self.name), sample.tokens)
        self._is_checked = True

    def __call__(self, model: Any, step: int) -> dict[str, float]:
        """Measure a model, which is left as it was, add to the table, and warn where a band is left.

        Returns
        -------
        dict of str to float
            By ``shape/MEASURE/layer_LAYER`` and ``shape/MEASURE``, the mean over the chosen blocks. Empty where the
            model could not be measured.
        """
        if not self._is_checked:
            self.check(model)
        values: dict[str, float] = {}
        rows: list[list[Any]] = []
        with self._log_errors("measured"):
            rows = self._measure_rows(LoadedModel.inspect_model(model), step)
        for row in rows:
            place = "" if row[LAYER] is None else f"/layer_{row[LAYER]}"
            values[f"shape/{row[ESTIMATOR]}{place}"] = float(row[VALUE])
        if rows:
            self._warn(values, step)
            self._unwritten = [row for row in self._unwritten if row[STEP] < step] + rows
            with self._log_errors(f"written to {self.table}"):
                self._write()
        return values

    def _measure_rows(self, loaded: LoadedModel, step: int) -> list[list[Any]]:
        """Measure a model; nothing on a rank that only helps to gather its weights."""
        if not self._does_take_part(loaded, str(step)):
            return []
        is_helper = loaded.is_sharded and torch.distributed.get_rank() > 0
        with preserve_model(loaded), rewrite_log_for_python():
            sample = sample_of(loaded, self.tokenizer, self.texts, self.name)
            if is_helper:
                sample.store_states(NullStore(sample.forward.device))
                return []
            states = StatesInMemory(sample)
            sample.store_states(states)
            role = name_role(loaded)
        places = [(layer, AFTER) for layer in self._choose_layers(states.layers)]
        how = protocol_of(states.rows, self.name)
        checkpoint = (f"step{step}", step, None)
        return measure_states(states, self._chosen, how, role, checkpoint, places).estimates

    def _does_take_part(self, loaded: LoadedModel, occasion: str) -> bool:
        """Meet the other ranks of a sharded model; if they do not come once, they are not waited for again."""
        if not self._is_alone:
            try:
                loaded.require_all_ranks(f"{self.name} {self.table} {occasion}")
            except InputError as error:
                logger.error("%s; nothing more is measured, and the training goes on", error)
                self._is_alone = True
        return not self._is_alone

    @contextmanager
    def _log_errors(self, what: str, *raised: type[Exception]) -> Iterator[None]:
        """Log what goes wrong, once for each kind, but for what is raised."""
        try:
            yield
        except raised:
            raise
        except Exception as error:  # nothing of this is worth a training
            kind = what, type(error), getattr(error, "errno", None)
            if kind not in self._said:
                self._said.add(kind)
                said = str(error) if isinstance(error, InputError) else shorten_error(error)
                said = "memory is exhausted" if is_memory_exhausted(error) else said
                logger.error(
                    "the shape is not %s (%s); the training goes on, and this is said once",
                    what,
                    said,
                )

    def _choose_layers(self, last: int) -> list[int]:
        usual = sorted({min(1, last), max(last // 2, min(1, last)), last})
        return choose_layers(self.layers or usual, last)

    def _warn(self, values: Mapping[str, float], step: int) -> None:
        for name, (low, high) in self.bands.items():
            value = values.get(f"shape/{name}", math.nan)
            if math.isnan(value):
                logger.warning(
                    "step %d: %s is undefined, and should be %g to %g", step, name, low, high
                )
            elif not low <= value <= high:
                logger.warning(
                    "step %d: %s is %.4g, outside of %g to %g", step, name, value, low, high
                )

    def _write(self) -> None:
        """Write the table anew: what it has of other models and of earlier steps, and what was measured since."""
        first = min(row[STEP] for row in self._unwritten)
        kept: list[list[Any]] = []
        if self.table.exists() and self.table.stat().st_size:  # empty after a disk was full
            try:
                rows = read_rows(self.table, ESTIMATE_COLUMNS)
                kept = [r for r in rows if r[MODEL] != self.name or int(r[STEP] or -1) < first]
            except (InputError, ValueError, IndexError, csv.Error) as error:
                raise InputError(
                    f"{self.table} is no table of estimates, and is left as it is; move it away, or name another "
                    "`table`"
                ) from error
        write_table(self.table, ESTIMATE_COLUMNS, [*kept, *self._unwritten])
        self._unwritten.clear()


class ShapeCallback(TrainerCallback):
    """A :class:`ShapeProbe` for the Trainer of transformers, logged through its own trackers.

    Parameters
    ----------
    trainer : transformers.Trainer, optional
        To which it adds itself; without one, it is among the trainer's ``callbacks``.
    texts, **options
        As :class:`ShapeProbe` takes them; the tokenizer is the trainer's own if it has one.
    every : int
        Steps between two measurements; the first is before training.

    Notes
    -----
    What is wrong with what was given is an InputError before the first step; whatever happens later is logged, and
    the training goes on.

    Examples
    --------
    ::

        probe = ShapeCallback(texts, every=1000)
        trainer = Trainer(model, arguments, processing_class=tokenizer, callbacks=[probe], ...)
        trainer.train()

    Or to a trainer that is there already::

        ShapeCallback(trainer, texts, every=1000)
    """

    def __init__(
        self,
        trainer: Any = None,
        texts: Iterable[str] | None = None,
        *,
        every: int = 1000,
        tokenizer: Any = None,
        **options: Any,
    ):
        if texts is None:
            trainer, texts = None, trainer
        if not isinstance(every, int) or every < 1:
            raise InputError(f"`every` is {every}; measure every 1 or more steps")
        self.every, self._trainer, self._is_on_all_ranks = every, trainer, False
        if tokenizer is None and trainer is not None:
            tokenizer = trainer.processing_class
        self.probe = ShapeProbe(tokenizer, texts, **options)  # type: ignore[arg-type]
        if trainer is not None:
            trainer.add_callback(self)

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Refuse what cannot be measured, and measure the model as it is before the first step."""
        self._trainer = self._trainer or _find_calling_trainer()
        if self.probe.tokenizer is None:
            self.probe.tokenizer = find_tokenizer(given.get("processing_class"))
        self.probe.check(given["model"])
        self._is_on_all_ranks = LoadedModel.inspect_model(given["model"]).is_sharded
        if state.global_step == 0:
            self._measure(state, control, given["model"])

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Measure it every so many updates, however many batches each of them accumulates."""
        if state.global_step % self.every == 0:
            self._measure(state, control, given["model"])

    def _measure(self, state: Any, control: Any, model: Any) -> None:
        if not (state.is_world_process_zero or self._is_on_all_ranks):
            return
        values = self.probe(model, state.global_step)
        if values and self._trainer is not None:
            is_due = control.should_log
            self._trainer.log(values)
            control.should_log = is_due  # else the trainer would not log its loss at this step
        elif values:
            state.log_history.append({**values, "step": state.global_step})


def _find_calling_trainer() -> Trainer | None:
    """Find the trainer whose event this is: the library gives a callback everything else, but not its log."""
    frame = sys._getframe()
    while frame := frame.f_back:
        if isinstance(found := frame.f_locals.get("self"), Trainer):
            return found
    return None
