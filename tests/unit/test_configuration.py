import json
from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from shape_of_learning.checkpoints.shapes import Shape
from shape_of_learning.errors import InputError
from shape_of_learning.plan.configuration import read_configuration
from shape_of_learning.plan.merging import with_defaults
from shape_of_learning.plan.model_list import read_entries, read_models
from shape_of_learning.plan.paper_models import by_family_and_size, with_chosen_measures
from shape_of_learning.plan.papers import figures_of, read_papers

CONFIG = Path(__file__).parents[2] / "config"
MODELS = CONFIG / "models"
PAPERS = read_papers(CONFIG.parent / "workflow" / "papers")
# Of models whose values are published; runs without these do not miss them.
PUBLISHED = {name for name, figure in figures_of(PAPERS).items() if figure.published}


def paper() -> dict:
    return yaml.safe_load((CONFIG / "config.yaml").read_text())


def demo() -> dict:
    settings, changes = paper(), yaml.safe_load((CONFIG / "demo.yaml").read_text())
    settings["models"] = changes["models"]
    for section in ("corpus", "sampling", "forward", "measurement", "figures"):
        settings[section] |= changes[section]
    return settings


def refusal(settings: dict, **options) -> str:
    with pytest.raises(InputError) as caught:
        read_configuration(settings, MODELS, papers=PAPERS, **{"has_hub_token": True, **options})
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_every_entry_of_the_model_list_is_valid():
    # But for a folder of one's own, and what is fine-tuned from it.
    entries = read_entries(MODELS)
    local = {name for name, (_, entry) in entries.items() if "path" in entry}
    named = [n for n, (_, e) in entries.items() if e.get("finetuning", {}).get("of") not in local]
    models = read_models(entries, [name for name in named if name not in local])
    assert len(models) > 60
    for model in models.values():
        steps = [checkpoint.step for checkpoint in model.checkpoints]
        assert steps == sorted(steps, key=lambda step: (step is not None, step or 0))


def test_the_paper_draws_every_figure_when_there_is_a_token():
    configuration = read_configuration(paper(), MODELS, papers=PAPERS, has_hub_token=True)
    first = [paper for paper in PAPERS if paper.name == "shape_of_learning"]
    assert set(configuration.figures) == set(figures_of(first))
    assert configuration.notices == ()
    assert configuration.figures["figure_2"] == ("bloom-3b",)
    assert len(configuration.tables["table_1"]) == 6


def test_a_run_has_the_targets_of_the_papers_that_it_chooses():
    first, linear = (
        next(p for p in PAPERS if p.name == n) for n in ("shape_of_learning", "linear")
    )

    def targets(**changes):
        settings = demo() | changes
        configuration = read_configuration(settings, MODELS, papers=PAPERS, has_hub_token=True)
        assert not any("linear" in notice for notice in configuration.notices)
        return {*configuration.figures, *configuration.tables}

    assert targets(papers=["linear"]) == set(linear.figures) - PUBLISHED
    assert targets(papers=["shape_of_learning"]) == {*first.figures, *first.tables} - PUBLISHED
    assert targets(papers=[]) == set()
    # Models that are for single figures are in none that the configuration does not name.
    apart = {name: demo()["figures"][name] for name in ("linear_figure_4", "linear_table_1")}
    settings = {"average_over": "block_outputs", "progress": "auto", "measures": {}}
    named = {**settings, "linear_first_token": "all", **apart}
    assert targets(figures=named) == set(linear.figures) - PUBLISHED
    said = refusal(demo() | {"papers": ["lineal"]})
    assert "key `papers`: unknown paper `lineal`; did you mean `linear`?" in said


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
    assert set(configuration.figures) == {"figure_1", "anisotropy_measures", "dimension_by_scale"}
    left_out = [notice.split()[0] for notice in configuration.notices]
    assert left_out == [
        *("figure_2", "figure_3", "figure_4", "figure_5"),
        *("dimension_by_layer_and_step", "heat_map", "overview", "loss_by_step", "table_1"),
    ]


def test_a_figure_of_one_model_that_nobody_named_is_refused_in_words_of_its_own():
    settings = demo() | {"papers": ["inherent"]}
    del settings["figures"]["inherent_figure_5"]
    assert refusal(settings, has_hub_token=False).startswith(
        "inherent_figure_5 has room for 1 of the 2 models that it can draw; say which in configuration "
        "key `figures.inherent_figure_5`, such as [demo-decoder]"
    )


def test_a_page_has_room_for_the_changed_blocks_of_six_models():
    seven = ["gpt2", "gpt2-large", "gpt2-xl", "opt-125m", "opt-1.3b", "pythia-70m", "bloom-560m"]
    for figure in ("linear_figure_6", "linear_figure_9"):
        figures = {"linear_figure_6": [], "linear_figure_9": [], figure: "all"}
        settings = paper() | {"models": seven, "papers": ["linear"]}
        settings["figures"] = paper()["figures"] | figures
        assert "names 7 models, but has room for 6" in refusal(settings, has_hub_token=True)


def test_what_drawn_figures_ask_for_is_measured_and_nothing_else():
    settings = paper() | {"models": ["gpt2"]}
    settings["measurement"]["estimators"] = ["mle"]
    settings["figures"] |= {"anisotropy_measures": [], "dimension_by_scale": []}
    configuration = read_configuration(settings, MODELS, papers=PAPERS, has_hub_token=True)
    assert configuration.estimators == ("mle",)
    assert set(configuration.measures) == {"mle", "anisotropy"}
    settings["figures"]["dimension_by_scale"] = ["gpt2"]
    configuration = read_configuration(settings, MODELS, papers=PAPERS, has_hub_token=True)
    gride = {f"gride_{n1}" for n1 in (1, 2, 4, 8, 16, 32, 64)}
    assert set(configuration.measures) == {"mle", "anisotropy", *gride}


def test_the_demo_draws_every_figure():
    configuration = read_configuration(demo(), MODELS, papers=PAPERS, has_hub_token=False)
    assert set(configuration.figures) == set(figures_of(PAPERS)) - PUBLISHED
    assert configuration.tables == {
        "table_1": ("demo-decoder", "demo-encoder"),
        "finetuning_table_1": ("demo-encoder-topic",),
    }


def test_published_values_are_shown_of_the_models_that_have_some():
    settings = demo() | {"models": ["gpt2", "opt-125m"], "papers": ["shape_of_learning"]}
    settings["measurement"]["for_figures_only"] = []
    settings["figures"] = {
        key: settings["figures"][key] for key in ("average_over", "progress", "measures")
    }
    configuration = read_configuration(settings, MODELS, papers=PAPERS, has_hub_token=False)
    assert configuration.figures["published_values"] == ("opt-125m",)
    settings["figures"] |= {"published_values": ["gpt2"]}
    configuration = read_configuration(settings, MODELS, papers=PAPERS, has_hub_token=False)
    assert any(said.startswith("published_values is left out") for said in configuration.notices)


def test_figures_of_twins_and_of_fine_tunings_draw_no_others():
    settings = demo()
    settings["measurement"]["for_figures_only"] = []
    settings["figures"] |= dict.fromkeys(("linear_figure_4", "finetuning_figure_1"), "all")
    configuration = read_configuration(settings, MODELS, papers=PAPERS, has_hub_token=False)
    assert configuration.figures["linear_figure_4"] == ("demo-decoder", "demo-twin")
    assert configuration.figures["finetuning_figure_1"] == (
        "demo-encoder-topic",
        "demo-decoder-topic",
    )
    settings["models"] = ["demo-decoder", "demo-encoder"]
    configuration = read_configuration(settings, MODELS, papers=PAPERS, has_hub_token=False)
    undrawn = {*figures_of(PAPERS)} - {*configuration.figures} - PUBLISHED
    assert {"linear_figure_4", "linear_table_1", "finetuning_figure_1"} <= undrawn
    assert len(configuration.notices) == len(undrawn) + 1  # and finetuning_table_1


def test_a_fine_tuning_of_code_from_the_hub_is_left_out(tmp_path):
    settings = demo() | {"models": ["demo-encoder", "mine"]}
    tuning = {"task": "topic", "learning_rate": 0.1, "batch_size": 4, "epochs": 1, "seed": 0}
    entries = {
        "mine": {"finetuning": {"of": "code", **tuning, "threads": 1}},
        "code": {"repository": "a/b", "needs_code": True},
    }
    (tmp_path / "models.yaml").write_text(yaml.safe_dump(entries))
    folders = (MODELS, tmp_path)
    configuration = read_configuration(settings, *folders, papers=PAPERS, has_hub_token=False)
    assert set(configuration.models) == {"demo-encoder"}
    assert any("rests on `code`, whose architecture" in n for n in configuration.notices)


def test_a_missing_key_is_one_sentence():
    settings = deepcopy(paper())
    del settings["sampling"]["windows"]
    assert "key `sampling.windows` is missing" in refusal(settings)


@pytest.mark.parametrize(
    "revision", ["main", "refs/pr/1", "step-5k", "v1.0", "a$(b)", "it's", "ü{x}", "0" * 40]
)
def test_whatever_git_takes_for_a_revision_is_taken(tmp_path, revision):
    (tmp_path / "mine.yaml").write_text(f'mine: {{repository: a/b, revision: "{revision}"}}\n')
    (checkpoint,) = read_models(read_entries(tmp_path), ["mine"])["mine"].checkpoints
    assert checkpoint.revision == revision


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


def test_training_steps_become_revisions_and_tokens():
    models = read_models(read_entries(MODELS), ["pythia-2.8b", "tinyllama-1.1b"])
    (step,) = (each for each in models["pythia-2.8b"].checkpoints if each.step == 66_000)
    assert (step.revision, step.step, step.tokens) == ("step66000", 66_000, 138_412_032_000)
    last = models["tinyllama-1.1b"].checkpoints[-1]
    assert last.repository == "TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T"
    assert (last.revision, last.name) == ("main", "step-1431k-token-3000B")


def test_figures_name_families_together_and_smaller_models_first():
    names = ["opt-13b", "gpt2", "opt-125m", "gpt2-xl", "llama-2-13b", "llama-2-7b", "opt-2.7b"]
    models = read_models(read_entries(MODELS), names)
    ordered = [model.name for model in by_family_and_size(models.values())]
    opt, llama = ["opt-125m", "opt-2.7b", "opt-13b"], ["llama-2-7b", "llama-2-13b"]
    assert ordered == [*opt, "gpt2", "gpt2-xl", *llama]


def test_the_configuration_chooses_the_measures_of_figures_that_take_any():
    settings = paper()
    settings["measurement"]["estimators"] = ["mle", "matrix_partition_isotropy"]
    settings["figures"]["measures"] = {"heat_map": ["rankme"]}
    configuration = read_configuration(settings, MODELS, papers=PAPERS, has_hub_token=True)
    drawn = with_chosen_measures(figures_of(PAPERS), settings)
    assert drawn["heat_map"].estimators == ("rankme",)
    assert drawn["overview"].estimators == ("mle",)
    assert drawn["figure_1"].estimators == ("anisotropy",)
    assert "rankme" in configuration.measures


def test_a_recipe_of_the_configuration_replaces_that_of_every_entry():
    large = yaml.safe_load((CONFIG / "showcase_large.yaml").read_text())["pretraining"]
    given = yaml.safe_load((CONFIG / "showcase.yaml").read_text())
    size = {name: large[name] for name in ("layers", "hidden_size")}

    def models(recipe: dict) -> dict:
        settings = with_defaults({**given, "pretraining": recipe}, CONFIG / "config.yaml")
        return read_configuration(settings, MODELS, papers=PAPERS, has_hub_token=False).models

    entries = {name: entry for name, (_, entry) in read_entries(MODELS).items()}
    as_written, larger = models({}), models(large)
    for name, model in larger.items():
        assert {key: getattr(model.shape, key) for key in size} == size
        if "finetuning" in entries[name]:
            assert model.source.revision == f"step{large['last_step']}"
            continue
        recipe = entries[name]["pretraining"]
        replaced = {key: value for key, value in large.items() if key not in size}
        assert model.source.recipe == {**recipe, **replaced}
        assert model.last_step == large["last_step"]
        assert model.table_1["vocabulary"] == large["vocabulary"]
        assert model.table_1["training_tokens"] == large["last_step"] * 32 * 512
        assert model.source.arguments["hidden_size"] == 512
        written = {**{key: entries[name][key] for key in size}, **recipe}
        assert as_written[name].source.arguments == written


def test_a_stated_table_1_does_not_stand_for_another_recipe(tmp_path):
    _, entry = read_entries(MODELS)["demo-decoder"]
    columns = ("attention_heads", "vocabulary", "batch_size", "learning_rate", "training_tokens")
    stated = dict.fromkeys(columns, 1)
    (tmp_path / "mine.yaml").write_text(json.dumps({"mine": {**entry, "table_1": stated}}))

    def table_1(recipe: dict) -> dict:
        settings = paper() | {"models": ["mine"], "pretraining": recipe}
        settings["figures"]["figure_1"] = ["mine"]
        read = read_configuration(settings, MODELS, tmp_path, papers=PAPERS, has_hub_token=False)
        return read.models["mine"].table_1

    assert table_1({}) == stated
    assert (
        table_1({"batch_size": 2})["training_tokens"] == 128 * 2 * entry["pretraining"]["context"]
    )


@pytest.mark.parametrize(
    ("measures", "said"),
    [
        ({"heat_map": ["rankmi"]}, "unknown estimator `rankmi`; did you mean `rankme`?"),
        ({"heatmap": ["rankme"]}, "unknown figure `heatmap`; did you mean `heat_map`?"),
        ({"figure_1": ["rankme"]}, "unknown figure `figure_1`"),
        ({"overview": ["bias_length"]}, "`bias_length`, which is no measure of layers; remove it"),
    ],
)
def test_measures_that_a_figure_cannot_draw_are_refused(measures, said):
    settings = paper()
    settings["figures"]["measures"] = measures
    assert said in refusal(settings)
