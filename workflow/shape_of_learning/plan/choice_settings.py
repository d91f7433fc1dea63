"""Section ``choices`` of the configuration: which specifications claims are judged under."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from shape_of_learning.claims.choices import ROW_CHOICES, Choice, ChoiceSettings, Variant
from shape_of_learning.errors import InputError
from shape_of_learning.plan.measures import chosen_measures
from shape_of_learning.plan.schema import unknown_name

TEXTS = ("own", "resampled")


def choice_settings(settings: Mapping[str, Any]) -> ChoiceSettings:
    """Read the section.

    Parameters
    ----------
    settings : mapping
        The configuration, which the schema allows.

    Returns
    -------
    ChoiceSettings
        The run's own option of each choice is the first, where it is listed.

    Raises
    ------
    InputError
        One sentence that names the key: a text, an estimator or a parameter that there is not.
    """
    choices, measurement = settings["choices"], settings["measurement"]
    sources = settings["corpus"]["sources"]
    for text in choices["text"]:
        if text not in TEXTS and text not in sources:
            where = "configuration key `choices.text`"
            raise unknown_name(text, (*TEXTS, *sources), "text", where)
    last_layer = settings["forward"]["last_layer"].replace("both", "after_final_norm")
    own = {"text": "own", "windows_share": "1", "batch_share": "1", **measurement}
    listed = {**{k: choices[k] for k in ROW_CHOICES}}
    return ChoiceSettings(
        rows=[Choice(name, _options(listed[name], own[name])) for name in ROW_CHOICES],
        average_over=tuple(choices["average_over"]),
        last_layer=_options(choices["last_layer"], last_layer),
        families={
            name: tuple(_variants(entries, measurement, f"choices.estimators.{name}"))
            for name, entries in choices["estimators"].items()
        },
    )


def _options(listed: Sequence[Any], own: str) -> tuple[str, ...]:
    written = [each if isinstance(each, str) else f"{each:g}" for each in listed]
    return tuple(sorted(written, key=lambda each: each != own))


def _variants(entries: Sequence[Any], measurement: Mapping[str, Any], key: str) -> list[Variant]:
    """Look up the estimators of a family, each with its own parameters; equal ones once."""
    found: list[Variant] = []
    for entry in entries:
        base, own = (entry, {}) if isinstance(entry, str) else next(iter(entry.items()))
        parameters = {base: {**measurement["parameters"].get(base, {}), **own}}
        try:
            chosen = chosen_measures({**measurement, "parameters": parameters}, [base])[base]
        except InputError as error:
            said = str(error).replace("measurement.parameters", key)
            raise InputError(said.replace("measurement.estimators", key)) from error
        if chosen.of == "weights":
            raise InputError(
                f"configuration key `{key}` names `{base}`, which is measured of a model's own matrices; "
                "remove it"
            )
        words = ", ".join(f"{name}={value}" for name, value in own.items())
        named = replace(chosen, name=f"{base}({words})" if own else base)
        alike = (replace(named, name=each.name) == each.measure for each in found)
        if not any(alike):
            found.append(Variant(base, named))
    return found
