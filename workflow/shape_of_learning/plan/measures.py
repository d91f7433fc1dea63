"""The measures that a configuration asks for, with their settings, checked before any job."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from shape_of_learning.errors import InputError
from shape_of_learning.metrics.measure_entry import Interval, Measure, Value
from shape_of_learning.metrics.registry import find_measure, measure_names
from shape_of_learning.plan.identity import code
from shape_of_learning.plan.refusals import unknown_name

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
    searched = measurement["neighbours"]
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


def code_of_measures(script: str, measures: Iterable[Measure]) -> str:
    """Digest of a script with the modules of the measures that it takes."""
    return code(script, *sorted({each.module for each in measures}))


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
