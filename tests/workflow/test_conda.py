"""Each rule in its own conda environment, as `--use-conda` makes it, by the stand-in for conda."""

import importlib.util
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from checkouts import Checkout
from conda_standin.base import lay_out
from hub_fetching import LAYERS, save_model
from hub_server import HubRepository, served
from tiny_models import save_tokenizer
from tiny_runs import RECIPE
from workflow_rules import workflow_rules

STEPS = [0, 1000]
FETCHED = {
    "role": "decoder",
    "layers": LAYERS,
    "hidden_size": 32,
    "repository": "org/fetched",
    "training": {"revision": "step{step}", "tokens_per_step": 100, "steps": STEPS},
}
PRETRAINED = {
    "role": "decoder",
    "layers": 1,
    "hidden_size": 32,
    "pretraining": {**RECIPE, "context": 512},
}
TUNED = {
    "finetuning": {
        **{"of": "pretrained", "task": "topic", "learning_rate": 0.001, "batch_size": 256},
        **{"epochs": 1, "seed": 0, "threads": 1},
    },
    "training": {"steps": {"linear": 2}},
}
ENTRIES = {"fetched": FETCHED, "pretrained": PRETRAINED, "tuned": TUNED}
UNDRAWN = ("loss_by_step", "anisotropy_measures", "dimension_by_scale")
UNDRAWN += ("linear_figure_3", "linear_first_token")
# As small as every rule and the first paper's figures allow; each figure of a curve shows two steps.
CHANGES = {
    "models": list(ENTRIES),
    "sampling": {"windows": 8, "window_characters": 512},
    "measurement": {
        **{"batch_vectors": 1024, "estimators": ["anisotropy"], "for_figures_only": ["tuned"]},
    },
    "block_editing": {"most_blocks": 1, "kinds": ["dropped"]},
    "figures": {
        **{name: [] for name in UNDRAWN},
        "figure_2": ["fetched"],
        "figure_3": ["pretrained"],
        "linear_table_1": ["tuned"],
        "linear_figure_6": ["pretrained"],
        "finetuning_figure_1": ["tuned"],
    },
}
TEXT = "results/corpus/python_topics/text.txt"
PROTOCOL = "results/tables/protocol.yaml"


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory, hub_program: Path) -> Iterator[str]:
    """A Hub with one model, so that the rules that ask it run as well."""
    root, sources = tmp_path_factory.mktemp("hub"), tmp_path_factory.mktemp("sources")
    repository = HubRepository(root, FETCHED["repository"])
    for step in STEPS:
        folder = save_model(sources / f"step{step}", seed=step, form="safetensors", hidden_size=32)
        save_tokenizer(folder)
        repository.commit(f"step{step}", folder, large=("model.safetensors",))
    with served(root, hub_program) as address:
        yield address


@pytest.fixture(scope="module")
def conda(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder for the PATH; beside it the environments are kept while this module runs."""
    return lay_out(tmp_path_factory.mktemp("conda"))


def run(
    checkout: Checkout,
    conda: Path,
    *targets: str,
    succeeds: bool = True,
    changes: dict = CHANGES,
    **variables: str,
) -> str:
    checkout.write("config/models/mine.yaml", ENTRIES)
    checkout.write("changes.yaml", changes)
    return checkout.snakemake(
        *("--configfile", "config/demo.yaml", "changes.yaml", "--cores", "2"),
        *("--use-conda", "--conda-prefix", str(conda.parent / "environments")),
        *("--", *targets),
        succeeds=succeeds,
        environment={
            "PATH": f"{conda}{os.pathsep}{os.environ['PATH']}",
            **variables,
        },
    )


def test_every_rule_runs_with_the_packages_of_its_environment_alone(checkout, conda, endpoint):
    text = checkout.folder / "mine.txt"
    text.write_text("some words\n" * 100)
    corpus = {"sources": {"mine": {"urls": [str(text)], "format": "text"}}}
    said = run(
        checkout,
        conda,
        # No figure asks for a measure of spectra.
        *(
            "all",
            "results/corpus/mine/alphabet.json",
            "results/spectra/pretrained/step0/layer_0.h5",
        ),
        changes=CHANGES | {"corpus": corpus},
        HF_ENDPOINT=endpoint,
        HF_HUB_OFFLINE="0",
    )
    measured = "results/measurements/pretrained/step0/anisotropy.csv"
    (checkout.folder / measured).unlink()
    in_memory = CHANGES | {"corpus": corpus, "embeddings": {"dump": False}}
    said += run(checkout, conda, measured, changes=in_memory)
    rules, planned = workflow_rules(), re.findall(r"^(\w+) +\d+$", said, re.MULTILINE)
    run_here = {rule.script for rule in rules if rule.name in planned}
    assert {rule.script for rule in rules} == run_here
    assert len(list((conda.parent / "environments").glob("*.env_setup_done"))) == len(
        {Path(rule.environment).name for rule in rules}
    )
    drawn = {path.stem for path in (checkout.folder / "results/figures").glob("*.pdf")}
    assert {f"figure_{number}" for number in range(1, 6)} <= drawn


def test_a_package_that_is_not_listed_is_missing_even_if_snakemake_has_it(checkout, conda):
    assert importlib.util.find_spec("mwparserfromhell"), "else this would show nothing"
    file = checkout.folder / "envs" / "corpus.yaml"
    environment = yaml.safe_load(file.read_text())
    listed = environment["dependencies"]
    environment["dependencies"] = [e for e in listed if not e.startswith("mwparserfromhell")]
    assert len(environment["dependencies"]) == len(listed) - 1
    file.write_text(yaml.safe_dump(environment))
    said = run(checkout, conda, TEXT, succeeds=False)
    assert "ModuleNotFoundError: No module named 'mwparserfromhell'" in said
    assert not (checkout.folder / TEXT).exists()


def test_a_job_sees_nothing_of_its_users_own_python(checkout, conda, tmp_path):
    """Whatever the user has set, modules come from the environment, Python itself and workflow/."""
    (checkout.folder / "workflow/scripts/write_protocol.py").write_text(
        "import json, os, sys\n"
        "seen = {'path': sys.path, 'prefix': sys.prefix, 'python': sys.base_prefix}\n"
        "seen['user site'] = os.environ.get('PYTHONNOUSERSITE')\n"
        "with open(sys.argv[sys.argv.index('--output') + 1], 'w') as file:\n"
        "    json.dump(seen, file)\n"
    )
    own = tmp_path / "lib" / "python3.11" / "site-packages"
    own.mkdir(parents=True)
    run(checkout, conda, PROTOCOL, PYTHONPATH=str(own), PYTHONUSERBASE=str(tmp_path))
    seen = json.loads((checkout.folder / PROTOCOL).read_text())
    assert Path(seen["prefix"]).parent == conda.parent / "environments"
    assert seen["user site"] == "1"
    library = Path(seen["python"]) / "lib"
    admitted = {
        str(checkout.folder / "workflow" / "scripts"),
        str(checkout.folder / "workflow"),
        *(
            str(library / name)
            for name in ("python311.zip", "python3.11", "python3.11/lib-dynload")
        ),
        f"{seen['prefix']}/lib/python3.11/site-packages",
    }
    assert set(seen["path"]) == admitted


def test_a_package_that_cannot_be_had_stops_the_run_before_any_job(checkout, conda):
    file = checkout.folder / "envs" / "corpus.yaml"
    file.write_text(file.read_text() + "  - samtools=1.21\n")
    said = run(checkout, conda, PROTOCOL, succeeds=False)
    assert "samtools" in said
    assert not (checkout.folder / "results" / "tables").exists()
