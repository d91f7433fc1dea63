"""The measures that a configuration asks for, with their settings, checked before any job."""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from shape_of_learning.errors import InputError
from shape_of_learning.metrics.measure_entry import Interval, Measure, Value
from shape_of_learning.metrics.registry import find_measure, measure_names
from shape_of_learning.plan.identity import digest_code
from shape_of_learning.validation import format_value, make_unknown_name_error, read_number

TYPES = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def choose_measures(
    measurement: Mapping[str, Any], names: Collection[str], last_layer: str = "after_final_norm"
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

    Raises
    ------
    InputError
        One sentence that names the key: a measure, a parameter or a value that there is not, more neighbours
        than are searched or than a batch has, a state before the final norm that is not kept, or as
        :func:`measure_names` and :func:`find_measure`.
    """
    known, settings = measure_names(), measurement["parameters"]
    for key, listed in (("estimators", names), ("parameters", settings)):
        for name in listed:
            if name not in known:
                raise make_unknown_name_error(name, known, "estimator", f"key `measurement.{key}`")
    chosen = {
        name: _choose_measure(name, measurement["neighbours"], settings.get(name, {}))
        for name in dict.fromkeys([*names, *settings])
    }
    for name in names:
        if "last_layer" in chosen[name].rows and last_layer != "both":
            raise InputError(
                f"measure `{name}` takes the last layer before the final norm, but configuration key "
                f"`forward.last_layer` is `{last_layer}`; set it to `both`"
            )
    return {name: chosen[name] for name in names}


def digest_measures(script: str, measures: Iterable[Measure]) -> str:
    """Digest of a script with the modules of the measures that it takes."""
    return digest_code(script, *sorted({measure.module for measure in measures}))


def _choose_measure(name: str, searched: int, settings: Mapping[str, Any]) -> Measure:
    measure = find_measure(name)
    checked = {key: _check_parameter(name, measure, key, value) for key, value in settings.items()}
    chosen = measure.configure(name, checked)
    _check_order(chosen)
    if measure.family == "dimension" and not chosen.neighbours:
        chosen = replace(chosen, neighbours=searched)
    if measure.family == "dimension" and int(chosen.neighbours) > searched:
        raise InputError(
            f"measure `{name}` asks for {chosen.neighbours} neighbours, but `measurement.neighbours` is "
            f"{searched}; raise the latter to {chosen.neighbours}"
        )
    return chosen


def _check_order(measure: Measure) -> None:
    """Refuse a parameter that is not above the one that it must be above."""
    for key, allowed in measure.allowed.items():
        other = allowed.above_parameter if isinstance(allowed, Interval) else ""
        value, least = measure.parameters[key], measure.parameters.get(other, -math.inf)
        if other and not value > least:  # type: ignore[operator]
            raise InputError(
                f"configuration key `measurement.parameters.{measure.name}`: `{key}` is {value}, but must be above "
                f"`{other}`, which is {least}; raise the former or lower the latter"
            )


def _check_parameter(name: str, measure: Measure, key: str, value: Any) -> Value:
    """Refuse what a parameter cannot be."""
    where = f"configuration key `measurement.parameters.{name}"
    if key not in measure.parameters:
        raise make_unknown_name_error(key, measure.parameters, "parameter", f"{where}`")
    kind = type(measure.parameters[key])
    allowed: Any = measure.allowed.get(key)
    if kind is float:
        value = read_number(value)
        value = float(value) if type(value) is int else value
    is_finite = not isinstance(value, float) or math.isfinite(value)
    if type(value) is kind and is_finite and (allowed is None or value in allowed):
        return value
    must = TYPES[kind]
    if isinstance(allowed, Interval):
        must = f"{must} {allowed}"
    elif allowed:
        must = f"one of {', '.join(f'`{choice}`' for choice in allowed)}"
    raise InputError(f"{where}.{key}` is {format_value(value)}, but must be {must}")
