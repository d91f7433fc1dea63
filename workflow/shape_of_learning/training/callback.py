"""Measure a model on a fixed probe text while it trains, in any training loop or in a Trainer."""

import csv
import logging
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import torch
from transformers import Trainer, TrainerCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from shape_of_learning.checkpoints.manifest import write_manifest
from shape_of_learning.embeddings.model import is_memory_exhausted
from shape_of_learning.embeddings.run import NullStore, SampleRun, StatesInMemory
from shape_of_learning.errors import InputError, shorten_error
from shape_of_learning.files import expand_home, read_rows, write_table
from shape_of_learning.machine import count_cores
from shape_of_learning.metrics.measure_entry import AFTER
from shape_of_learning.metrics.tidy import ESTIMATE_COLUMNS
from shape_of_learning.one_model.loaded_model import LoadedModel, preserve_model
from shape_of_learning.one_model.measurement import (
    CheckpointName,
    find_measures,
    measure_states,
    require_layers,
)
from shape_of_learning.one_model.request import choose_layers, read_layer_numbers
from shape_of_learning.one_model.sample import (
    Request,
    find_role,
    find_tokenizer,
    list_texts,
    make_protocol,
    prepare_sample,
    rewrite_remedies,
    warn_of_small_batch,
)
from shape_of_learning.training.alerts import BandAlert
from shape_of_learning.validation import read_whole_number

logger = logging.getLogger(__name__)

MEASURES = (
    "anisotropy",
    "two_nn",
    "mada",
    "effective_rank",
    "mean_norm",
    "largest_coordinate",
    "kurtosis",
)
SHAPE = "shape/"  # the beginning of all keys of values
LAYER_MARK = "/layer_"  # between the measure and the layer, in keys of values and bands
# Places of cells in rows of the table.
MODEL = ESTIMATE_COLUMNS.index("model")
STEP = ESTIMATE_COLUMNS.index("step")
LAYER = ESTIMATE_COLUMNS.index("layer")
DEPTH = ESTIMATE_COLUMNS.index("depth")
ESTIMATOR = ESTIMATE_COLUMNS.index("estimator")
VALUE = ESTIMATE_COLUMNS.index("value")
VECTORS = ESTIMATE_COLUMNS.index("n")
WINDOWS = ESTIMATE_COLUMNS.index("windows")


class ShapeProbe:
    """Measure some layers of a model on a fixed text at chosen steps, and write a table.

    Parameters
    ----------
    tokenizer : transformers.PreTrainedTokenizerBase, or a processor that has one
    texts : iterable of str
        Windows of the probe text, each within the model's context; `window_tokens` splits long ones. Intervals need 16
        windows.
    measures : iterable of str
        Names of measures.
    layers : int or iterable of int, optional
        0 is the embedding output, -1 the last layer; by default the first block, the middle one and the last.
    bands : mapping of str to (float, float)
        Bounds by measure, for the mean over the chosen blocks, or by measure and layer, such as
        ``"largest_coordinate/layer_6"`` or ``"largest_coordinate/layer_-1"``. A value that is undefined or out of
        bounds is logged as a warning.
    alert : callable, optional
        Called with a :class:`.BandAlert` whenever a value leaves its band, such as :func:`.alert_trackio` or
        :func:`.alert_wandb`. Its errors are logged.
    table : Path or str
        CSV file with the columns of ``tables/estimates.csv``, rewritten after each step. It may hold rows of other
        names. A training that resumes adds to its rows. If the rows of its name are another training's or of another
        text, the table stays as it is. When this probe begins again at its first step or before it, as after
        ``auto_find_batch_size`` or in a second ``trainer.train()``, its rows so far move to ``shape-1.csv``,
        ``shape-2.csv`` and so on. When it goes back to a later step, as in a resume, the rows from that step on are
        replaced.
    name : str
        Name of the model in the table. Give each training that shares a table its own.
    window_tokens : int, optional
        Split texts into windows of this many tokens. By default a text longer than the model's context is an error.

    Raises
    ------
    InputError
        If a measure is unknown, if a band is for a measure that is not in `measures`, or if there is no text or no
        tokenizer.

    Notes
    -----
    The first call, or :meth:`check`, raises InputError for bad arguments. Later errors, such as a full disk or
    exhausted memory, are logged once for each kind, and the training goes on; the call returns the values that it
    could measure. Unwritten rows are written at a later step.

    If the model is sharded over processes (FSDP, tensor parallelism), call the probe on every rank at the same steps,
    since all ranks gather the weights. The first rank writes the table and gets the values; other ranks get no values.

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

    def __init__(  # noqa: PLR0913 (keywords)
        self,
        tokenizer: Any,
        texts: Iterable[str],
        *,
        measures: Iterable[str] = MEASURES,
        layers: int | Iterable[int] | None = None,
        bands: Mapping[str, tuple[float, float]] | None = None,
        alert: Callable[[BandAlert], object] | None = None,
        table: Path | str = "shape.csv",
        name: str = "model",
        window_tokens: int | None = None,
    ):
        # A callback takes the tokenizer of its trainer when the training begins.
        self.tokenizer = None if tokenizer is None else find_tokenizer(tokenizer)
        self.texts = list_texts(texts)
        self._measures = find_measures(measures)
        self.measures = tuple(measure.name for measure in self._measures)
        self.layers = None if layers is None else read_layer_numbers(layers)
        self.bands, self.name = _check_bands(bands or {}), name
        self.table = expand_home(str(table))
        banded_measures = {key.partition(LAYER_MARK)[0] for key in self.bands}
        if unknown := banded_measures - set(self.measures):
            raise InputError(
                f"a band is given for `{min(unknown)}`, which is not measured; add it to `measures`"
            )
        if alert is not None and not callable(alert):
            raise InputError(f"`alert` is {alert!r:.80}; give a function")
        self.alert = alert
        if not isinstance(name, str):
            raise InputError(f"`name` is {name!r:.80}; give text")
        if window_tokens is not None:
            window_tokens = read_whole_number("window_tokens", window_tokens, 1)
        self._request = Request(window_tokens=window_tokens)
        if self.table.is_dir():
            raise InputError(f"`table` is the folder {table}; name a file")
        self._is_checked = self._is_alone = self._has_written = False
        self._bands = self.bands  # with layers counted from 0, as in the keys of values
        self._unwritten: list[list[Any]] = []
        self._logged_errors: set[tuple[object, ...]] = set()
        self._left_bands: set[str] = set()  # bands whose alerts were sent

    def check(self, model: Any) -> None:
        """Run a text through a model to find bad arguments before a training; the model stays unchanged.

        Raises
        ------
        InputError
            If a text is too long for the model, a layer is missing, a measure of blocks has no block, or the model
            cannot be measured.
        """
        with self.log_errors("the shape is not measured", InputError):
            loaded_model = LoadedModel.inspect_model(model)
            if self._meet_ranks(loaded_model, "check"):
                with preserve_model(loaded_model), rewrite_remedies():
                    sample = self._prepare_sample(loaded_model, warns=True)
                require_layers(self._measures, self._choose_layers(sample.layers))
                self._bands = self._find_band_layers(sample.layers)
                warn_of_small_batch(make_protocol(sample.rows, self.name), sample.tokens)
        self._is_checked = True

    def __call__(self, model: Any, step: int) -> dict[str, float]:
        """Measure a model, add rows to the table, and warn of values out of bounds; the model stays unchanged.

        Returns
        -------
        dict of str to float
            Keys are ``shape/MEASURE/layer_LAYER``, and ``shape/MEASURE`` for the mean over the chosen blocks. Empty if
            measuring failed.

        Raises
        ------
        InputError
            If the step is not a whole number from 0 on; and at the first call, as in :meth:`check`.
        """
        step = read_whole_number("step", step, 0)
        values = self.measure(model, step)
        self.report_left_bands(values, step)
        return values

    def measure(self, model: Any, step: int) -> dict[str, float]:
        """Measure a model as a call does, but compare no bands."""
        if not self._is_checked:
            self.check(model)
        values: dict[str, float] = {}
        rows: list[list[Any]] = []
        with self.log_errors("the shape is not measured"):
            rows = self._measure_rows(LoadedModel.inspect_model(model), step)
        for row in rows:
            place = "" if row[LAYER] is None else f"{LAYER_MARK}{row[LAYER]}"
            values[f"{SHAPE}{row[ESTIMATOR]}{place}"] = float(row[VALUE])
        if rows:
            self._unwritten = [row for row in self._unwritten if row[STEP] < step] + rows
            with self.log_errors(f"the shape is not written to {self.table}"):
                self._write()
        return values

    def _prepare_sample(self, loaded_model: LoadedModel, *, warns: bool) -> SampleRun:
        return prepare_sample(
            loaded_model, self.tokenizer, self.texts, self.name, self._request, warns=warns
        )

    def _measure_rows(self, loaded_model: LoadedModel, step: int) -> list[list[Any]]:
        """Measure a model; return no rows on a rank that only helps to gather its weights."""
        if not self._meet_ranks(loaded_model, str(step)):
            return []
        is_helper = loaded_model.is_sharded and torch.distributed.get_rank() > 0
        with preserve_model(loaded_model), rewrite_remedies():
            sample = self._prepare_sample(loaded_model, warns=False)
            if is_helper:
                sample.store_states(NullStore(sample.forward.device))
                return []
            states = StatesInMemory(sample)
            sample.store_states(states)
            role = find_role(loaded_model)
        places = [(layer, AFTER) for layer in self._choose_layers(states.layers)]
        protocol = make_protocol(states.rows, self.name)
        checkpoint = CheckpointName(self.name, role, f"step{step}", step)
        return measure_states(states, self._measures, protocol, checkpoint, places).estimates

    def _meet_ranks(self, loaded_model: LoadedModel, occasion: str) -> bool:
        """Return whether all ranks of a sharded model meet; after a first failure, wait no more."""
        if not self._is_alone:
            try:
                # The occasion must not name the table: folders named by the time differ between ranks.
                loaded_model.require_all_ranks(f"{self.name} {occasion}")
            except InputError as error:
                logger.error("%s; the training goes on without further measures", error)
                self._is_alone = True
        return not self._is_alone

    @contextmanager
    def log_errors(self, failure: str, *user_errors: type[Exception]) -> Iterator[None]:
        """Log errors after the sentence `failure`, once for each kind; but raise `user_errors`."""
        try:
            yield
        except user_errors:
            raise
        except Exception as error:  # an error of the probe must not end a training
            kind = failure, type(error), getattr(error, "errno", None)
            if kind in self._logged_errors:
                return
            self._logged_errors.add(kind)
            if is_memory_exhausted(error):
                reason = "memory is exhausted"
            else:
                reason = str(error) if isinstance(error, InputError) else shorten_error(error)
            logger.error(
                "%s (%s); the training goes on, and further errors of this kind are not logged",
                failure,
                reason,
            )

    def _choose_layers(self, last: int) -> list[int]:
        first = min(1, last)
        default = sorted({first, max(last // 2, first), last})
        return choose_layers(self.layers or default, last)

    def _find_band_layers(self, last: int) -> dict[str, tuple[float, float]]:
        """Return the bands with layers counted from 0; InputError for a band of a layer that is not measured."""
        layers = self._choose_layers(last)
        numbers = {str(layer): layer % (last + 1) for layer in range(-last - 1, last + 1)}
        bands = {}
        for key, bounds in self.bands.items():
            measure, mark, layer = key.partition(LAYER_MARK)
            if mark:
                number = numbers.get(layer)
                if number not in layers:
                    raise InputError(
                        f"a band is given for `{measure}` of layer {layer}, which is not measured; add it to `layers`"
                    )
                key = f"{measure}{mark}{number}"
            bands[key] = bounds
        return bands

    def report_left_bands(self, values: Mapping[str, float], step: int) -> None:
        """Log the values that are out of their bands, and send an alert of each value that has left its band now."""
        if not values:  # measuring failed, or another rank reports
            return
        for key, (low, high) in self._bands.items():
            value = values.get(f"{SHAPE}{key}", math.nan)
            if low <= value <= high:
                self._left_bands.discard(key)
                continue
            measure, mark, layer = key.partition(LAYER_MARK)
            alert = BandAlert(
                self.name, step, measure, int(layer) if mark else None, value, low, high
            )
            logger.warning("%s", alert.sentence)
            if self.alert is not None and key not in self._left_bands:
                with self.log_errors("the alert is not sent"):
                    self.alert(alert)
                    self._left_bands.add(key)

    def _write(self) -> None:
        """Rewrite the table with the rows of other models, the rows of earlier steps, and the new rows."""
        kept_rows: list[list[Any]] = []
        if self.table.exists() and self.table.stat().st_size:  # a full disk leaves an empty file
            try:
                old_rows = read_rows(self.table, ESTIMATE_COLUMNS)
                own_rows = [row for row in old_rows if row[MODEL] == self.name]
                earlier_rows = self._find_earlier_rows(own_rows)
            except (InputError, ValueError, IndexError, csv.Error) as error:
                raise InputError(
                    f"{self.table} is not a table of estimates, and stays as it is; move it away, or name another "
                    "`table`"
                ) from error
            if own_rows and not earlier_rows:
                if not self._has_written:
                    raise InputError(
                        f"{self.table} has the rows of another training of `{self.name}` or of another text, and stays "
                        "as it is; move it away, or give another `table` or `name`"
                    )
                self._move_rows(own_rows)
            kept_rows = [row for row in old_rows if row[MODEL] != self.name] + earlier_rows
        write_table(self.table, ESTIMATE_COLUMNS, [*kept_rows, *self._unwritten])
        self._unwritten.clear()
        self._has_written = True

    def _move_rows(self, rows: list[list[str]]) -> None:
        """Write the rows of a finished or aborted training into a new file beside the table."""
        paths = (self.table.with_stem(f"{self.table.stem}-{number}") for number in count(1))
        path = next(path for path in paths if not path.exists())
        write_table(path, ESTIMATE_COLUMNS, rows)
        logger.warning("the training begins again; its rows so far are now in %s", path)

    def _find_earlier_rows(self, old_rows: list[list[str]]) -> list[list[str]]:
        """Return the rows of earlier steps; an empty list if old rows are of other layers or of another text.

        A training that resumes measures some steps again, and keeps the rows before them. A training without earlier
        rows begins from the start, and would erase the rows of a previous training.
        """
        first_step = min(row[STEP] for row in self._unwritten)
        # The depth of a layer tells the number of layers; the numbers of vectors and windows tell the text, except for
        # measures without massive tokens, whose number of vectors changes with the weights.
        measures_without_massive = {
            measure.name
            for measure in self._measures
            if measure.rows.get("massive_tokens") == "drop"
        }
        depths, sizes = {}, {}
        for row in self._unwritten:
            if row[LAYER] is not None:
                depths[float(row[LAYER])] = float(row[DEPTH])
                if row[ESTIMATOR] not in measures_without_massive:
                    sizes[row[ESTIMATOR]] = float(row[VECTORS]), float(row[WINDOWS])
        for old_row in old_rows:
            if old_row[LAYER]:
                depth, size = (
                    float(old_row[DEPTH]),
                    (float(old_row[VECTORS]), float(old_row[WINDOWS])),
                )
                same_layers = depths.get(float(old_row[LAYER]), depth) == depth
                same_text = sizes.get(old_row[ESTIMATOR], size) == size
                if not (same_layers and same_text):
                    return []
        return [row for row in old_rows if int(row[STEP] or -1) < first_step]


class ShapeCallback(TrainerCallback):
    """A :class:`ShapeProbe` for the Trainer of transformers, whose trackers log the values.

    Parameters
    ----------
    trainer : transformers.Trainer, optional
        The trainer to which the callback adds itself; without it, pass the callback to the trainer's ``callbacks``.
    texts, **options
        Arguments of :class:`ShapeProbe`; the tokenizer is the trainer's if it has one.
    every : int
        Steps between two measurements. A training that does not resume is also measured before its first step.
    manifest : bool
        Whether to write ``tensor_manifest.json``, with the digest of each tensor, into each saved checkpoint;
        ``shape-of-learning audit FOLDER`` compares the digests later.

    Notes
    -----
    Bad arguments raise InputError before the first step; later errors are logged, and the training goes on.

    If one trainer has several callbacks, for several texts, give each a `name`, which its keys then have:
    ``shape/NAME/MEASURE/layer_LAYER``.

    Examples
    --------
    ::

        probe = ShapeCallback(texts, every=1000)
        trainer = Trainer(model, arguments, processing_class=tokenizer, callbacks=[probe], ...)
        trainer.train()

    With a trainer that exists already::

        ShapeCallback(trainer, texts, every=1000)
    """

    def __init__(
        self,
        trainer: Any = None,
        texts: Iterable[str] | None = None,
        *,
        every: int = 1000,
        manifest: bool = False,
        tokenizer: Any = None,
        **options: Any,
    ):
        if texts is None:
            trainer, texts = None, trainer
        if trainer is not None and not callable(getattr(trainer, "add_callback", None)):
            raise InputError(
                f"the first of two arguments is a {type(trainer).__name__}; give a trainer and texts, or texts alone, "
                "and name other arguments, such as `tokenizer=`"
            )
        self.every = read_whole_number("every", every, 1)
        self._trainer, self._is_on_all_ranks, self._prefix = trainer, False, SHAPE
        self.manifest = manifest
        if tokenizer is None and trainer is not None:
            tokenizer = trainer.processing_class
        self.probe = ShapeProbe(tokenizer, texts, **options)  # type: ignore[arg-type]
        if trainer is not None:
            trainer.add_callback(self)

    def on_train_begin(self, args: Any, state: Any, control: Any, **options: Any) -> None:
        """Check the arguments, and measure the model before the first step."""
        self._trainer = _find_calling_trainer() or self._trainer
        self._prefix = self._choose_prefix()
        if self.probe.tokenizer is None:
            self.probe.tokenizer = find_tokenizer(options.get("processing_class"))
        self.probe.check(options["model"])
        self._is_on_all_ranks = LoadedModel.inspect_model(options["model"]).is_sharded
        if state.global_step == 0:
            self._measure(state, control, options["model"])

    def _choose_prefix(self) -> str:
        """Return the beginning of the keys; InputError if another callback of the trainer has the same name."""
        callbacks = self._trainer.callback_handler.callbacks if self._trainer is not None else []
        names = [item.probe.name for item in callbacks if isinstance(item, ShapeCallback)]
        if names.count(self.probe.name) > 1:
            raise InputError(
                f"{names.count(self.probe.name)} callbacks of one trainer have the name `{self.probe.name}`; give each "
                "callback another `name=`, which tells their values and rows apart"
            )
        return f"{SHAPE}{self.probe.name}/" if len(names) > 1 else SHAPE

    def on_step_end(self, args: Any, state: Any, control: Any, **options: Any) -> None:
        """Measure the model after each `every` updates; an update may accumulate several batches."""
        if state.global_step % self.every == 0:
            self._measure(state, control, options["model"])

    def on_save(self, args: Any, state: Any, control: Any, **options: Any) -> None:
        """Write the manifest of a saved checkpoint, on the main process."""
        if self.manifest and state.is_world_process_zero:
            folder = Path(args.output_dir, f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}")
            with self.probe.log_errors("no manifest is written"):
                write_manifest(folder, state.global_step, count_cores())

    def _measure(self, state: Any, control: Any, model: Any) -> None:
        if not (state.is_world_process_zero or self._is_on_all_ranks):
            return
        values = self.probe.measure(model, state.global_step)
        logged_values = {
            self._prefix + key.removeprefix(SHAPE): value for key, value in values.items()
        }
        if values and self._trainer is not None:
            is_due = control.should_log
            self._trainer.log(logged_values)
            control.should_log = is_due  # `log` clears it, but the trainer has not logged its loss
        elif values:
            state.log_history.append({**logged_values, "step": state.global_step})
        # A tracker gives an alert the step of the latest values, so these must come first.
        self.probe.report_left_bands(values, state.global_step)


def _check_bands(bands: Any) -> dict[str, tuple[float, float]]:
    """Return bands with numbers as bounds; InputError for other bands, which would stop a training later."""
    checked_bands = {}
    try:
        for name, (low, high) in dict(bands).items():
            if not float(low) <= float(high):
                raise ValueError
            checked_bands[str(name)] = float(low), float(high)
    except (TypeError, ValueError):
        raise InputError(
            f"`bands` is {bands!r:.80}; give a lower and an upper bound for each measure, such as "
            '{"anisotropy": (0, 0.5)}'
        ) from None
    return checked_bands


def _find_calling_trainer() -> Trainer | None:
    """Find the trainer that calls the callback, since the library does not pass it."""
    frame = sys._getframe()
    while frame := frame.f_back:
        caller = frame.f_locals.get("self")
        if isinstance(caller, Trainer):
            return caller
    return None
