import json
from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from shape_of_learning.checkpoints.model_entry import Shape
from shape_of_learning.errors import InputError
from shape_of_learning.plan.configuration import read_configuration
from shape_of_learning.plan.model_list import read_entries, read_models
from shape_of_learning.plan.papers import figures_of, read_papers

CONFIG = Path(__file__).parents[2] / "config"
MODELS = CONFIG / "models"
PAPERS = read_papers(CONFIG.parent / "workflow" / "papers")


def paper() -> dict:
    return yaml.safe_load((CONFIG / "config.yaml").read_text())


def demo() -> dict:
    settings, changes = paper(), yaml.safe_load((CONFIG / "demo.yaml").read_text())
    settings["models"] = changes["models"]
    for section in ("corpus", "sampling", "figures"):
        settings[section] |= changes[section]
    return settings


def refusal(settings: dict, **options) -> str:
    with pytest.raises(InputError) as caught:
        read_configuration(settings, MODELS, papers=PAPERS, **{"has_hub_token": True, **options})
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_every_entry_of_the_model_list_is_valid():
    entries = read_entries(MODELS)
    models = read_models(entries, list(entries))
    assert len(models) == len(entries)
    for model in models.values():
        steps = [checkpoint.step for checkpoint in model.checkpoints]
        assert steps == sorted(steps, key=lambda step: (step is not None, step or 0))


def test_the_paper_draws_every_figure_when_there_is_a_token():
    configuration = read_configuration(paper(), MODELS, papers=PAPERS, has_hub_token=True)
    assert set(configuration.figures) == set(figures_of(PAPERS))
    assert configuration.notices == ()
    assert configuration.figures["figure_2"] == ("bloom-3b",)
    assert len(configuration.tables["table_1"]) == 6


def test_without_a_token_gated_models_are_left_out_and_named():
    configuration = read_configuration(paper(), MODELS, papers=PAPERS, has_hub_token=False)
    assert not any(name.startswith("llama-2") for name in configuration.models)
    assert not any(name.startswith("llama-2") for name in configuration.figures["figure_1"])
    assert sum("is gated" in notice for notice in configuration.notices) == 3


def test_without_a_token_gated_models_fail_if_that_is_asked_for():
    settings = paper() | {"gated_models": "fail"}
    assert "`llama-2-7b` is gated" in refusal(settings, has_hub_token=False)


def test_a_figure_without_its_models_is_left_out_and_named():
    settings = paper() | {"models": ["gpt2"]}
    configuration = read_configuration(settings, MODELS, papers=PAPERS, has_hub_token=True)
    assert set(configuration.figures) == {"figure_1", "anisotropy_measures"}
    left_out = [notice.split()[0] for notice in configuration.notices]
    assert left_out == ["figure_2", "figure_3", "figure_4", "figure_5", "loss_by_step", "table_1"]


def test_what_drawn_figures_ask_for_is_measured_and_nothing_else():
    settings = paper() | {"models": ["gpt2"]}
    settings["measurement"]["estimators"] = ["mle"]
    settings["figures"]["anisotropy_measures"] = []
    configuration = read_configuration(settings, MODELS, papers=PAPERS, has_hub_token=True)
    assert configuration.estimators == ("mle",)
    assert set(configuration.measures) == {"mle", "anisotropy"}


def test_the_demo_draws_every_figure():
    configuration = read_configuration(demo(), MODELS, papers=PAPERS, has_hub_token=False)
    assert set(configuration.figures) == set(figures_of(PAPERS))
    assert configuration.tables == {"table_1": ("demo-decoder", "demo-encoder")}


@pytest.mark.parametrize(
    ("section", "key", "value", "sentence"),
    [
        ("sampling", "window", 3, "unknown key `window` in `sampling`; did you mean `windows`?"),
        ("sampling", "windows", "many", "`sampling.windows`: 'many' is not of type 'integer'"),
        ("sampling", "windows", 0, "`sampling.windows`: 0 is less than the minimum of 1"),
        ("measurement", "first_token", "no", "must be one of `keep`, `drop`"),
        ("measurement", "parameters", {"mom": {"k": 1}}, "`measurement.parameters.mom.k` is 1"),
        ("measurement", "batch_vectors", 100, "`measurement.batch_vectors` is 100"),
        (
            "measurement",
            "estimators",
            ["two_n"],
            "unknown estimator `two_n`; did you mean `two_nn`",
        ),
        ("corpus", "source", "enwik9", "unknown source `enwik9`; did you mean `enwik8`?"),
        ("measurement", "batch_vectors", 4096.0, "4096.0 is not of type 'integer'"),
        ("figures", "figure_1", None, "`figures.figure_1` must be `all` or a list of model names"),
        ("figures", "figure_2", ["blom-3b"], "`figures.figure_2`: unknown model `blom-3b`"),
        (
            "figures",
            "figure_6",
            "all",
            "key `figures`: unknown key `figure_6`; did you mean `figure_",
        ),
    ],
)
def test_a_wrong_key_or_value_is_one_sentence(section, key, value, sentence):
    settings = deepcopy(paper())
    settings[section][key] = value
    assert sentence in refusal(settings)


def test_what_is_not_written_cannot_be_kept():
    settings = deepcopy(paper())
    settings["embeddings"] |= {"dump": False, "keep": True}
    assert "`embeddings.keep` is true, but with `embeddings.dump: false`" in refusal(settings)


def test_a_missing_key_is_one_sentence():
    settings = deepcopy(paper())
    del settings["sampling"]["windows"]
    assert "key `sampling.windows` is missing" in refusal(settings)


def test_an_unknown_model_is_one_sentence():
    assert "unknown model `gtp2`; did you mean `gpt2`?" in refusal(paper() | {"models": ["gtp2"]})


RECIPE = (
    "{architecture: gpt_neox, attention_heads: 2, vocabulary: 300, context: 16, batch_size: 2, "
    "learning_rate: 0.001, warmup_steps: 0, last_step: 1, threads: 1}"
)


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ("{role: decoder, layers: 2, hidden_size: 8}", "exactly one of `repository` or `path`"),
        ("{role: decoder, layers: 2, hidden_size: 8, path: nowhere}", "there is no config.json"),
        (
            "{role: decoder, layers: 2, hidden_size: 9, pretraining: PRETRAINING}",
            "make it a multiple",
        ),
        ("{role: both, layers: 2, hidden_size: 8, path: x}", "must be one of `encoder`, `decoder`"),
        ("{role: decoder, layers: 2, hidden_size: 8, path: x, lyers: 3}", "unknown key `lyers`"),
        ("{role: decoder, layers: 2, pretraining: PRETRAINING}", "key `hidden_size` is missing"),
        ("{path: x, training: {checkpoints: [{step: 1, revision: a}]}}", "needs `repository`"),
        ("{repository: a/b, revision: ..}", "`revision` must be a branch, tag or commit"),
        ("{repository: a/b, revision: /home}", "`revision` must be a branch, tag or commit"),
        ("{repository: a/b, revision: a b}", "`revision` must be a branch, tag or commit"),
        (r'{repository: a/b, revision: "a\x1b"}', "`revision` must be a branch, tag or commit"),
        (
            "{repository: a/b, training: {revision: '../{step}', steps: [1]}}",
            "`training.revision` must be a branch, tag or commit",
        ),
        (
            "{repository: a/b, training: {checkpoints: [{step: 1, revision: a/../b}]}}",
            "`training.checkpoints.0.revision` must be a branch, tag or commit",
        ),
        *(
            (
                f'{{repository: a/b, training: {{checkpoints: [{{step: 1, revision: a, name: "{name}"}}]}}}}',
                "training.checkpoints.0.name",
            )
            for name in ("..", ".", "", "a/b", "a b", "-a", "a$(b)", r"a\0")
        ),
        ("{repository: a/b, training: {steps: [1]}}", "needs `training.revision`"),
        (
            "{role: decoder, layers: 2, hidden_size: 8, pretraining: PRETRAINING, training: {steps: [1]}}",
            "`training` needs `repository` or `path`",
        ),
        ("{repository: a/b, subfolder: a/../../b}", "`subfolder` must be a folder inside"),
        ("{repository: ../b}", "`repository` must be `organisation/name`"),
        (
            "{role: decoder, layers: 2, hidden_size: 8, repository: a/b, training: {checkpoints: "
            "[{step: 1, revision: main}, {step: 2, revision: main}]}}",
            "two checkpoints are called `main`",
        ),
    ],
)
def test_a_malformed_model_entry_is_one_sentence_that_names_the_file(tmp_path, entry, sentence):
    (tmp_path / "mine.yaml").write_text(f"mine: {entry.replace('PRETRAINING', RECIPE)}\n")
    with pytest.raises(InputError) as caught:
        read_models(read_entries(tmp_path), ["mine"])
    assert sentence in str(caught.value)
    assert "mine.yaml" in str(caught.value)


@pytest.mark.parametrize(
    "revision", ["main", "refs/pr/1", "step-5k", "v1.0", "a$(b)", "it's", "ü{x}", "0" * 40]
)
def test_whatever_git_takes_for_a_revision_is_taken(tmp_path, revision):
    (tmp_path / "mine.yaml").write_text(f'mine: {{repository: a/b, revision: "{revision}"}}\n')
    (checkpoint,) = read_models(read_entries(tmp_path), ["mine"])["mine"].checkpoints
    assert checkpoint.revision == revision


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"gpt2: {label: '\xff'}", "not valid YAML"),
        (b"5: {path: x}", "calls a model 5, which is no text"),
        (b"- gpt2", "must map model names to entries"),
    ],
)
def test_a_model_file_that_cannot_be_read_is_one_sentence(tmp_path, content, sentence):
    (tmp_path / "mine.yaml").write_bytes(content)
    with pytest.raises(InputError, match=sentence) as caught:
        read_entries(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_local_folder_says_what_its_entry_does_not(tmp_path):
    config = {"model_type": "bert", "num_hidden_layers": 3, "hidden_size": 32}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "mine.yaml").write_text(f"mine: {{path: '{tmp_path}', layers: LAYERS}}\n")
    entry = (tmp_path / "mine.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(entry.replace("LAYERS", "3"))
    model = read_models(read_entries(tmp_path), ["mine"])["mine"]
    assert model.shape == Shape("encoder", 3, 32, 32)
    (tmp_path / "mine.yaml").write_text(entry.replace("LAYERS", "4"))
    with pytest.raises(InputError, match=r"says 3 where the entry says 4"):
        read_models(read_entries(tmp_path), ["mine"])


def test_two_files_must_not_define_the_same_model(tmp_path):
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text("gpt2: {role: decoder}\n")
    with pytest.raises(InputError, match=r"defined in .*a\.yaml and in .*b\.yaml"):
        read_entries(tmp_path)


def test_training_steps_become_revisions_and_tokens():
    models = read_models(read_entries(MODELS), ["pythia-2.8b", "tinyllama-1.1b"])
    (step,) = (each for each in models["pythia-2.8b"].checkpoints if each.step == 1000)
    assert (step.revision, step.step, step.tokens) == ("step1000", 1000, 2_097_152_000)
    last = models["tinyllama-1.1b"].checkpoints[-1]
    assert last.repository == "TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T"
    assert (last.revision, last.name) == ("main", "step-1431k-token-3000B")
