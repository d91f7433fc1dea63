"""The plan of a configuration: models, steps, figures, claims and measures."""

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from plans import (
    CONFIG,
    MODELS,
    PAPERS,
    PLAIN,
    REPOSITORY,
    catch_refusal,
    make_finetuning,
    make_run,
)
from shape_of_learning.checkpoints.lock import Listing, Lock, LockedRevision, write_lock
from shape_of_learning.checkpoints.shapes import Shape
from shape_of_learning.errors import InputError
from shape_of_learning.files import read_yaml
from shape_of_learning.plan import jobs as plan_jobs
from shape_of_learning.plan.entries import Entry, expand_seeds, read_entries, read_models
from shape_of_learning.plan.papers import collect_figures
from shape_of_learning.plan.run import Run, add_defaults, read_run
from shape_of_learning.plan.settings import RESERVED_RUN_NAMES, Settings
from shape_of_learning.plan.steps import RevisionTemplate, choose

PYTHIA = [0, *(2**i for i in range(10)), *range(1000, 143001, 1000)]


def read_paper_settings(**changes: object) -> dict:
    return read_yaml(CONFIG / "config.yaml") | changes


def plan_run(settings: dict, *folders: Path, token: bool = True, say=print):
    options = {"say": say, "is_closed": lambda model: not token}
    return read_run(settings, MODELS, *folders, papers=PAPERS, **options)


# --- settings ---------------------------------------------------------------------------------------


def test_the_configuration_that_users_copy_has_the_defaults():
    settings = read_paper_settings()
    keys_without_defaults = {
        **{
            "models": settings["models"],
            "tasks": settings["tasks"],
            "figures": settings["figures"],
        },
        "corpus": {"sources": settings["corpus"]["sources"]},
        "choices": {"estimators": settings["choices"]["estimators"]},
    }
    assert Settings.model_validate(keys_without_defaults) == Settings.model_validate(settings)
    assert {*settings} == {*Settings.model_fields}


def test_sections_are_merged_and_lists_replaced():
    changes = {"sampling": {"windows": 3}, "models": ["gpt2"], "tasks": {"x": {"builtin": "topic"}}}
    settings = add_defaults(changes, CONFIG / "config.yaml")
    defaults = {"window_characters": 512, "vectors_per_dimension": 0}
    assert settings["sampling"] == {"windows": 3, **defaults}
    assert settings["models"] == ["gpt2"]
    assert {"x", "sst2"} < {*settings["tasks"]}


def test_names_of_result_folders_are_reserved():
    rules = "".join(file.read_text() for file in (REPOSITORY / "workflow").rglob("*.smk"))
    top_names = {path.split("/")[0] for path in rules.split("<results>/")[1:] if "/" in path}
    folders = {name for name in top_names if name.isidentifier()}
    assert folders >= {"figures", "tables", "embeddings"}
    assert folders <= RESERVED_RUN_NAMES


# --- models -----------------------------------------------------------------------------------------


def read_entry(folder: Path, name: str, **entries: dict) -> Entry:
    (folder / "models.yaml").write_text(yaml.safe_dump({"plain": PLAIN, **entries}))
    return read_models(read_entries(folder), [name])[name]


def list_steps(model: Entry) -> list[int | None]:
    return [checkpoint.step for checkpoint in model.checkpoints]


def test_every_entry_of_the_model_list_is_valid():
    # The entry of a user's folder, and models fine-tuned from it, need that folder.
    entries, _ = expand_seeds(read_entries(MODELS), {})
    local_names = {name for name, (_, entry) in entries.items() if "path" in entry}
    names = [
        n for n, (_, e) in entries.items() if e.get("finetuning", {}).get("of") not in local_names
    ]
    models = read_models(entries, [name for name in names if name not in local_names])
    assert len(models) > 200
    for model in models.values():
        steps = list_steps(model)
        assert steps == sorted(steps, key=lambda step: (step is not None, step or 0))


def test_training_steps_become_revisions_and_tokens():
    models = read_models(read_entries(MODELS), ["pythia-2.8b", "tinyllama-1.1b"])
    (step,) = (
        checkpoint for checkpoint in models["pythia-2.8b"].checkpoints if checkpoint.step == 66_000
    )
    assert (step.revision, step.step, step.tokens) == ("step66000", 66_000, 138_412_032_000)
    last = models["tinyllama-1.1b"].checkpoints[-1]
    assert last.repository == "TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T"
    assert (last.revision, last.name) == ("main", "step-1431k-token-3000B")


def test_a_fine_tuning_has_the_shape_of_its_origin_and_log_spaced_checkpoints(tmp_path):
    model = read_entry(tmp_path, "mine", mine=make_finetuning("plain"))
    assert list_steps(model) == [0, 1, 2, 4, 8, 16, 32, 48]
    assert model.shape == Shape("decoder", 2, 32, 32)
    assert model.origin_revision == "step10"
    ends = read_entry(
        tmp_path, "mine", mine={**make_finetuning("plain"), "training": {"steps": {"linear": 2}}}
    )
    assert list_steps(ends) == [0, 48]
    later = read_entry(
        tmp_path, "b", a=make_finetuning("plain@step1"), b=make_finetuning("a", seed=1)
    )
    assert (later.origin_revision, later.origin.origin_revision) == ("step48", "step1")


# --- folders of one's own ---------------------------------------------------------------------------

STEPS = (100, 200, 300, 500, 1000, 2000)


def save_checkpoint(folder: Path, **changes: object) -> None:
    folder.mkdir(parents=True)
    config = {"model_type": "gpt_neox", "num_hidden_layers": 3, "hidden_size": 32}
    (folder / "config.json").write_text(json.dumps(config | changes))
    (folder / "tokenizer.json").write_text("{}")


@pytest.fixture
def run(tmp_path, monkeypatch) -> Path:
    """A folder in the working directory, as a Trainer leaves it."""
    for step in STEPS:
        save_checkpoint(tmp_path / "run" / f"checkpoint-{step}")
    (tmp_path / "run" / "checkpoint-3000").mkdir()  # a save that was cut off
    save_checkpoint(tmp_path / "run" / "xcheckpoint-7")
    (tmp_path / "run" / "checkpoint-8").write_text("a file")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "run"


def read_local_entry(
    path: str = "run/checkpoint-{step}", steps: object = "all", **entry: object
) -> Entry:
    Path("models").mkdir(exist_ok=True)
    return read_entry(
        Path("models"), "mine", mine={"path": path, "training": {"steps": steps}, **entry}
    )


@pytest.mark.parametrize(
    ("steps", "expected_steps"),
    [("all", list(STEPS)), ([2000, 100], [100, 2000]), ({"log": 3}, [100, 500, 2000])],
)
def test_steps_are_chosen_among_folders_with_a_checkpoint(run, steps, expected_steps):
    model = read_local_entry(steps=steps)
    assert list_steps(model) == expected_steps
    assert [checkpoint.path for checkpoint in model.checkpoints] == [
        f"run/checkpoint-{n}" for n in expected_steps
    ]
    assert (model.shape, model.last_step) == (Shape("decoder", 3, 32, 32), 2000)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"steps": [100, 350]}, "asks for 350, but like run/checkpoint-{step} there are only"),
        ({"path": "nowhere/{step}"}, "no folder like nowhere/{step} holds a config.json"),
        ({"path": "run/checkpoint-500"}, "with one `{step}`"),
        ({"layers": 4}, "says 3 where the entry says 4"),
    ],
)
def test_folders_that_contradict_their_entry_are_refused(run, changes, sentence):
    with pytest.raises(InputError) as error:
        read_local_entry(**changes)
    assert sentence in str(error.value)


def test_a_tokenizer_may_lie_elsewhere_and_a_missing_one_is_refused_before_any_job(run):
    for step in STEPS:
        (run / f"checkpoint-{step}/tokenizer.json").unlink()
    with pytest.raises(InputError, match="has no tokenizer"):
        read_local_entry()
    save_checkpoint(run / "words")
    assert read_local_entry(tokenizer="run/words").tokenizer == "run/words"
    with pytest.raises(InputError, match="elsewhere has no tokenizer"):
        read_local_entry(tokenizer="elsewhere")


def test_a_folder_may_be_in_the_home_or_in_a_package(run, monkeypatch):
    monkeypatch.setenv("HOME", str(run))
    path = read_local_entry("~/checkpoint-{step}").checkpoints[0].path
    assert path == str(run / "checkpoint-100")
    save_checkpoint(run / "a_package/inside")
    (run / "a_package/__init__.py").touch()
    monkeypatch.syspath_prepend(str(run))
    Path("models").mkdir(exist_ok=True)
    model = read_entry(Path("models"), "mine", mine={"path": "package:a_package/inside"})
    assert model.checkpoints[0].path == str(run / "a_package/inside")
    assert model.shape.layers == 3
    with pytest.raises(InputError, match="no package `missing`"):
        read_entry(Path("models"), "mine", mine={"path": "package:missing/inside"})


@pytest.mark.parametrize(
    ("name", "message"),
    [("0500", "are both step 500"), ("50", "checkpoint-50 says"), (f"{2**63}", r"beyond 1e\+12")],
)
def test_two_folders_of_one_step_and_steps_of_two_trainings_are_refused(run, name, message):
    save_checkpoint(run / f"checkpoint-{name}", hidden_size=64)
    with pytest.raises(InputError, match=message):
        read_local_entry()


# --- steps ------------------------------------------------------------------------------------------


@given(
    st.lists(st.integers(0, 10**6), min_size=1, unique=True),
    st.sampled_from(["log", {"log": 5}, {"linear": 7}]),
)
def test_a_rule_chooses_different_offered_steps_and_both_ends(offered_steps, rule):
    # One step per doubling of the steps that Pythia offers.
    steps = ["1000", "2000", "4000", "8000", "16000", "33000", "66000", "131000", "143000"]
    assert choose("log", PYTHIA) == [0, *(2**i for i in range(10)), *map(int, steps)]
    chosen_steps = choose(rule, offered_steps)
    assert set(chosen_steps) <= set(offered_steps)
    assert chosen_steps == sorted(set(chosen_steps))
    assert {min(offered_steps), max(offered_steps)} <= set(chosen_steps)
    assert rule == "log" or len(chosen_steps) <= max(2, *rule.values())


@pytest.mark.parametrize(
    ("pattern", "name", "step_and_tokens"),
    [
        ("step{step}", "step1000", (1000, None)),
        ("step-{kilosteps}k-token-{gigatokens}B", "step-240k-token-503B", (240_000, 503 * 10**9)),
        ("stage1-step{step}-tokens{gigatokens}B", "stage1-step1000-tokens3B", (1000, 3 * 10**9)),
        ("step{step}", "laststep1", None),
    ],
)
def test_step_and_tokens_are_read_from_a_name(pattern, name, step_and_tokens):
    assert RevisionTemplate(pattern).read(name) == step_and_tokens


# --- figures and claims -----------------------------------------------------------------------------


# The demo pretrains no encoder and fine-tunes no decoder.
DEMO_FIGURES = read_yaml(CONFIG / "demo.yaml")["figures"]
FIGURES_WITHOUT_MODELS = {name for name, models in DEMO_FIGURES.items() if models == []}


def test_the_paper_and_the_demo_draw_every_figure():
    run = plan_run(read_paper_settings())
    (first,) = (paper for paper in PAPERS if paper.name == "shape_of_learning")
    assert {*run.shown_models} & {*run.figures} == set(first.figures)
    assert run.notices == []
    demo = make_run({})
    undrawn_figures = {"phases_figure_1"}  # the demo has too few windows for one vector of each
    assert {*demo.shown_models} & {*demo.figures} == {
        *collect_figures(PAPERS)
    } - FIGURES_WITHOUT_MODELS - undrawn_figures


def test_a_run_has_the_targets_of_its_papers():
    for paper in PAPERS:
        shown_models = make_run({"papers": [paper.name]}).shown_models
        assert {*shown_models} == {*paper.figures, *paper.tables} - FIGURES_WITHOUT_MODELS
    assert make_run({"papers": []}).shown_models == {}


def test_gated_models_are_left_out_and_named_without_a_token():
    run = plan_run(read_paper_settings(), token=False)
    assert not any(name.startswith("llama-2") for name in run.models)
    assert sum("is gated" in str(notice) for notice in run.notices) == 3


def test_a_fine_tuning_of_a_gated_model_is_left_out(tmp_path):
    entries = {"mine": make_finetuning("closed"), "closed": {"repository": "a/b", "gated": True}}
    run = make_run({"models": ["minilm-l6", "mine"]}, tmp_path, entries)
    assert set(run.models) == {"minilm-l6"}
    sentence = "rests on `closed`, which is gated, and left out"
    assert any(sentence in str(notice) for notice in run.notices)


def test_a_model_that_its_lock_calls_a_decoder_is_not_tuned_on_pairs(tmp_path):
    listing_fields = {
        "commit": "a" * 40,
        "files": {"model.safetensors": {"bytes": 7, "hash": f"git:{'a' * 40}"}},
    }
    revision = LockedRevision(repository="a/b", revision="main", **listing_fields)
    lock = Lock(
        shape=Shape("decoder", 2, 32, 32),
        revisions={"main": revision},
        mains={"a/b": Listing(**listing_fields)},
    )
    write_lock(tmp_path / "far.yaml", lock)
    (tmp_path / "models").mkdir()
    entries = {"mine": make_finetuning("far", task="mrpc"), "far": {"repository": "a/b"}}
    sentence = catch_refusal({"models": ["mine"]}, tmp_path / "models", entries, locks=tmp_path)
    assert "has pairs of texts, but `far` is a decoder" in sentence


def test_all_figures_that_can_draw_one_model_do_and_a_note_names_the_others():
    notes = []
    run = plan_run(read_paper_settings(models=["gpt2"]), say=notes.append)
    (first,) = (paper for paper in PAPERS if paper.name == "shape_of_learning")
    drawable_figures = {
        name for name, figure in first.figures.items() if figure.checkpoints != "training"
    }
    assert set(run.shown_models) == drawable_figures
    assert {"overview", "heat_map", "dimension_by_depth"} <= drawable_figures
    (note,) = notes
    assert all(name in note for name in {*first.figures, *first.tables} - drawable_figures)
    # An empty list of models leaves a figure out.
    notes.clear()
    empty = plan_run(
        read_paper_settings(models=["gpt2"], figures={"overview": []}), say=notes.append
    )
    assert "overview" not in empty.shown_models
    assert not any("overview" in line for line in notes)  # the user left it out


def test_a_figure_of_all_measures_draws_the_listed_measures_of_layers():
    settings = read_paper_settings()
    settings["measurement"]["estimators"] = ["mle", "matrix_partition_isotropy"]
    assert list(plan_run(settings).figures["overview"].estimators) == ["mle"]


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.name)
def test_the_configuration_of_a_paper_measures_what_its_claims_need(paper):
    file = CONFIG / f"{paper.name}.yaml"
    settings = read_yaml(file if file.exists() else CONFIG / "config.yaml")
    run = plan_run(add_defaults(settings, CONFIG / "config.yaml"))
    for claim in paper.claims.values():
        assert set(claim.estimators) <= set(run.all_measures)
        claimed_models = [] if isinstance(claim.models, str) else claim.models
        state_measures = [e for e in claim.estimators if e in run.measures]
        # At every checkpoint, or at the last one alone.
        accepted_scopes = {True} if claim.checkpoints == "training" else {True, False}
        measured_models = [
            m
            for m in claimed_models
            if all(run.measurement_scope.get((m, e)) in accepted_scopes for e in state_measures)
        ]
        assert not claimed_models or len(measured_models) >= claim.min_models, claim.name


# --- runs ----------------------------------------------------------------------------------------

DEMO = {
    "demo-decoder": ["step0", "step4", "step16", "step64", "step128"],
    "demo-twin": ["step0", "step128"],
}


@pytest.fixture(scope="module")
def demo() -> Run:
    return make_run({})


def test_listed_estimators_are_measured_at_every_checkpoint_and_others_where_a_figure_needs_them(
    demo,
):
    estimators = read_yaml(CONFIG / "demo.yaml")["measurement"]["estimators"]
    for model, revisions in DEMO.items():
        assert list(demo.list_estimators_by_checkpoint(model)) == revisions
        for revision in revisions:
            assert set(estimators) <= set(demo.list_estimators_by_checkpoint(model)[revision])
    # dimension_by_scale is of each model's last checkpoint.
    assert "gride_64" not in demo.list_estimators_by_checkpoint("demo-decoder")["step64"]
    assert "gride_64" in demo.list_estimators_by_checkpoint("demo-decoder")["step128"]


def test_a_target_of_another_paper_is_refused_with_the_reason():
    paper, other = PAPERS[:2]
    run = make_run({"papers": [paper.name]})
    plan_jobs.require_target(run, next(iter(run.shown_models)))
    target = next(iter(other.figures))
    with pytest.raises(InputError, match=f"{target} belongs to the paper `{other.name}`"):
        plan_jobs.require_target(run, target)


def test_models_without_a_lock_are_planned_as_written_with_one_note(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    place = {"role": "decoder", "layers": 2, "hidden_size": 16}
    entries = {name: {"repository": f"a/{name}", **place} for name in ("one", "two")}
    notes: list[str] = []
    options = {"locks": tmp_path / "locks", "say": notes.append}
    run = make_run({"models": ["one", "two"], "papers": []}, tmp_path, entries, **options)
    assert [run.find_last_checkpoint(name).name for name in entries] == ["main", "main"]
    assert sum("not checked" in line for line in notes) == 1
    with pytest.raises(InputError):
        run.resolve()
    run.write_locks()
    assert not (tmp_path / "locks").exists()
