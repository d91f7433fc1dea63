"""Wrong configurations are refused before any job, in one sentence that names the key and the remedy."""

import datetime
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from made_claims import CLAIM
from plans import MODELS, PLAIN, RECIPE, SIZE, catch_refusal, make_finetuning, make_run, make_twin
from shape_of_learning.errors import InputError
from shape_of_learning.metrics.registry import MEASURES
from shape_of_learning.plan.entries import read_entries
from shape_of_learning.plan.jobs import format_opening, make_figure_job
from shape_of_learning.plan.papers import check_names, read_papers

NAME = "must be up to 100 letters, digits"
REVISION = "must be a branch, tag or commit as git names them"

# Changes of the demo's configuration, as YAML, and a part of the sentence that refuses them.
CONFIGURATIONS = {
    # keys
    "seeed: 1": "configuration: unknown key `seeed`; did you mean `seed`?",
    "sampling: {window: 3}": "unknown key `window` in `sampling`; did you mean `windows`?",
    "figures: {figure_6: all}": "unknown key `figure_6`; did you mean `figure_",
    # types
    "sampling: {windows: '8'}": "is '8': input should be a valid integer; remove the quotes",
    "models: gpt2": "`models` is 'gpt2': input should be a valid list; write [gpt2]",
    "sampling: {vectors_per_dimension: .nan}": "is nan: input should be a finite number",
    # ranges
    "seed: -1": "`seed` is -1: input should be greater than or equal to 0",
    "forward: {precision: float8}": "input should be 'float32', 'bfloat16' or 'float16'",
    "models: []": "`models` is []: value should have at least 1 item",
    "models: [gpt2, gpt2]": "`models` names 'gpt2' twice; remove one",
    "sampling: {windows: 1e3}": "is '1e3': input should be a valid integer; write it without an exp",
    "sampling: {vectors_per_dimension: 1e999}": "is inf: input should be a finite number",
    "measurement: {parameters: {two_nn: {kept: .nan}}}": "two_nn.kept` is nan, but must be a number",
    "measurement: {parameters: {alpha_req: {first: 40, last: 11}}}": (
        "`last` is 11, but must be above `first`, which is 40"
    ),
    # contradictions
    "embeddings: {dump: false, keep: true}": "`embeddings` has `keep: true`, but with `dump: false`",
    "measurement: {batch_vectors: 100}": "has batches of 100 vectors",
    "choices: {batch_share: [0.01]}": "`choices.batch_share` has 0.01",
    "choices: {estimators: {dimension: [mada: {k: many}]}}": "mada.k` is 'many', but must be a whole",
    "tasks: {sst2: {hub: {split: {held_out: train}}}}": "`tasks.sst2.hub.split` names `train` twice",
    # names
    'models: ["x$(touch F)"]': f"`models.0` {NAME}",
    "run: a/b": "`run` must be a name of up to 100 letters",
    "run: Figures": "has `run: Figures`",
    # unknown names
    "models: [gtp2]": "unknown model `gtp2`; did you mean `gpt2`?",
    "training_steps: {gpt2: log}": "has no `training.steps`",
    "corpus: {source: enwik9}": "unknown source `enwik9`; did you mean `enwik8`?",
    "measurement: {estimators: [twonn]}": "unknown estimator `twonn`; did you mean",
    "measurement: {parameters: {two_nn: {keep: 1}}}": "did you mean `kept`",
    # models that a figure cannot show
    "{models: [bloom-560m, bloom-1b1, bloom-3b, bloom-7b1], figures: {figure_2: all}}": "has room for 3",
    "forward: {last_layer: after_final_norm}": "`forward.last_layer` is `after_final_norm`",
}

# Entries named `mine`, and a part of the sentence that refuses them.
HUB = {"repository": "a/b"}


def make_report(**report) -> dict:
    reports = [{"source": "x", **report}]
    return {**HUB, "training": {"revision": "s{step}", "steps": [1], "known_bad": reports}}


ENTRIES = [
    (None, "the entry is None: input should be a valid dictionary"),
    ({"role": "decoder"}, "needs exactly one of `repository` or `path` or `pretraining` or"),
    ({**HUB, "layers": 10**9}, "`layers` is 1000000000: input should be less than or equal to 10000"),
    ({**HUB, "label": "-a"}, "`label` must be 1 to 60 Latin, Greek or Cyrillic letters"),
    *(
        ({**HUB, "revision": name}, f"`revision` {REVISION}")
        for name in ("a/../b", "/etc", "--x", "a b", "main\n", "main~1", "a.lock", "")
    ),
    ({**HUB, "subfolder": "a/../../b"}, "`subfolder` must be a folder inside"),
    ({"repository": "../b"}, "`repository` must be `organisation/name`"),
    ({**HUB, "label": datetime.date(2026, 1, 1)}, "1 to 60 Latin, Greek or Cyrillic letters"),
    ({**HUB, "seeds": [1, 2], "training": [1]}, "`seeds` must be a list of two or more different whole"),
    ({"path": "package:__main__/x"}, "there is no package `__main__`"),
    ({"path": "~nobody-is-called-so/x"}, "~nobody-is-called-so/x/config.json is missing"),
    ({"path": "nowhere"}, "nowhere/config.json is missing"),
    ({"path": "x", "training": {"tokens_per_step": 3}}, "needs `training.steps`"),
    ({**HUB, "training": {"steps": [1]}}, "has one of `training.steps` and `training.revision`"),
    ({**HUB, "training": {"revision": "s{stpe}", "steps": [1]}}, "`subfolder` together may have"),
    ({**HUB, "training": {"revision": "s{step}", "steps": [1, 1]}}, "`training.steps` must be `all`"),
    ({**HUB, "training": {"revision": "s{step}", "steps": [2], "last_step": 1}}, "step 2"),
    (
        {**HUB, "training": {"checkpoints": [{"step": 1, "revision": name} for name in "mn"]}},
        "two checkpoints have the step `1`",
    ),
    (make_report(steps=[1, 2], same_as=2), "step 2 has the weights of itself"),
    (make_report(steps={"from": 9, "to": 1}, because="x"), "`from` is above `to`; exchange them"),
    (make_report(steps=[1]), "needs exactly one of `because` or `same_as`"),
    ({**PLAIN, "hidden_size": 9}, "cannot be shared by 2 `pretraining.attention_heads`"),
    ({**SIZE, "pretraining": {**RECIPE, "warmup_steps": 10}}, "but there are only 10 steps"),
    ({**SIZE, "role": "encoder", "pretraining": RECIPE}, "the role `decoder`"),
    ({**SIZE, "pretraining": {**RECIPE, "architecture": "bert"}}, "the role `encoder`"),
    ({**PLAIN, "training": {"steps": [0, 3]}}, "asks for 3, but the recipe saves only the steps 0, 1,"),
    ({**PLAIN, "training": {"steps": "all", "last_step": 4}}, "`training.last_step`"),
    (make_twin(twin_of="plane"), "`pretraining.twin_of`: unknown model `plane`; did you mean `plain`?"),
    (make_twin(batch_size=4), "whose `batch_size` differs"),
    (make_twin(twin_of="a-twin"), "`pretraining.twin_of` is `a-twin`"),
    ({**SIZE, "pretraining": {**RECIPE, "twin_of": "plain"}}, "this would be the same model"),
    (make_finetuning("plane"), "`finetuning.of`: unknown model `plane`; did you mean `plain`"),
    (make_finetuning("plain@step9"), "unknown revision of model `plain` `step9`; did you mean `step"),
    (make_finetuning("mine"), "leads in a circle, `mine` -> `mine`"),
    ({**make_finetuning("plain"), "layers": 3}, "for `layers`"),
    (make_finetuning("plain", task="topics"), "`finetuning.task`: unknown task `topics`; did you mean `topic`"),
    (make_finetuning("plain", task="mrpc"), "has pairs of texts, but `plain` is a decoder; name a task"),
]  # fmt: skip


@pytest.mark.parametrize("changes", CONFIGURATIONS)
def test_a_bad_configuration_is_refused_in_one_sentence(changes):
    assert CONFIGURATIONS[changes] in catch_refusal(yaml.safe_load(changes))


@pytest.mark.parametrize(("entry", "sentence"), ENTRIES)
def test_a_bad_entry_is_refused_in_one_sentence(tmp_path, entry, sentence):
    entries = {"mine": entry, "plain": PLAIN, "a-twin": make_twin()}
    message = catch_refusal({"models": ["mine"]}, tmp_path, entries)
    assert sentence in message
    assert message.startswith("model `mine`")


@pytest.mark.parametrize("entry", ["empty:", "empty: {repository: org/m, training: }", "empty: 3"])
def test_steps_of_an_entry_without_steps_cannot_be_replaced(tmp_path, entry):
    changes = {"models": ["empty"], "training_steps": {"empty": "all"}}
    assert "has no `training.steps`" in catch_refusal(changes, tmp_path, entry)


def test_numbers_with_an_exponent_are_numbers(tmp_path):
    """The YAML that Snakemake reads takes 1e-4 for text, and 1.0e-4 for a number."""
    recipe = {**RECIPE, "learning_rate": "1e-4"}
    changes = {"models": ["mine"], "sampling": {"vectors_per_dimension": "2E-5"}}
    run = make_run(changes, tmp_path, {"mine": {**SIZE, "pretraining": recipe}})
    assert run.models["mine"].recipe["learning_rate"] == 1e-4
    assert run.settings.sampling.vectors_per_dimension == 2e-5


def test_a_folder_with_too_large_a_step_is_refused(tmp_path):
    folder = tmp_path / "checkpoint-12345678901234567890"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    path = str(tmp_path / "checkpoint-{step}")
    entry = {"path": path, "training": {"steps": "all"}}
    message = catch_refusal({"models": ["mine"]}, tmp_path, {"mine": entry})
    assert f"{folder} is beyond 1e+12" in message


@pytest.mark.parametrize(
    ("entries", "sentence"),
    [
        ("mine: {path: x}\nmine: {path: y}", "mine.yaml, line 2: the key 'mine' occurs twice"),
        ("mine: {path: x", "mine.yaml is not valid YAML in UTF-8"),
        ("mine: {repository: a/b, layers: 012}", "a number that begins with 0"),
    ],
)
def test_an_invalid_file_of_entries_is_refused(tmp_path, entries, sentence):
    assert sentence in catch_refusal({"models": ["mine"]}, tmp_path, entries)


FIGURE = {
    **{"draw": "curve", "estimators": ["mle"], "checkpoints": "last"},
    "caption": "{measures} of {models}.",
}
PAPER = {"title": "A title", "citation": "Nobody", "prefix": "x_", "figures": {"figure_1": FIGURE}}


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("draw", "curv", "unknown function `curv`; did you mean `curve`?"),
        ("draw", "curves.carves", "figures/curves.py: unknown function `carves`"),
        ("checkpoints", "first", "is 'first': input should be 'last', 'all' or 'training'"),
        ("estimator", "mle", "unknown key `estimator` in `figures.figure_1`; did you mean"),
    ],
)
def test_a_wrong_figure_of_a_paper_is_refused_with_its_file(tmp_path, key, value, sentence):
    write_paper(tmp_path, "x", {"figure_1": {**FIGURE, key: value}})
    with pytest.raises(InputError) as refusal:
        read_papers(tmp_path)
    assert sentence in str(refusal.value)
    assert str(refusal.value).startswith(str(tmp_path / "x" / "paper.yaml"))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("{sampling[foo]}", "has 'foo', which is {kind}; correct it in paper.yaml"),
        ("{foo}", "has 'foo', which is {kind}; correct it in paper.yaml"),
        *(
            (words, "write a setting as `{{sampling[windows]}}` in paper.yaml")
            for words in ("{sampling.windows}", "{}", "{", "{seed[0]}", "{sampling[windows]:q}")
        ),
    ],
)
def test_wrong_braces_of_a_paper_are_refused_in_one_sentence(words, sentence):
    run = make_run({})
    target = next(name for name in run.shown_models if name in run.figures)
    figure = run.figures[target].model_copy(update={"caption": words, "sample": words})
    with pytest.raises(InputError) as refusal:
        format_opening(figure, [], [], run.settings)
    kind = "neither a setting of the configuration nor `measures` nor `models`"
    assert str(refusal.value).startswith(f"the caption {words!r} has ")
    assert str(refusal.value).endswith(sentence.format(kind=kind))
    with pytest.raises(InputError) as refusal:
        make_figure_job(replace(run, figures={**run.figures, target: figure}), target)
    kind = "no setting of the configuration"
    assert str(refusal.value).startswith(f"the sample {words!r} has ")
    assert str(refusal.value).endswith(sentence.format(kind=kind))


def test_two_papers_do_not_share_a_target(tmp_path):
    for name in "xy":
        write_paper(tmp_path, name, {"figure_1": FIGURE})
    with pytest.raises(InputError, match=r"`x` and `y` .*`x_figure_1`"):
        read_papers(tmp_path)


def write_paper(folder: Path, name: str, figures: dict, claims: dict | None = None) -> None:
    (folder / name).mkdir()
    (folder / name / "figures.py").write_text("def curve(inputs): ...\n")
    (folder / name / "statistics.py").write_text("def compare(data, estimators, reference): ...\n")
    (folder / name / "claims.yaml").write_text(yaml.safe_dump(claims or {}))
    (folder / name / "paper.yaml").write_text(yaml.safe_dump({**PAPER, "figures": figures}))


WRITTEN = CLAIM | {"supported": {"at_least": 0.95}, "contradicted": {"in": "any", "below": 0.9}}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"statistic": "mean_over_layer"}, "did you mean `mean_over_layers`?"),
        ({"arguments": {"share": 1}}, "gives `share` to `mean_over_layers`, which takes estimators"),
        ({"statistic": "compare"}, "does not give `reference` to `compare`"),
        ({"supported": {"beyond": 0}}, "unknown key `beyond` in `claims.c.supported"),
        ({"supported": {"number": "x"}}, "needs exactly one of `above` or"),
        ({"supported": {"any_of": [{"above": 0}, {"not_below": 0}]}}, "can be met by `not_above` or `not_below` alone"),
        ({"supported": {"any_of": [{"above": 0, "in": 2}, {"below": 0}]}}, "has an `in` within `any_of`"),
        ({"supported": {"number": "x", "all_of": [{"above": 0}, {"below": 1}]}},
         "has a `number` beside criteria that have their own"),
        ({"other_estimators": [["a", "b"]]}, "`robustness` with another number of estimators"),
        ({"seen": {"from": 2}}, "`claims.c.seen.from`"),
        ({"changed": {"yesterday": "x"}}, "`claims.c.changed"),
        ({"models": ["gpt2"], "min_models": 2}, "`claims.c` has `min_models: 2`, but `models` names 1"),
        ({"models": "decoder"}, "`claims.c.models` must be a list of names of models, or one of `decoders`"),
    ],
)  # fmt: skip
def test_a_wrong_claim_is_refused_with_its_file(tmp_path, change, sentence):
    write_paper(tmp_path, "x", {}, {"c": WRITTEN | change})
    with pytest.raises(InputError) as refusal:
        read_papers(tmp_path)
    assert str(refusal.value).startswith(str(tmp_path / "x/claims.yaml"))
    assert sentence in str(refusal.value)


@pytest.mark.parametrize(
    ("figure", "claim", "sentence"),
    [
        ({"estimators": ["linerity"]}, {}, "x/paper.yaml, .*`x_figure_1`: unknown estimator"),
        ({}, {"models": ["gpt-2"]}, "`c`: unknown model `gpt-2`; did you mean `gpt2`?"),
    ],
)
def test_unknown_estimators_and_models_can_be_neither_drawn_nor_claimed(
    tmp_path, figure, claim, sentence
):
    write_paper(tmp_path, "x", {"figure_1": FIGURE | figure}, {"c": WRITTEN | claim})
    with pytest.raises(InputError, match=sentence):
        check_names(*read_papers(tmp_path), MEASURES, read_entries(MODELS))
