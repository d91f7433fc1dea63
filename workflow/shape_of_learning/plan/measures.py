"""The measures that a configuration asks for, with their settings, checked before any job."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from shape_of_learning.errors import InputError
from shape_of_learning.metrics.measure_entry import Interval, Measure, Value
from shape_of_learning.metrics.registry import find_measure, measure_names
from shape_of_learning.plan.refusals import unknown_name
from shape_of_learning.plan.science import PACKAGE, digest_of_package, science

TYPES = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def chosen_measures(
    measurement: Mapping[str, Any],
    names: Collection[str],
    last_layer: str = "after_final_norm",
    figures: Mapping[str, str] | None = None,
) -> dict[str, Measure]:
    """Look up measures and give them their settings.

    Parameters
    ----------
    measurement : mapping
        Section ``measurement`` of the configuration.
    names : collection of str
        What `measurement.estimators` lists, and figures draw.
    last_layer : str
        ``forward.last_layer``.
    figures : mapping of str to str, optional
        Of measures that only figures name, the figure.

    Raises
    ------
    InputError
        One sentence that names the key: a measure, a parameter or a value that there is not, more neighbours
        than are searched or than a batch has, a state before the final norm that is not kept, or as
        :func:`measure_names` and :func:`find_measure`.
    """
    vectors, searched = measurement["batch_vectors"], measurement["neighbours"]
    if vectors <= searched:
        raise InputError(
            f"configuration key `measurement.batch_vectors` is {vectors}, but the neighbour search looks for "
            f"{searched} others (`measurement.neighbours`); set it to {searched + 1} or more"
        )
    known, settings = measure_names(), measurement["parameters"]
    for name in settings:
        if name not in known:
            raise unknown_name(name, known, "estimator", "key `measurement.parameters`")
    chosen = {}
    for name in dict.fromkeys([*names, *settings]):
        if name not in known:
            raise unknown_name(name, known, "estimator", "key `measurement.estimators`")
        measure, own = find_measure(name), settings.get(name, {})
        checked = {key: _checked(name, measure, key, value) for key, value in own.items()}
        chosen[name] = measure.chosen(name, checked)
        _require_neighbours(chosen[name], measure, searched, _named(name, names, figures))
        if not chosen[name].neighbours and measure.family == "dimension":
            chosen[name] = replace(chosen[name], neighbours=searched)
    for name in names:
        if "last_layer" in chosen[name].rows and last_layer != "both":
            raise InputError(
                f"{_named(name, names, figures)} takes the last layer before the final norm, but "
                f"configuration key `forward.last_layer` is `{last_layer}`; set it to `both`"
            )
    return {name: chosen[name] for name in names}


def _named(name: str, names: Collection[str], figures: Mapping[str, str] | None) -> str:
    """Say who names a measure."""
    key = "`measurement.estimators`" if name in names else "`measurement.parameters`"
    who = f"figure `{figures[name]}`" if figures and name in figures else key
    return f"measure `{name}`, which {who} names,"


def curves_of_a_run(
    models: Sequence[str],
    estimators: Sequence[str],
    figures: Iterable[tuple[Sequence[str], Sequence[str], str]],
    of_layers: Collection[str],
) -> dict[tuple[str, str], str]:
    """List what a run measures.

    Parameters
    ----------
    models, estimators : sequence of str
        Of the configuration: each estimator is measured at every checkpoint of each model.
    figures : iterable of (models, estimators, which)
        What figures draw besides, at ``"every_checkpoint"`` or at the ``"last_checkpoint"``.
    of_layers : collection of str
        The measures of hidden states.

    Returns
    -------
    dict of (str, str) to str
        Model and estimator -> at which checkpoints.
    """
    wanted = {(model, name): "every_checkpoint" for model in models for name in estimators}
    for drawn, named, which in figures:
        for model in drawn:
            for name in named:
                # Every checkpoint, if one figure draws them all, is also the last one.
                if name in of_layers and wanted.get((model, name)) != "every_checkpoint":
                    wanted[model, name] = which
    return wanted


@cache
def _science_of(script: str, where: str) -> str:
    """Digest of the script and of the module of a measure; of another package's, of all modules there."""
    package, _, module = where.partition(".")
    if package == PACKAGE.name:
        return science(script, module)
    try:
        source = find_spec(where)
    except ImportError:
        source = None
    origin = source.origin if source is not None else None
    if origin is None or not origin.endswith(".py"):
        raise InputError(f"there is no Python module {where}; correct the entry of its measure")
    return f"{science(script)}-{digest_of_package(Path(origin))}"


def science_of_measures(script: str, measures: Iterable[Measure]) -> list[str]:
    """Digest of what measures are computed by, without repetitions."""
    return sorted({science(script), *(_science_of(script, each.module) for each in measures)})


def _checked(name: str, measure: Measure, key: str, value: Any) -> Value:
    """Refuse what a parameter cannot be."""
    where = f"configuration key `measurement.parameters.{name}"
    if key not in measure.parameters:
        if not measure.parameters:
            raise InputError(f"{where}`: it has no parameters; remove `{key}`")
        raise unknown_name(key, measure.parameters, "parameter", f"{where}`")
    kind = type(measure.parameters[key])
    allowed: Any = measure.allowed.get(key)
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is kind and (allowed is None or value in allowed):
        return value
    must = TYPES[kind]
    if isinstance(allowed, Interval):
        must = f"{must} {allowed}"
    elif allowed:
        must = f"one of {', '.join(f'`{choice}`' for choice in allowed)}"
    raise InputError(f"{where}.{key}` is {value!r}, but must be {must}")


def _require_neighbours(chosen: Measure, measure: Measure, searched: int, asks: str) -> None:
    if chosen.family != "dimension" or int(chosen.neighbours) <= searched:
        return
    if isinstance(measure.neighbours, str):
        asks = f"configuration key `measurement.parameters.{chosen.name}.{measure.neighbours}`"
    raise InputError(
        f"{asks} asks for {chosen.neighbours} neighbours, but `measurement.neighbours` is {searched}; "
        f"raise the latter to {chosen.neighbours}"
    )
