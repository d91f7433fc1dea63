"""A run with an odd value at any key is planned or refused in one sentence, soon and with little memory."""

import copy
import datetime
import math
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from plans import CONFIG, PAPERS, PLAIN, make_finetuning
from shape_of_learning.errors import InputError
from shape_of_learning.files import read_yaml
from shape_of_learning.plan.choices import SpecificationGrid
from shape_of_learning.plan.run import read_run

DEEP_SECTION: Any = 1
for _ in range(45):
    DEEP_SECTION = {"all_of": [DEEP_SECTION]}
ODD_VALUES = [
    None,
    True,
    -1,
    0.5,
    10**30,
    math.nan,
    -math.inf,
    "",
    "1e-4",
    "1e400",
    "x" * 100_000,
    "</script>\x1b[31m\n\u202e",
    "{step}{seed}{models}",
    "../../etc",
    b"\x00",
    datetime.date(2026, 1, 1),
    [],
    [[]],
    ["plain", "plain"],
    list(range(1_000)),
    {},
    {"plain": "all"},
    {"log": 10**9},
    DEEP_SECTION,
]
HUB = {
    **{"repository": "org/model", "role": "decoder", "layers": 2, "hidden_size": 32},
    **{"revision": None, "subfolder": None, "tokenizer": None, "gated": False, "label": "A label"},
    **{"family": "A family", "precision": "float32", "seeds": None},
    "table_1": {
        "attention_heads": 1,
        "vocabulary": 300,
        "batch_size": 1,
        "learning_rate": 0.1,
        "training_tokens": 9,
    },
    "training": {
        **{"revision": "step{step}", "steps": [0, 8], "tokens_per_step": 9, "last_step": 8},
        **{"warmup_steps": 2, "note": "A note.", "checkpoints": None},
        "known_bad": [{"steps": [8], "because": "x", "source": "y"}],
    },
}
ENTRIES = {
    "plain": PLAIN,
    "hub": {key: value for key, value in HUB.items() if value is not None},
    "tuned": make_finetuning("plain"),
    "mine": {"path": "nowhere", "training": {"steps": "all"}},
}


def list_paths(value: Any, path: tuple = ()) -> Iterator[tuple]:
    """Yield the path of each value within sections."""
    if path:
        yield path
    for key in value if isinstance(value, dict) else ():
        yield from list_paths(value[key], (*path, key))


# The claims of one paper name published models, which these settings lack.
PAPERS_WITHOUT_CLAIMS = [paper.model_copy(update={"claims": {}}) for paper in PAPERS]
SETTINGS = {
    **read_yaml(CONFIG / "config.yaml"),
    **{"models": ["plain", "tuned"], "run": "a-run", "training_steps": {"plain": "all"}},
}
SETTINGS["measurement"] |= {
    "parameters": {"alpha_req": {"first": 3, "last": 9}, "mada": {"k": 5, "combine": "mean"}}
}
SETTINGS["figures"] = {"figure_1": "all", "average_over": "all_layers"}
PLACES = [("settings", *path) for path in list_paths(SETTINGS)]
PLACES += [("entries", *path) for path in list_paths(ENTRIES | {"hub": HUB})]


def change_value(whole: dict, path: tuple, value: Any) -> dict:
    """Return a copy of the settings with another value at a path."""
    whole = copy.deepcopy(whole)
    section = whole
    for key in path[:-1]:
        section = section[key]
    section[path[-1]] = value
    return whole


def plan_or_refuse(tmp_path, settings: dict, entries: dict) -> str:
    """Return the sentence that refuses the run, or ""; any other exception fails the test."""
    (tmp_path / "mine.yaml").write_text(yaml.dump(entries))
    try:
        run = read_run(
            settings, tmp_path, papers=PAPERS_WITHOUT_CLAIMS, locks=tmp_path, say=lambda line: None
        )
        SpecificationGrid(run.settings)
    except InputError as error:
        return str(error)
    return ""


def test_there_are_many_places_for_odd_values():
    assert len(PLACES) > 150


@pytest.mark.parametrize("part", range(6))
def test_an_odd_value_at_any_key_soon_gives_a_run_or_one_sentence(tmp_path, part):
    """Each place has three of the odd values, and each value many places."""
    refusals = 0
    for number in range(part, len(PLACES), 6):
        for turn in range(3):
            (kind, *path), value = PLACES[number], ODD_VALUES[(number + turn * 8) % len(ODD_VALUES)]
            configuration = {"settings": SETTINGS, "entries": ENTRIES | {"hub": HUB}}
            configuration[kind] = change_value(configuration[kind], tuple(path), value)
            models = [path[0]] if kind == "entries" and path[0] != "tuned" else ["plain"]
            if kind == "entries":
                configuration["settings"] = configuration["settings"] | {"models": models}
            start = time.monotonic()
            sentence = plan_or_refuse(tmp_path, configuration["settings"], configuration["entries"])
            assert time.monotonic() - start < 20, (kind, path, str(value)[:50])
            assert sentence.isprintable(), (kind, path, str(value)[:50])
            assert len(sentence) < 1500, (kind, path, str(value)[:50])
            refusals += bool(sentence)
    assert refusals > 0
