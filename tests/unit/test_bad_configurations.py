"""What is refused before any job, each in one sentence that names the key and says what to do."""

import json
from pathlib import Path

import pytest
import yaml

from made_claims import CLAIM
from plans import MODELS, PAPERS, PLAIN, RECIPE, SIZE, refusal, tuned, twin
from shape_of_learning.claims.claim import Claim
from shape_of_learning.errors import InputError
from shape_of_learning.metrics.registry import MEASURES
from shape_of_learning.plan.claim_list import check_claims, read_claims
from shape_of_learning.plan.models import read_entries
from shape_of_learning.plan.papers import read_papers

NAME = "must be up to 100 letters, digits"
REVISION = "must be a branch, tag or commit as git names them"

# What is laid over the demo's configuration, as YAML, and the sentence.
CONFIGURATIONS = {
    # keys
    "seeed: 1": "configuration: unknown key `seeed`; did you mean `seed`?",
    "sampling: {window: 3}": "unknown key `window` in `sampling`; did you mean `windows`?",
    "nothing: {}": "unknown key `nothing`; known: run",
    "pretraining: {layer: 3}": "unknown key `layer` in `pretraining`; did you mean `layers`?",
    "tasks: {topic: {metrics: x}}": "unknown key `metrics` in `tasks.topic`; did you mean",
    # types
    "sampling: {windows: many}": "`sampling.windows` is 'many', but must be a whole number",
    "sampling: {windows: '8'}": "is '8', but must be a whole number; leave out quotes",
    "seed: 1.0": "`seed` is 1.0, but must be a whole number",
    "seed: true": "`seed` is True, but must be a whole number",
    "seed:": "`seed` is None, but must be a whole number",
    "sampling: [8]": "`sampling` is [8], but must be a mapping of keys to values",
    "models: gpt2": "`models` is 'gpt2', but must be a list; write [gpt2]",
    "models: [3]": f"`models.0` {NAME}, `.`, `_` and `-`, and begin with a letter or digit, but is 3; put it",
    "embeddings: {dump: 1}": "`embeddings.dump` is 1, but must be true or false",
    "block_editing: {learning_rate: .nan}": "is nan, but must be a finite number",
    # ranges
    "seed: -1": "`seed` is -1, but must be at least 0",
    "sampling: {windows: 0}": "`sampling.windows` is 0, but must be at least 1",
    "block_editing: {learning_rate: 0}": "is 0, but must be above 0",
    "choices: {batch_share: [2]}": "`choices.batch_share.0` is 2, but must be at most 1",
    "forward: {precision: float8}": "must be one of `float32`, `bfloat16`, `float16`",
    "forward: {batch_size: all}": "`forward.batch_size` must be `auto` or a whole number of windows",
    "models: []": "`models`: the list is empty; name at least one",
    "models: [gpt2, gpt2]": "`models` names 'gpt2' twice; remove one",
    # what contradicts itself
    "embeddings: {dump: false, keep: true}": "`embeddings` has `keep: true`, but with `dump: false`",
    "measurement: {batch_vectors: 100}": "has batches of 100 vectors",
    "block_editing: {distillation_windows: 65}": "draws 65 windows for an update",
    "choices: {batch_share: [0.01]}": "`choices.batch_share` has 0.01",
    "tasks: {x: {}}": "`tasks.x` needs exactly one of `builtin` or `hub`",
    "tasks: {sst2: {hub: {split: {held_out: train}}}}": "`tasks.sst2.hub.split` names `train` twice",
    "tasks: {sst2: {hub: {revision: main}}}": "`tasks.sst2.hub.revision` must be a commit",
    "corpus: {sources: {x: {format: text}}}": "needs exactly one of `urls` or `builtin`",
    "corpus: {sources: {x: {urls: [x]}}}": "key `corpus.sources.x.format` is missing; add it",
    # names
    "models: ['../gpt2']": f"`models.0` {NAME}",
    'models: ["gpt2\\n"]': f"`models.0` {NAME}",
    'models: ["x$(touch F)"]': f"`models.0` {NAME}",
    "run: a/b": "`run` must be a name of up to 100 letters",
    "run: explorer.html": "`run` must be a name of up to 100 letters",
    "run: 3": "`run` must be a name of up to 100 letters",
    "run: Figures": "has `run: Figures`, but results/Figures is there for something else",
    # what there is not
    "models: [gtp2]": "unknown model `gtp2`; did you mean `gpt2`?",
    "training_steps: {nobody: log}": "unknown model `nobody`",
    "training_steps: {gpt2: log}": "has no `training.steps`",
    "corpus: {source: enwik9}": "unknown source `enwik9`; did you mean `enwik8`?",
    "papers: [linar]": "key `papers`: unknown paper `linar`; did you mean `linear`",
    "figures: {figure_6: all}": "unknown key `figure_6`; did you mean `figure_",
    "figures: {figure_1: [gtp2]}": "unknown model `gtp2`",
    "figures: {figure_1: some}": "`figures.figure_1` must be `all` or a list of model names",
    "figures: {measures: {figure_1: [two_nn]}}": "unknown figure `figure_1`",
    "figures: {measures: {heat_map: [bias_length]}}": "which is no measure of layers; remove it",
    "measurement: {estimators: [twonn]}": "unknown estimator `twonn`; did you mean",
    "measurement: {parameters: {two_nn: {keep: 1}}}": "did you mean `kept`",
    "measurement: {parameters: {two_nn: {kept: 2}}}": "measurement.parameters.two_nn.kept` is 2",
    "choices: {text: [enwik]}": "unknown text `enwik`; did you mean",
    "choices: {estimators: {dimension: [two_n]}}": "unknown estimator `two_n`; did you mean `two_nn`?",
    # models that a figure cannot show
    "{models: [bloom-560m, bloom-1b1, bloom-3b, bloom-7b1], figures: {figure_2: all}}": "has room for 3",
    "figures: {finetuning_figure_2: [demo-encoder]}": "names `demo-encoder`, which has no `finetuning`",
    "training_steps: {demo-encoder-topic: [32]}": "of which steps 0 and 32, the first and the last one,",
    "figures: {linear_figure_9: [demo-encoder]}": "but decoders alone can be drawn there; remove it",
    "forward: {last_layer: after_final_norm}": "takes the last layer before the final norm",
    "{models: [demo-decoder, llama-2-7b], gated_models: fail}": "`llama-2-7b` is gated and no Hugging",
    "pretraining: {attention_heads: 3}": "with configuration key `pretraining`: `hidden_size` 128 cannot",
}

# An entry `mine`, and the sentence.
HUB = {"repository": "a/b"}
ENTRIES = [
    (None, "is None, but must be a mapping"),
    ({"role": "decoder"}, "needs exactly one of `repository` or `path` or `pretraining` or"),
    ({**HUB, "path": "x"}, "needs exactly one of `repository` or `path`"),
    ({**HUB, "lyers": 3}, "unknown key `lyers`; did you mean `layers`?"),
    ({**HUB, "layers": 10**9}, "`layers` is 1000000000, but must be at most 10000"),
    ({**HUB, "label": "-a"}, "`label` must be 1 to 60 Latin, Greek or Cyrillic letters"),
    ({**HUB, "label": 3}, "but is 3; put it in quotes"),
    *(
        ({**HUB, "revision": name}, f"`revision` {REVISION}")
        for name in ("..", "a/../b", "/etc", "--x", "a b", "main\n", "main~1", "a:b", "a.lock", "")
    ),
    ({**HUB, "subfolder": "a/../../b"}, "`subfolder` must be a folder inside"),
    ({"repository": "../b"}, "`repository` must be `organisation/name`"),
    ({"path": "nowhere"}, "there is no config.json"),
    ({"path": "a\0b"}, "`path` must be a folder"),
    ({"path": "x", "training": {"tokens_per_step": 3}}, "needs `training.steps`"),
    ({"path": "x-{step}"}, "add `training: {steps: all}`"),
    ({**HUB, "training": {"steps": [1]}}, "`training.steps` needs `training.revision`"),
    ({**HUB, "training": {"revision": "main", "steps": [1]}}, "write `{step}` into"),
    ({**HUB, "training": {"revision": "s{stpe}", "steps": [1]}}, "`{stpe}` in `training.revision`"),
    ({**HUB, "training": {"revision": "s{step}", "steps": [1, 1]}}, "`training.steps` must be `all`"),
    ({**HUB, "training": {"revision": "s{step}", "steps": [2], "last_step": 1}}, "step 2 is asked for"),
    (
        {**HUB, "training": {"checkpoints": [{"step": n, "revision": "m"} for n in (1, 2)]}},
        "two checkpoints are called `m`",
    ),
    (
        {**HUB, "training": {"checkpoints": [{"step": 1, "revision": name} for name in "mn"]}},
        "two checkpoints are at step 1",
    ),
    *(
        (
            {**HUB, "training": {"revision": "s{step}", "steps": [1], "known_bad": [report]}},
            sentence,
        )
        for report, sentence in (
            ({"steps": [1, 2], "same_as": 2, "source": "x"}, "step 2 has the weights of itself"),
            (
                {"steps": {"from": 9, "to": 1}, "because": "x", "source": "x"},
                "`from` is above `to`; exchange them",
            ),
            ({"steps": [1], "source": "x"}, "needs exactly one of `because` or `same_as`"),
        )
    ),
    ({**PLAIN, "hidden_size": 9}, "cannot be shared by 2 `pretraining.attention_heads`"),
    ({**SIZE, "pretraining": {**RECIPE, "warmup_steps": 10}}, "but there are only 10 steps"),
    ({**SIZE, "pretraining": {**RECIPE, "device": "gpu"}}, "must be one of `cpu`, `cuda`"),
    ({**PLAIN, "training": {"steps": [0, 3]}}, "asks for 3, but the recipe saves only the steps 0, 1,"),
    ({**PLAIN, "training": {"steps": "all", "last_step": 4}}, "`training.last_step`, which needs"),
    ({"pretraining": RECIPE}, "key `role` is missing; add it"),
    (twin(twin_of="plane"), "`pretraining.twin_of`: unknown model `plane`; did you mean `plain`?"),
    (twin(batch_size=4), "`batch_size` is 4 here and 8 there"),
    (twin(device="cuda"), "`device` is cuda here and cpu there"),
    (twin(twin_of="a-twin"), "is `a-twin`, which is no pretraining with random numbers of its own"),
    ({**SIZE, "pretraining": {**RECIPE, "twin_of": "plain"}}, "this would be the same model"),
    (tuned("plane"), "`finetuning.of`: unknown model `plane`; did you mean `plain`"),
    (tuned("plain@step9"), "unknown revision of model `plain` `step9`; did you mean `step"),
    (tuned("mine"), "leads in a circle, `mine` -> `mine`"),
    ({**tuned("plain"), "layers": 3}, "for `layers`"),
    (tuned("plain", task="topics"), "`finetuning.task`: unknown task `topics`; did you mean `topic`"),
    (tuned("plain", task="mrpc"), "the tokenizer of the decoder `plain` has no separator"),
]  # fmt: skip


@pytest.mark.parametrize("given", CONFIGURATIONS)
def test_a_bad_configuration_is_refused_in_one_sentence(given):
    assert CONFIGURATIONS[given] in refusal(yaml.safe_load(given))


@pytest.mark.parametrize(("entry", "sentence"), ENTRIES)
def test_a_bad_entry_is_refused_in_one_sentence(tmp_path, entry, sentence):
    entries = {"mine": entry, "plain": PLAIN, "a-twin": twin()}
    said = refusal({"models": ["mine"]}, tmp_path, entries)
    assert sentence in said
    assert said.startswith("model `mine`")


@pytest.mark.parametrize(
    ("entries", "sentence"),
    [
        ("mine: {path: x}\nmine: {path: y}", "mine.yaml, line 2: the key 'mine' occurs twice"),
        ("- mine", "mine.yaml must map model names to entries"),
        ("mine: {path: x", "mine.yaml is not valid YAML in UTF-8"),
        ("5: {path: x}", "mine.yaml, line 1: the key '5' is not text"),
        ("mine: {repository: a/b, layers: 012}", "a number that begins with 0"),
    ],
)
def test_a_file_of_entries_that_is_none_is_refused(tmp_path, entries, sentence):
    assert sentence in refusal({"models": ["mine"]}, tmp_path, entries)


def test_a_model_has_one_entry(tmp_path):
    (tmp_path / "other.yaml").write_text(json.dumps({"mine": PLAIN}))
    said = refusal({"models": ["mine"]}, tmp_path, {"mine": PLAIN})
    assert "model `mine` is defined in" in said


FIGURE = {
    **{"draw": "curve", "estimators": ["mle"], "checkpoints": "last"},
    "caption": "{measures} of {models}.",
}
PAPER = {"title": "A title", "citation": "Nobody", "prefix": "x_", "figures": {"figure_1": FIGURE}}


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("settings", ["average"], "`figures.figure_1.settings.0` is 'average', but must be one of"),
        ("checkpoints", "first", "is 'first', but must be one of `last`, `training`"),
        ("caption", "{labels}", "unknown field of the caption `labels`"),
        ("caption", "{", "the caption has "),
        ("caption", "{sampling}", "unknown field of the caption `sampling`"),
        ("estimator", "mle", "unknown key `estimator` in `figures.figure_1`; did you mean"),
    ],
)
def test_a_wrong_figure_of_a_paper_is_one_sentence_with_the_file(tmp_path, key, value, sentence):
    write_paper(tmp_path, "x", {"figure_1": {**FIGURE, key: value}})
    with pytest.raises(InputError) as refused:
        read_papers(tmp_path)
    assert sentence in str(refused.value)
    assert str(refused.value).startswith(str(tmp_path / "x" / "paper.yaml"))


def test_two_papers_do_not_share_a_target(tmp_path):
    for name in "xy":
        write_paper(tmp_path, name, {"figure_1": FIGURE})
    with pytest.raises(InputError, match="papers `x` and `y` both have the target `x_figure_1`"):
        read_papers(tmp_path)


def write_paper(folder: Path, name: str, figures: dict) -> None:
    (folder / name).mkdir()
    (folder / name / "paper.yaml").write_text(yaml.safe_dump({**PAPER, "figures": figures}))
    functions = "def curve(inputs, width=1):\n    ...\n"
    (folder / name / "figures.py").write_text(functions)


RULE = CLAIM["rule"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"statistic": "mean_over_layer"}, "did you mean `mean_over_layers`?"),
        ({"arguments": {"estimator": "x"}}, "unknown argument of `mean_over_layers` `estimator`;"),
        ({"statistic": "growth_then_settling"}, "`growth_then_settling` needs `arguments.share`"),
        ({"rule": {"supported": {"above": 0}}}, "key `rule.contradicted` is missing"),
        ({"rule": RULE | {"supported": {"beyond": 0}}}, "unknown key `beyond` in `rule.supported`"),
        ({"rule": RULE | {"supported": {"of": "x"}}}, "needs exactly one of `above` or"),
        ({"rule": RULE | {"supported": {"any_of": [{"above": 0}, {"not_below": 0}]}}},
         "`rule` can be met for `supported` by `not_above` or `not_below` alone"),
        ({"rule": RULE | {"supported": {"in": "all", "holds": {"in": "any", "holds": {"above": 0}}}}},
         "`rule.supported` counts by `in` within another `in`"),
        ({"rule": RULE | {"supported": {"of": "x", "in": "all", "holds": {"above": 0}}}},
         "`rule.supported` has an `of` beside conditions that have their own"),
        ({"statistic": "difference_of_estimators"}, "names 1, but `difference_of_estimators` is of 2"),
        ({"statistic": "rise_then_fall"}, "is of a training; add `checkpoints: training`"),
        ({"statistic": "growth_then_settling", "checkpoints": "training", "arguments": {"share": "half"}},
         "key `c.arguments.share` is 'half', but must be a number"),
        ({"arguments": {"estimators": ["mle"]}}, "estimators stand beside"),
        ({"models": ["gpt2"], "needs": 2}, "the entry has `needs: 2`, but `models` names 1"),
        ({"models": "decoder"}, "`models` must be a list of names of models, or one of `decoders`"),
    ],
)  # fmt: skip
def test_a_wrong_claim_is_one_sentence_with_the_file(tmp_path, change, sentence):
    file = tmp_path / "claims.yaml"
    file.write_text(yaml.safe_dump({"c": CLAIM | change}))
    with pytest.raises(InputError) as refused:
        read_claims(file)
    assert str(refused.value).startswith(str(file))
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"estimators": ["linerity"]},
            "`c.estimators`: unknown estimator `linerity`; did you mean ",
        ),
        ({"models": ["gpt-2"]}, "`c.models`: unknown model `gpt-2`; did you mean `gpt2`?"),
    ],
)
def test_claims_on_what_there_is_not_are_refused(change, sentence):
    claims = {"c": Claim(name="c", **CLAIM | change)}
    with pytest.raises(InputError, match=sentence):
        check_claims(claims, Path("claims.yaml"), MEASURES, ["gpt2"])


def test_claims_of_the_papers_are_on_what_there_is():
    entries = read_entries(MODELS)
    for paper in PAPERS:
        assert paper.claims
        check_claims(paper.claims, Path("claims.yaml"), MEASURES, entries)
