"""Small configurations and entries that tests of the plan change."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from shape_of_learning.errors import InputError
from shape_of_learning.files import read_yaml
from shape_of_learning.plan.choices import SpecificationGrid
from shape_of_learning.plan.papers import read_papers
from shape_of_learning.plan.run import Run, add_defaults, merge_settings, read_run

REPOSITORY = Path(__file__).parents[2]
CONFIG = REPOSITORY / "config"
MODELS = CONFIG / "models"
PAPERS = read_papers(REPOSITORY / "workflow/papers")
RECIPE = {
    "architecture": "gpt_neox",
    "attention_heads": 2,
    "vocabulary": 300,
    "context": 16,
    "batch_size": 8,
    "learning_rate": 0.01,
    "warmup_steps": 2,
    "last_step": 10,
    "threads": 1,
}
SIZE = {"role": "decoder", "layers": 2, "hidden_size": 32}
PLAIN = {**SIZE, "pretraining": RECIPE}
TUNING = {
    "task": "topic",
    "learning_rate": 0.1,
    "batch_size": 4,
    "epochs": 3,
    "seed": 0,
    "threads": 1,
}


def make_twin(**changes: object) -> dict:
    twin = {"twin_of": "plain", "regulariser": "mse", "strength": 1, **changes}
    return {**SIZE, "pretraining": {**RECIPE, **twin}}


def make_finetuning(origin: str, **changes: object) -> dict:
    return {"finetuning": {"of": origin, **TUNING, **changes}}


def make_run(changes: Any, folder: Path | None = None, entries: Any = None, **options: Any) -> Run:
    """Read changes of the demo's configuration, with further entries in a folder."""
    folders = [MODELS]
    if folder is not None and entries is not None:
        text = entries if isinstance(entries, str) else yaml.safe_dump(entries)
        (folder / "mine.yaml").write_text(text)
        folders.append(folder)
    demo = add_defaults(read_yaml(CONFIG / "demo.yaml"), CONFIG / "config.yaml")
    options = {"papers": PAPERS, "is_closed": lambda model: True, **options}
    run = read_run(merge_settings(demo, changes), *folders, **options)
    SpecificationGrid(run.settings)
    return run


def catch_refusal(*arguments: Any, **options: Any) -> str:
    """Return the message, of one line, that refuses a configuration."""
    with pytest.raises(InputError) as caught:
        make_run(*arguments, **options)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000
    return str(caught.value)
