"""The table of bad inputs: what is given, when it is refused, and what the sentence says.

A case is a row of one of the tables below. `CONFIGURATIONS` and `MODELS` are refused as they are read,
`PLANS` while the run is planned, all of them by ``snakemake``; `JOBS` and `FETCHED` by the script of a rule,
within its job.
"""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from shape_of_learning.metrics.table_columns import ESTIMATE_COLUMNS

NOTHING: Mapping[str, object] = MappingProxyType({})
READING, PLANNING, JOB = "at reading", "at planning", "in a job"


@dataclass(frozen=True)
class Case:
    """One bad input.

    Attributes
    ----------
    name : str
        What is wrong with it.
    sentence : str
        What the refusal must say.
    when : str
    files : mapping of str to bytes or object
        What lies in the folder: bytes as they are, anything else as YAML.
    arguments : tuple of str
        What follows ``snakemake``, or the script and its arguments.
    """

    name: str
    sentence: str
    when: str
    files: Mapping[str, object] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()


def _bomb() -> bytes:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    for before, name in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]")
    return "\n".join([*lines, "models: *i\n"]).encode()


NAME = "must be up to 100 letters, digits"
REVISION = "must be a branch, tag or commit as git names them"
TWICE = "occurs twice; remove one"
LABEL = "`label` must be 1 to 60 Latin, Greek or Cyrillic letters"
RUN = "configuration key `run` is"
NO_TEXT = "is no text; put it in quotes"
GROWS = "has more values than any configuration needs"

# Name -> content of a file after config/demo.yaml, and the sentence.
CONFIGURATIONS: dict[str, tuple[bytes | str, str]] = {
    # keys
    "unknown key": ("seeed: 1", "unknown key `seeed`; did you mean `seed`?"),
    "unknown key in a section": ("sampling: {window: 3}", "unknown key `window` in `sampling`"),
    "unknown section": ("nothing: {}", "unknown key `nothing`; allowed: run"),
    "key twice": ("seed: 1\nseed: 2", f"the key 'seed' {TWICE}"),
    "key of a section twice": (
        "sampling:\n  windows: 8\n  windows: 9",
        f"line 3: the key 'windows' {TWICE}",
    ),
    "section twice": ("sampling: {windows: 8}\nsampling: {}", f"'sampling' {TWICE}"),
    "key twice in JSON": ('{"seed": 1, "seed": 2}', f"the key 'seed' {TWICE}"),
    "number as a key": ("3: x", NO_TEXT),
    "null as a key": ("null: x", NO_TEXT),
    "truth as a key": ("on: x", NO_TEXT),
    "date as a key": ("2024-01-01: x", NO_TEXT),
    "number as a key of a section": ("training_steps: {1: log}", NO_TEXT),
    # tasks
    "unknown built-in task": (
        "tasks: {topic: {builtin: topics}}",
        "`tasks.topic.builtin` is 'topics', but must be one of `topic`",
    ),
    "task without a source": ("tasks: {x: {}}", "exactly one of `builtin` or `urls` or `hub`"),
    "archive without a hash": (
        "tasks: {x: {urls: [a], member: b, format: json, text: t, label: l}}",
        "`urls` needs `sha256` in the same entry",
    ),
    "data set at a branch": (
        "tasks: {sst2: {hub: {revision: main}}}",
        "`tasks.sst2.hub.revision` must be a commit",
    ),
    "unknown metric": (
        "tasks: {sst2: {metric: f1}}",
        "`tasks.sst2.metric` is 'f1', but must be one of `accuracy`, `matthews`, `spearman`",
    ),
    "key that a built-in task does not read": (
        "tasks: {topic: {metric: spearman}}",
        "unknown key `metric` in `tasks.topic`; allowed: builtin, most",
    ),
    "column that a task does not have": (
        f"tasks: {{x: {{urls: [a], sha256: {'a' * 64}, member: b, format: csv, "
        "columns: [words, rating], text: word, label: rating}}",
        "`tasks.x.text`: unknown column `word`; did you mean `words`?",
    ),
    "one published split for both": (
        "tasks: {sst2: {hub: {split: {held_out: train}}}}",
        "`tasks.sst2.hub.split` names `train` twice",
    ),
    "more windows of an update than there are": (
        "block_editing: {distillation_windows: 65}",
        "`block_editing.distillation_windows` is 65, but there are 64 windows",
    ),
    # recipes of the configuration
    "unknown key of a recipe": (
        "pretraining: {layer: 3}",
        "unknown key `layer` in `pretraining`; did you mean `layers`?",
    ),
    "recipe that an entry cannot take": (
        "pretraining: {attention_heads: 3}",
        "demo.yaml with configuration key `pretraining`: `hidden_size` 128 cannot be shared by 3",
    ),
    "recipe with a word for a number": (
        "pretraining: {layers: many}",
        "with configuration key `pretraining`: `layers`: 'many' is not of type 'integer'",
    ),
    "unknown device": (
        "pretraining: {device: gpu}",
        "`pretraining.device` is 'gpu', but must be one of `cpu`, `cuda`",
    ),
    "very long key": (f"{'k' * 500}: 1", "unknown key `kkk"),
    # types and ranges
    "text for a number": ("sampling: {windows: many}", "'many' is not of type 'integer'"),
    "real for a whole number": ("seed: 1.0", "1.0 is not of type 'integer'"),
    "truth for a number": ("seed: true", "True is not of type 'integer'"),
    "nothing for a number": ("seed:", "None is not of type 'integer'"),
    "negative": ("seed: -1", "`seed`: -1 is less than the minimum of 0"),
    "zero windows": (
        "sampling: {windows: 0}",
        "`sampling.windows`: 0 is less than the minimum of 1",
    ),
    "more than a machine has": ("sampling: {windows: 1e30}", "is not of type 'integer'"),
    "far too large": (f"seed: {'9' * 30}", "is greater than the maximum"),
    "infinity": ("sampling: {windows: .inf}", "inf is not of type 'integer'"),
    "no number at all": ("sampling: {windows: .nan}", "nan is not of type 'integer'"),
    "list for a section": ("sampling: [8]", "`sampling`: [8] is not of type 'object'"),
    "text for a section": ("sampling: x", "`sampling`: 'x' is not of type 'object'"),
    "nothing for a section": ("sampling:", "`sampling`: None is not of type 'object'"),
    "unknown precision": ("forward: {precision: float8}", "must be one of `float32`, `bfloat16`"),
    "unknown policy": ("bad_checkpoints: ignore", "must be one of `skip`, `flag`, `fail`"),
    "unknown gate": ("gated_models: yes", "must be one of `skip`, `fail`"),
    "words for a batch size": ("forward: {batch_size: all}", "must be `auto` or a whole number"),
    "kept but not written": (
        "embeddings: {dump: false, keep: true}",
        "`embeddings.keep` is true, but",
    ),
    "too few vectors": ("measurement: {batch_vectors: 2}", "2 is less than the minimum of 3"),
    "more neighbours than vectors": (
        "measurement: {neighbours: 4096}",
        "measurement.batch_vectors",
    ),
    # models
    "models as text": ("models: gpt2", "'gpt2' is not of type 'array'; write [gpt2]"),
    "models as a mapping": ("models: {gpt2: 1}", "is not of type 'array'"),
    "no models": ("models: []", "`models`: the list is empty; name at least one"),
    "models nothing": ("models:", "`models`: None is not of type 'array'"),
    "model twice": ("models: [gpt2, gpt2]", "`models`: 'gpt2' is listed twice"),
    "unknown model": ("models: [gtp2]", "unknown model `gtp2`; did you mean `gpt2`?"),
    "unknown model, unlike any": ("models: [zzzzzz]", "unknown model `zzzzzz`; known: "),
    "number as a model": ("models: [3]", "`models.0`: 3 is not of type 'string'; put it in quotes"),
    "empty model": ('models: [""]', f"`models.0` {NAME}"),
    "command as a model": ('models: ["x$(touch F)"]', f"`models.0` {NAME}"),
    "backtick in a model": ('models: ["a`touch F`"]', f"`models.0` {NAME}"),
    "semicolon in a model": ('models: ["a; touch F"]', f"`models.0` {NAME}"),
    "quote in a model": ('models: ["a\'b"]', f"`models.0` {NAME}"),
    "braces in a model": ('models: ["{wildcards.model}"]', f"`models.0` {NAME}"),
    "line break after a model": ('models: ["gpt2\\n"]', f"`models.0` {NAME}"),
    "model above the folder": ('models: ["../gpt2"]', f"`models.0` {NAME}"),
    "model of dots": ('models: [".."]', f"`models.0` {NAME}"),
    "option as a model": ('models: ["-rf"]', f"`models.0` {NAME}"),
    "slash in a model": ("models: [a/b]", f"`models.0` {NAME}"),
    "blank after a model": ('models: ["gpt2 "]', f"`models.0` {NAME}"),
    "model with right-to-left signs": ('models: ["a\\u202eb"]', f"`models.0` {NAME}"),
    "very long model": (f"models: [{'m' * 10_000}]", f"`models.0` {NAME}"),
    "gated models alone": ("models: [llama-2-7b]", "names only models that are left out"),
    "gated model that must be there": (
        "models: [demo-decoder, llama-2-7b]\ngated_models: fail",
        "model `llama-2-7b` is gated and no Hugging Face token is set",
    ),
    "steps of an unknown model": ("training_steps: {nobody: log}", "unknown model `nobody`"),
    "steps of a model without any": ("training_steps: {gpt2: log}", "has no `training.steps`"),
    "unknown steps": (
        "models: [pythia-14m]\ntraining_steps: {pythia-14m: often}",
        "`training.steps` must be `all`, `log`, `log: N`",
    ),
    # names of folders
    "run above the folder": ("run: ..", RUN),
    "run in a folder": ("run: a/b", RUN),
    "hidden run": ("run: .hidden", RUN),
    "run with a blank": ("run: a b", RUN),
    "run that is true": ("run: true", RUN),
    "run in other letters": ("run: Tables", "results/Tables is there for something else"),
    "run as a command": ("run: x$(touch F)", RUN),
    "run with a line break": ('run: "a\\n"', RUN),
    "run as a number": ("run: 3", RUN),
    "run with the name of a folder": (
        "run: figures",
        "results/figures is there for something else",
    ),
    "run with the name of a folder of weights": (
        "run: finetuned",
        "results/finetuned is there for something else",
    ),
    "run that is empty": ('run: ""', RUN),
    "run as an option": ("run: -a", RUN),
    "very long run": (f"run: {'a' * 300}", RUN),
    "unknown source": ("corpus: {source: nowhere}", "unknown source `nowhere`"),
    "source as a command": ('corpus: {source: "$(touch F)"}', f"`corpus.source` {NAME}"),
    "source above the folder": (
        'corpus: {sources: {"../x": {urls: [x], format: text}}}',
        f"`corpus.sources` {NAME}",
    ),
    "source without a format": (
        "corpus: {sources: {x: {urls: [x]}}}",
        "`corpus.sources.x.format` is missing",
    ),
    "source from nowhere": (
        "corpus: {sources: {x: {format: text}}}",
        "exactly one of `urls` or `builtin`",
    ),
    "source with a short hash": (
        "corpus: {sources: {x: {urls: [x], format: text, sha256: abc}}}",
        "`corpus.sources.x.sha256`",
    ),
    # figures and measures
    "unknown figure": ("figures: {figure_6: all}", "unknown key `figure_6`; did you mean `figure_"),
    "figure of an unknown model": ("figures: {figure_1: [gtp2]}", "unknown model `gtp2`"),
    "figure of some": ("figures: {figure_1: some}", "must be `all` or a list of model names"),
    "figure of a model twice": ("figures: {figure_1: [gpt2, gpt2]}", "must be `all` or a list"),
    "four models in a figure of three": (
        "{models: [bloom-560m, bloom-1b1, bloom-3b, bloom-7b1], figures: {figure_2: all}}",
        "`figures.figure_2` names 4 models, but has room for 3",
    ),
    "two models in a figure of one": (
        "figures: {inherent_figure_5: all}",
        "`figures.inherent_figure_5` names 2 models, but has room for 1",
    ),
    "fine-tuning figure of what is none": (
        "figures: {finetuning_figure_2: [demo-encoder]}",
        "`figures.finetuning_figure_2` names `demo-encoder`, which has no `finetuning`",
    ),
    "fine-tuning table of what is none": (
        "figures: {finetuning_table_1: [demo-decoder]}",
        "`figures.finetuning_table_1` names `demo-decoder`, which has no `finetuning`",
    ),
    "fine-tuning that is not measured at its start": (
        "training_steps: {demo-encoder-topic: [64]}",
        "names `demo-encoder-topic`, of which steps 0 and 64, the first and the last one, are drawn",
    ),
    "unknown paper": (
        "papers: [linar]",
        "key `papers`: unknown paper `linar`; did you mean `linear`",
    ),
    "unknown model for figures only": (
        "measurement: {for_figures_only: [demo-twn]}",
        "`measurement.for_figures_only`: unknown model `demo-twn`; did you mean `demo-twin`?",
    ),
    "state before the final norm that is not kept": (
        "forward: {last_layer: after_final_norm}",
        "but configuration key `forward.last_layer` is `after_final_norm`; set it to `both`",
    ),
    "unknown average": (
        "figures: {average_over: rows}",
        "must be one of `block_outputs`, `all_layers`",
    ),
    "unknown choice": (
        "choices: {first_tokens: [keep]}",
        "unknown key `first_tokens` in `choices`",
    ),
    "unknown text of a choice": ("choices: {text: [enwik]}", "unknown text `enwik`; did you mean"),
    "unknown estimator of a choice": (
        "choices: {estimators: {dimension: [two_n]}}",
        "key `choices.estimators.dimension`: unknown estimator `two_n`; did you mean `two_nn`?",
    ),
    "batches of a choice that are smaller than the neighbour search": (
        "choices: {batch_share: [0.01]}",
        "`choices.batch_share` has 0.01",
    ),
    "unknown progress": ("figures: {progress: epochs}", "must be one of `auto`, `step`, `tokens`"),
    "measures of a figure that takes no others": (
        "figures: {measures: {figure_1: [two_nn]}}",
        "key `figures.measures`: unknown figure `figure_1`; known: heat_map, overview",
    ),
    "measure of weights by layer": (
        "figures: {measures: {heat_map: [bias_length]}}",
        "names `bias_length`, which is no measure of layers; remove it",
    ),
    "unknown estimator": (
        "measurement: {estimators: [twonn]}",
        "unknown estimator `twonn`; did you mean",
    ),
    "no estimator": ("measurement: {estimators: []}", "the list is empty; name at least one"),
    "estimator as a command": ('measurement: {estimators: ["$(touch F)"]}', "unknown estimator"),
    "unknown setting of a measure": (
        "measurement: {parameters: {two_nn: {keep: 1}}}",
        "did you mean `kept`",
    ),
    "setting out of range": (
        "measurement: {parameters: {two_nn: {kept: 2}}}",
        "measurement.parameters.two_nn",
    ),
    "settings of an unknown measure": (
        "measurement: {parameters: {x: {}}}",
        "unknown estimator `x`",
    ),
    "a first token that is neither": (
        "measurement: {first_token: 'no'}",
        "must be one of `keep`, `drop`",
    ),
    "setting below its range": (
        "measurement: {parameters: {mom: {k: 1}}}",
        "`measurement.parameters.mom.k` is 1",
    ),
    "figure of nothing": ("figures: {figure_1: }", "`figures.figure_1` must be `all` or a list"),
    "fewer vectors than neighbours": (
        "measurement: {batch_vectors: 100}",
        "`measurement.batch_vectors` is 100",
    ),
    "nearly a source": (
        "corpus: {source: enwik9}",
        "unknown source `enwik9`; did you mean `enwik8`?",
    ),
    # files
    "tabs": (b"sampling:\n\twindows: 8\n", "not valid JSON or YAML"),
    "binary": (b"\x00\x01\x02", "not valid JSON or YAML"),
    "empty": (b"", "with keys at top level"),
    "a list": (b"- gpt2\n", "with keys at top level"),
    "a word": (b"gpt2\n", "with keys at top level"),
    "unclosed": (b"models: [gpt2\n", "not valid JSON or YAML"),
    "laughs": (_bomb(), GROWS),
    "a list in itself": (b"models: &a [*a]\n", GROWS),
    "huge": (b"#" * 11_000_000 + b"\nseed: 1\n", "has more than 10,000,000 bytes"),
    "a tag of Python": (b"seed: !!python/tuple [1]\n", "not valid YAML"),
}

MODEL = "mine: {repository: a/b, "
CHECKPOINT = "mine: {repository: a/b, training: {checkpoints: [{step: 1, "
RECIPE = (
    "mine: {role: decoder, layers: 2, hidden_size: 8, pretraining: {architecture: gpt_neox, "
    "attention_heads: 2, vocabulary: 300, context: 16, batch_size: 2, learning_rate: 0.001, "
    "warmup_steps: 0, last_step: 1, threads: 1"
)


def _tuned(**changes: object) -> str:
    recipe = {"of": "demo-encoder", "task": "topic", "learning_rate": 0.1, "batch_size": 4}
    return f"mine: {json.dumps({'finetuning': {**recipe, 'epochs': 1, 'seed': 0, 'threads': 1, **changes}})}"


def _reported(entries: str) -> str:
    pattern = "{revision: 's{step}', steps: [1, 2, 3], known_bad: ["
    return f"mine: {{repository: a/b, training: {pattern}{entries}]}}}}"


# Name -> content of config/models/mine.yaml, of whose models `mine` is wanted, and the sentence.
MODELS: dict[str, tuple[bytes | str, str]] = {
    # revisions
    **{
        f"revision {name}": (f"{MODEL}revision: {revision}}}", f"`revision` {REVISION}")
        for name, revision in {
            "of dots": '".."',
            "above the folder": '"a/../b"',
            "from the top": '"/etc"',
            "as an option": '"--upload-pack=x"',
            "with a blank": '"a b"',
            "with a line break": '"main\\n"',
            "with an escape": '"a\\x1b[2J"',
            "with a hidden blank": '"a\\u00a0b"',
            "with right-to-left signs": '"a\\u202eb"',
            "of no width": '"a\\u200bb"',
            "with a tilde": '"main~1"',
            "with a caret": '"main^"',
            "with a colon": '"a:b"',
            "with a star": '"a*"',
            "with a bracket": '"a[b"',
            "with a backslash": '"a\\\\b"',
            "with a reflog": '"main@{1}"',
            "that is a lock": '"main.lock"',
            "that ends in a dot": '"a."',
            "that ends in a slash": '"a/"',
            "with an empty part": '"a//b"',
            "with a hidden part": '"a/.b"',
            "empty": '""',
            "very long": "m" * 10_000,
        }.items()
    },
    "revision as a number": (
        f"{MODEL}revision: 3}}",
        "3 is not of type 'string'; put it in quotes",
    ),
    "pattern above the folder": (
        "mine: {repository: a/b, training: {revision: '../{step}', steps: [1]}}",
        f"`training.revision` {REVISION}",
    ),
    "revision of a checkpoint": (
        f"{CHECKPOINT}revision: a/../b}}]}}}}",
        f"`training.checkpoints.0.revision` {REVISION}",
    ),
    "name of a checkpoint as a command": (
        f'{CHECKPOINT}revision: a, name: "$(touch F)"}}]}}}}',
        f"`training.checkpoints.0.name` {NAME}",
    ),
    "name of a checkpoint above the folder": (
        f"{CHECKPOINT}revision: a, name: ..}}]}}}}",
        f"`training.checkpoints.0.name` {NAME}",
    ),
    "subfolder above the repository": (
        f"{MODEL}subfolder: a/../../b}}",
        "`subfolder` must be a folder inside",
    ),
    "subfolder from the top": (f"{MODEL}subfolder: /etc}}", "`subfolder` must be a folder inside"),
    "repository above the Hub": (
        "mine: {repository: ../b}",
        "`repository` must be `organisation/name`",
    ),
    "repository without an organisation": (
        "mine: {repository: b}",
        "`repository` must be `organisation/name`",
    ),
    "repository as an address": ("mine: {repository: 'https://x/y'}", "`repository` must be"),
    "repository with a line break": ('mine: {repository: "a/b\\n"}', "`repository` must be"),
    "tokenizer as an option": (
        f"{MODEL}tokenizer: -a/b}}",
        "`tokenizer` must be `organisation/name`",
    ),
    # labels
    **{
        f"label {name}": (f"{MODEL}label: {label}}}", LABEL)
        for name, label in {
            "empty": '""',
            "with a line break": '"a\\nb"',
            "as an option": '"-a"',
            "as a formula": '"=1+1"',
            "with an escape": '"a\\x1b[2J"',
            "with right-to-left signs": '"a\\u202eb"',
            "without a glyph": '"\\U0001f600"',
            "very long": "l" * 10_000,
        }.items()
    },
    "label as a number": (
        f"{MODEL}label: 3}}",
        "`label`: 3 is not of type 'string'; put it in quotes",
    ),
    "family with a tab": (f'{MODEL}family: "a\\tb"}}', "`family` must be 1 to 60"),
    # entries
    "no entry": ("mine:", "None is not of type 'object'"),
    "text for an entry": ("mine: gpt2", "'gpt2' is not of type 'object'"),
    "list for an entry": ("mine: []", "[] is not of type 'object'"),
    "two sources": (f"{MODEL}path: x}}", "exactly one of `repository` or `path` or `pretraining`"),
    "no source": (
        "mine: {role: decoder}",
        "exactly one of `repository` or `path` or `pretraining`",
    ),
    "unknown key": (f"{MODEL}lyers: 3}}", "unknown key `lyers`; did you mean `layers`?"),
    "unknown role": (f"{MODEL}role: both}}", "must be one of `encoder`, `decoder`"),
    "no layers": (f"{MODEL}layers: 0}}", "0 is less than the minimum of 1"),
    "a billion layers": (f"{MODEL}layers: 1000000000}}", "is greater than the maximum of 10000"),
    "path nowhere": ("mine: {path: nowhere}", "there is no config.json"),
    "path empty": ('mine: {path: ""}', "`path` must be a folder"),
    "path with a null": ('mine: {path: "a\\0b"}', "`path` must be a folder"),
    "very long path": (f"mine: {{path: {'p' * 5000}}}", "`path` must be a folder"),
    "long path": (f"mine: {{path: {'p' * 900}}}", "there is no config.json"),
    "path with steps": (
        "mine: {path: x, training: {checkpoints: [{step: 1, revision: a}]}}",
        "`training.checkpoints`",
    ),
    "steps without a pattern": (
        "mine: {repository: a/b, training: {steps: [1]}}",
        "`training.steps` needs `training.revision`",
    ),
    "pattern without a step": (
        "mine: {repository: a/b, training: {revision: main, steps: [1]}}",
        "write `{step}` into `training.revision`",
    ),
    "pattern with an unknown placeholder": (
        "mine: {repository: a/b, training: {revision: 's{stpe}', steps: [1]}}",
        "`{stpe}` in `training.revision` or `repository` is no placeholder",
    ),
    "steps twice": (
        "mine: {repository: a/b, training: {revision: 's{step}', steps: [1, 1]}}",
        "`training.steps` must be",
    ),
    "no steps": (
        "mine: {repository: a/b, training: {revision: 's{step}', steps: []}}",
        "`training.steps` must",
    ),
    "two checkpoints of one name": (
        "mine: {repository: a/b, training: {checkpoints: [{step: 1, revision: m}, {step: 2, revision: m}]}}",
        "two checkpoints are called `m`",
    ),
    "two checkpoints at one step": (
        "mine: {repository: a/b, training: {checkpoints: [{step: 1, revision: m}, {step: 1, revision: n}]}}",
        "two checkpoints are at step 1",
    ),
    # reports
    "report that a step has its own weights": (
        _reported("{steps: [1, 2], same_as: 2, source: x}"),
        "says that step 2 has the weights of itself; take it from `steps`",
    ),
    "report of a range with its own weights": (
        _reported("{steps: {from: 1, to: 9}, same_as: 9, source: x}"),
        "says that step 9 has the weights of itself",
    ),
    "report from a later step to an earlier one": (
        _reported("{steps: {from: 9, to: 1}, because: mixed, source: x}"),
        "has `steps` whose `from` is above `to`; exchange them",
    ),
    "two reports that contradict each other": (
        _reported("{steps: [3, 5], same_as: 7, source: x}, {steps: [5], same_as: 8, source: x}"),
        "says that step 5 has the weights of step 7 and of step 8; remove it",
    ),
    "two long reports that contradict each other": (
        _reported(
            "{steps: {from: 1, to: 900000000}, same_as: 0, source: x}, "
            "{steps: {from: 800000000, to: 999999999}, same_as: 5, source: x}"
        ),
        "says that step 800000000 has the weights of step 0 and of step 5; remove it",
    ),
    "last step before one that is listed": (
        "mine: {repository: a/b, training: {revision: 's{step}', steps: [1, 2], last_step: 1}}",
        "`training.last_step` is 1, but step 2 is asked for; correct one of them",
    ),
    "last step before one whose name the Hub says": (
        "mine: {repository: a/b, training: {revision: 's{step}-t{gigatokens}', steps: [5], last_step: 4}}",
        "`training.last_step` is 4, but step 5 is asked for",
    ),
    # recipes
    "heads that do not divide the width": (
        RECIPE.replace("hidden_size: 8", "hidden_size: 9") + "}}",
        "cannot be shared by 2 `pretraining.attention_heads`; make it a multiple",
    ),
    "unknown architecture": (
        RECIPE.replace("gpt_neox", "gpt_5") + "}}",
        "must be one of `gpt_neox`, `bert`",
    ),
    "rate of nothing": (
        RECIPE.replace("0.001", "0") + "}}",
        "`pretraining.learning_rate`: 0 is less than or",
    ),
    "rate that is no number": (
        RECIPE.replace("0.001", ".nan") + "}}",
        "nan is not of type 'number'",
    ),
    "infinite rate": (RECIPE.replace("0.001", ".inf") + "}}", "inf is not of type 'number'"),
    "more warm-up than steps": (
        RECIPE.replace("warmup_steps: 0", "warmup_steps: 1") + "}}",
        "`pretraining.warmup_steps` is 1, but there are only 1 steps",
    ),
    "unknown regulariser": (
        RECIPE + ", regulariser: cosin, strength: 1}}",
        "unknown regulariser `cosin`; did you mean `cosine`?",
    ),
    "regulariser of no strength": (
        RECIPE + ", regulariser: mse}}",
        "`pretraining.strength` is 0 with `regulariser: mse`",
    ),
    "twin of an unknown model": (
        RECIPE + ", regulariser: mse, strength: 1, twin_of: demo-decodr}}",
        "`pretraining.twin_of`: unknown model `demo-decodr`; did you mean `demo-decoder`?",
    ),
    "twin of a twin": (
        RECIPE + ", regulariser: mse, strength: 1, twin_of: demo-twin}}",
        "is `demo-twin`, which is no pretraining with random numbers of its own",
    ),
    "twin of another recipe": (
        RECIPE + ", regulariser: mse, strength: 1, twin_of: demo-decoder}}",
        "`pretraining.twin_of` is `demo-decoder`, but `attention_heads` is 2 here and 4 there",
    ),
    # fine-tunings
    "fine-tuning of an unknown model": (
        _tuned(of="demo-encodr"),
        "`finetuning.of`: unknown model `demo-encodr`; did you mean `demo-encoder`?",
    ),
    "fine-tuning of an unknown step": (
        _tuned(of="demo-encoder@step3000"),
        "unknown revision of model `demo-encoder` `step3000`",
    ),
    "fine-tuning of itself": (_tuned(of="mine"), "leads in a circle, `mine` -> `mine`"),
    "fine-tunings of each other": (
        f"{_tuned(of='other')}\n{_tuned(of='mine').replace('mine', 'other', 1)}",
        "`finetuning.of` leads in a circle, `mine` -> `other` -> `mine`",
    ),
    "fine-tuning on an unknown task": (
        _tuned(task="topics"),
        "`finetuning.task`: unknown task `topics`; did you mean `topic`?",
    ),
    "decoder that is to tell two texts apart": (
        _tuned(of="demo-decoder", task="same_article"),
        "but the tokenizer of the decoder `demo-decoder` has no separator",
    ),
    "recipe without its width": (
        RECIPE.replace("hidden_size: 8, ", "") + "}}",
        "key `hidden_size` is missing; add it",
    ),
    "thousands of digits": (
        f"{MODEL}layers: {'9' * 5000}}}",
        "mine.yaml is not valid YAML in UTF-8",
    ),
    # files
    "model twice in one file": (
        "mine: {path: x}\nmine: {path: y}",
        f"mine.yaml, line 2: the key 'mine' {TWICE}",
    ),
    "key twice in an entry": (f"{MODEL}revision: a, revision: b}}", f"the key 'revision' {TWICE}"),
    "number as a name": ("5: {path: x}", f"mine.yaml, line 1: the key '5' {NO_TEXT}"),
    "null as a name": ("null: {path: x}", NO_TEXT),
    "truth as a name": ("yes: {path: x}", NO_TEXT),
    "list as a name": ("? [a]\n: {path: x}", NO_TEXT),
    "list of models": ("- mine", "mine.yaml must map model names to entries"),
    "word": ("mine", "mine.yaml must map model names to entries"),
    "false": ("false", "mine.yaml must map model names to entries"),
    "no UTF-8": (b"mine: {label: '\xff'}", "mine.yaml is not valid YAML in UTF-8"),
    "UTF-16": ("mine: {path: x}".encode("utf-16"), "mine.yaml is not valid YAML in UTF-8"),
    "tabs": ("mine:\n\tpath: x", "mine.yaml is not valid YAML in UTF-8"),
    "binary": (b"\x00\x01", "mine.yaml is not valid YAML in UTF-8"),
    "unclosed": ("mine: {path: x", "mine.yaml is not valid YAML in UTF-8"),
    "an object of Python": (
        "mine: !!python/object/apply:os.system ['touch F']",
        "mine.yaml is not valid YAML",
    ),
    "unknown alias": ("mine: *other", "mine.yaml is not valid YAML in UTF-8"),
    "laughs": (_bomb(), GROWS),
    "an entry in itself": ("mine: &m {path: *m}", GROWS),
    "very deep": ("mine: " + "[" * 3000, "mine.yaml is not valid YAML in UTF-8"),
    "huge": (b"#" * 11_000_000, "mine.yaml has more than 10,000,000 bytes"),
    "empty": (b"", "unknown model `mine`"),
    "a mark at the beginning alone": (b"\xef\xbb\xbf", "unknown model `mine`"),
}


def _checkpoint(**changes: object) -> dict[str, object]:
    config = {"model_type": "gpt_neox", "num_hidden_layers": 2, "hidden_size": 16, **changes}
    return {
        "weights/config.json": json.dumps(config).encode(),
        "config/models/mine.yaml": {"mine": {"path": "weights"}},
        "case.yaml": WANTED,
    }


# `mine`, and it alone in figures.
WANTED = {"models": ["mine"], "figures": {"figure_2": [], "figure_3": []}}
PLACE = {"mine": {"repository": "a/b", "role": "decoder", "layers": 2, "hidden_size": 16}}
ON_HUB = {"config/models/mine.yaml": PLACE, "case.yaml": WANTED}


def _locked(content: str) -> dict[str, object]:
    return {**ON_HUB, "config/locks/mine.yaml": content.encode()}


# Name -> files, further arguments, and the sentence.
PLANS: dict[str, tuple[Mapping[str, object], tuple[str, ...], str]] = {
    "models of the command line as text": (NOTHING, ("--config", "models=gpt2"), "write [gpt2]"),
    "models of the command line as nothing": (
        NOTHING,
        ("--config", "models="),
        "`models`: None is not of type",
    ),
    "unknown model of the command line": (
        NOTHING,
        ("--config", "models=[gtp2]"),
        "did you mean `gpt2`?",
    ),
    "command on the command line": (
        NOTHING,
        ("--config", "models=[$(touch F)]"),
        f"`models.0` {NAME}",
    ),
    "number in braces on the command line": (
        NOTHING,
        ("--config", "sampling={windows: 8}"),
        "'8' is not of type 'integer'; leave out quotes, and inside of braces use a --configfile",
    ),
    "same model in two files": (
        {
            "config/models/a.yaml": {"mine": {"path": "x"}},
            "config/models/b.yml": {"mine": {"path": "y"}},
        },
        (),
        "model `mine` is defined in config/models/a.yaml and in config/models/b.yml; rename one",
    ),
    "one label for two models": (
        {
            "config/models/mine.yaml": {
                "mine": {**PLACE["mine"], "label": "A"},
                "other": {**PLACE["mine"], "label": "A"},
            },
            "case.yaml": {**WANTED, "models": ["mine", "other"]},
        },
        (),
        "models `mine` and `other` both have the label `A`",
    ),
    "figure that is an empty list": (
        {"case.yaml": {"figures": {"figure_1": []}}},
        ("figure_1",),
        "key `figures.figure_1` is an empty list; correct key `models` or",
    ),
    "table that is an empty list": (
        {"case.yaml": {"figures": {"table_1": []}}},
        ("table_1",),
        "key `figures.table_1` is an empty list; correct key `models` or",
    ),
    "more blocks to change than there are": (
        {"case.yaml": {"block_editing": {"most_blocks": 5}}},
        ("linear_figure_6",),
        "`block_editing.most_blocks` is 5, but model `demo-decoder` has 4 blocks; lower it",
    ),
    "an encoder whose blocks are to change": (
        {"case.yaml": {"figures": {"linear_figure_9": ["demo-encoder"]}}},
        ("linear_figure_9",),
        "`figures.linear_figure_9` names `demo-encoder`, but decoders alone can be drawn there",
    ),
    "twins without their twin": (
        {"case.yaml": {"figures": {"linear_figure_4": ["demo-decoder"]}}},
        ("linear_figure_4",),
        "(`demo-decoder` together with a twin, both at the last step); correct key `models` or",
    ),
    "fine-tuning figure where there is none": (
        {"case.yaml": {"models": ["demo-decoder"], "figures": {"finetuning_figure_1": "all"}}},
        ("finetuning_figure_1",),
        "with `finetuning`, measured at the first and the last step); correct key `models` or",
    ),
    "figure of a paper that is not chosen": (
        {"case.yaml": {"papers": ["linear"]}},
        ("finetuning_figure_1",),
        "finetuning_figure_1 belongs to the paper `finetuning`, which this configuration does not choose",
    ),
    "figure without its models": (
        {"case.yaml": {"figures": {"figure_2": ["gpt2"]}}},
        ("figure_2",),
        "none of what it draws (`gpt2` with training steps); correct key `models`",
    ),
    "receipt of another corpus": (
        {"results/corpus/python_topics/source.json": b"{"},
        (),
        "source.json is damaged",
    ),
    "config.json that is none": (
        {**_checkpoint(), "weights/config.json": b"<html>"},
        (),
        "weights/config.json is missing or no JSON object",
    ),
    "config.json that is a list": (
        {**_checkpoint(), "weights/config.json": b"[]"},
        (),
        "is missing or no JSON object",
    ),
    "config.json that is too deep": (
        {**_checkpoint(), "weights/config.json": b"[" * 100_000},
        (),
        "is missing or no JSON object",
    ),
    "no number of layers": (
        _checkpoint(num_hidden_layers="many"),
        (),
        "for `num_hidden_layers`, which cannot be",
    ),
    "negative layers": (
        _checkpoint(num_hidden_layers=-1),
        (),
        "for `num_hidden_layers`, which cannot be",
    ),
    "true layers": (
        _checkpoint(num_hidden_layers=True),
        (),
        "for `num_hidden_layers`, which cannot be",
    ),
    "no width": (_checkpoint(hidden_size=0), (), "0 for `hidden_size`, which cannot be"),
    "quantised weights": (
        _checkpoint(quantization_config={"load_in_4bit": True}),
        (),
        "config.json of the checkpoint has a `quantization_config`",
    ),
    "neither encoder nor decoder": (
        _checkpoint(model_type=["x"]),
        (),
        "for `model_type`, which cannot be",
    ),
    "encoder and decoder": (
        _checkpoint(is_encoder_decoder=True),
        (),
        "does not tell an encoder from a decoder",
    ),
    "entry that contradicts config.json": (
        {**_checkpoint(), "config/models/mine.yaml": {"mine": {"path": "weights", "layers": 3}}},
        (),
        "for `layers` config.json of the checkpoint says 2 where the entry says 3",
    ),
    "lock that is no mapping": (_locked("- 1"), (), "config/locks/mine.yaml is no lock file"),
    "lock that is no YAML": (_locked("["), (), "config/locks/mine.yaml is no lock file"),
    "lock with a path for a commit": (
        _locked("revisions: {main: {repository: a/b, revision: main, commit: ../../x}}"),
        (),
        "config/locks/mine.yaml is no lock file",
    ),
    "no lock, and nobody to ask for the shape": (
        {**ON_HUB, "config/models/mine.yaml": {"mine": {"repository": "a/b"}}},
        (),
        "or state `role`, `layers` and `hidden_size`",
    ),
    "no lock, and nobody to ask for the steps": (
        {
            **ON_HUB,
            "config/models/mine.yaml": {
                "mine": {
                    **PLACE["mine"],
                    "training": {"revision": "step{step}", "steps": "log"},
                }
            },
        },
        (),
        "or list the steps",
    ),
    "resolving offline": (
        ON_HUB,
        ("resolve",),
        "ERROR: model `mine`: `a/b` at revision `main` has nothing",
    ),
}

# In place of a content: the digest of the file beside it.
ADD_DIGEST = b"(digest)"
SHAPE = {"role": "decoder", "layers": 3, "hidden_size": 32, "last_hidden_size": 32}
PROTOCOL = {"windows": 4, "window_characters": 40, "seed": 0, "precision": "float32"}
PROTOCOL |= {"last_layer": "after_final_norm"}


def _dump(**changes: object) -> tuple[str, ...]:
    given = {
        "model": "mine",
        "revision": "main",
        "checkpoint": "weights",
        "text": "text.txt",
        "protocol": json.dumps(PROTOCOL),
        "shape": json.dumps(SHAPE),
        "threads": 1,
        "output": "made/embeddings",
        "loss": "made/loss.csv",
        "tensors": "made/tensors.csv",
        **changes,
    }
    return ("dump_embeddings.py", *(f"--{name.replace('_', '-')}={v}" for name, v in given.items()))


def _edit(**changes: object) -> tuple[str, ...]:
    editing = {"fitting_windows": 8, "evaluation_windows": 1, "most_blocks": 1, "orders": ["alone"]}
    editing |= {"kinds": ["dropped"], "distillation_steps": 1, "distillation_windows": 1}
    given = ("checkpoint", "model", "protocol", "revision", "shape", "text", "threads")
    (_, *dumped) = _dump()
    kept = [each for each in dumped if each[2:].split("=")[0] in given]
    editing |= {"learning_rate": 0.001, **changes}
    output = ("--output", "made/edits.csv", "made/errors.csv")
    return ("edit_blocks.py", *kept, f"--editing={json.dumps(editing)}", *output)


def _pretrain(**changes: object) -> tuple[str, ...]:
    given = {
        **{
            "text": "text.txt",
            "model": "mine",
            "output": "made/steps",
            "receipt": "made/steps.json",
        },
        **{"architecture": "gpt_neox", "layers": 1, "hidden_size": 8, "attention_heads": 2},
        **{"vocabulary": 300, "context": 16, "batch_size": 2, "learning_rate": 0.001},
        **{"warmup_steps": 0, "last_step": 1, "seed": 0, **changes},
    }
    return ("pretrain_model.py", *(f"--{name.replace('_', '-')}={v}" for name, v in given.items()))


def _clean(form: str, **changes: object) -> tuple[str, ...]:
    given = {
        "input": "corpus",
        "format": form,
        "text": "made/text.txt",
        "alphabet": "made/a.json",
        **changes,
    }
    return ("clean_corpus.py", *(f"--{name}={value}" for name, value in given.items()))


def _fetched(source: Mapping[str, object]) -> dict[str, str]:
    plumbing = {"corpus_sources": {"x": {"format": "text", **source}}}
    return {"SHAPE_OF_LEARNING_SETTINGS": json.dumps(plumbing)}


FETCH = ("fetch_corpus.py", "--source=x", "--output=made/x.raw", "--receipt=made/x.json")
FETCH_CHECKPOINT = (
    *(
        "fetch_checkpoint.py",
        "--model=mine",
        "--name=main",
        "--lock=lock.yaml",
        "--output=made/weights",
    ),
    f"--shape={json.dumps(SHAPE)}",
)
PINNED = (
    f"revisions: {{main: {{repository: a/b, revision: main, commit: {'a' * 40}, "
    f"files: {{model.safetensors: {{bytes: 1, hash: 'sha256:{'b' * 64}'}}}}}}}}"
)
ONE_FIGURE = json.dumps(
    {
        "models": [{"name": "mine", "label": "mine", "family": "mine", "role": "decoder"}],
        "measures": [
            {
                "name": "anisotropy",
                "label": "Anisotropy",
                "axis": "Anisotropy",
                "depends_on_n": False,
            }
        ],
        "options": {},
    }
)
DRAW = (
    *("draw_figure.py", "--function=shape_of_learning:profiles_by_role", f"--figure={ONE_FIGURE}"),
    *(
        "--caption=x",
        "--estimates=tables/estimates.csv",
        *("--output", "made/f.pdf", "made/f.png", "made/f.csv", "made/f.md"),
    ),
)
COLUMNS = ",".join(ESTIMATE_COLUMNS)


def _estimates(*rows: str) -> Mapping[str, bytes]:
    """A table with its digest, so that nothing but its content is wrong."""
    content = "".join(f"{row}\n" for row in rows).encode()
    return {"tables/estimates.csv": content, "tables/estimates.csv.sha256": ADD_DIGEST}


def _archive(*records: Mapping[str, object]) -> bytes:
    """A tar archive of a list of records."""
    content, file = json.dumps(records).encode(), io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        member = tarfile.TarInfo("all.json")
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    return file.getvalue()


def _labelled(*labels: object) -> Mapping[str, bytes]:
    """The archive of a task with texts of these labels."""
    return {
        "x.archive": _archive(*({"t": f"text {n}", "l": label} for n, label in enumerate(labels)))
    }


def _task(files: Mapping[str, bytes], **changes: object) -> tuple[str, ...]:
    entry = {"urls": ["x.tar"], "sha256": hashlib.sha256(files["x.archive"]).hexdigest()}
    entry |= {"member": "all.json", "format": "json", "text": "t", "label": "l", **changes}
    made = ("--archive=x.archive", "--output=made/x.csv", "--seed=0")
    return ("make_task.py", "--task=x", f"--entry={json.dumps(entry)}", *made)


TUNE = (
    *(
        "finetune_model.py",
        "--checkpoint=weights",
        "--role=decoder",
        "--task=task.csv",
        "--epochs=1",
    ),
    *("--steps", "0", "1", "--learning-rate=0.1", "--batch-size=2", "--seed=0", "--names={}"),
    *("--outputs", "made/steps", "made/steps.json"),
)
CLASSES = _labelled(*[0, 1] * 20)
PAIRS = "".join(f"{split},{n},{n},a,b\n" for split in ("train", "held_out") for n in (0, 1))


# Of a folder `weights` with a model that runs, and of `text.txt`: name -> the changes (a mapping changes keys
# of JSON, bytes replace a file, None removes it), the script and its arguments, and the sentence.
JOBS: dict[str, tuple[Mapping[str, object], tuple[str, ...], str]] = {
    "tokens that the model does not know": (
        {"weights": {"vocab_size": 200}},
        _dump(),
        "but the model there has embeddings for 200 tokens",
    ),
    "a text without a held-out window": (
        {"text.txt": b"words of a text " * 40},
        _edit(),
        "the held-out end of text.txt has 0 characters, hence 0 windows of 40, where 1 are asked for: lower "
        "block_editing.evaluation_windows",
    ),
    "tokens too few for a map": (
        {},
        _edit(fitting_windows=1),
        "are too few to fit a map in",
    ),
    "more changed blocks than a checkpoint has": (
        {},
        _edit(most_blocks=4),
        "`block_editing.most_blocks` is 4, but the model in weights has 3 blocks; lower it",
    ),
    "an archive of another hash": (
        {"x.tar": CLASSES["x.archive"]},
        _task(CLASSES, sha256="0" * 64),
        "sha256",
    ),
    "an archive without the member": (
        CLASSES,
        _task(CLASSES, member="one.json"),
        "the archive holds all.json, not 'one.json'; correct `member`",
    ),
    "a label column that is absent": (
        CLASSES,
        _task(CLASSES, label="label"),
        "there is no column `label`, which its entry gives as `label`",
    ),
    "labels that are constant": (
        _labelled(*[1] * 40),
        _task(_labelled(*[1] * 40)),
        "the labels of the split `train` are constant, all 1",
    ),
    "a grade that is no number": (
        _labelled(0.5, "good"),
        _task(_labelled(0.5, "good"), metric="spearman"),
        "the label of record 2 is 'good', which is no number; correct `label`",
    ),
    "a split without examples": (
        _labelled(0, 1),
        _task(_labelled(0, 1)),
        "the split `held_out` has no examples",
    ),
    "pairs for a decoder without a separator": (
        {
            "task.csv": f"split,label,group,text,text_2\n{PAIRS}".encode(),
            "task.csv.sha256": ADD_DIGEST,
            "task.json": json.dumps({"metric": "accuracy"}).encode(),
        },
        TUNE,
        "but the decoder's tokenizer puts no separator between two texts",
    ),
    "quantised weights in a job": (
        {"weights/config.json": {"quantization_config": {"quant_method": "bitsandbytes"}}},
        _dump(),
        "has a `quantization_config`",
    ),
    "heads that do not divide the width of a model": (
        {"weights/config.json": {"num_attention_heads": 5}},
        _dump(),
        "the checkpoint in weights cannot be loaded (",
    ),
    "more rotated dimensions than there are": (
        {
            "weights/config.json": {
                "rope_parameters": {
                    "rope_type": "default",
                    "rope_theta": 10000.0,
                    "partial_rotary_factor": 3.0,
                }
            }
        },
        _dump(),
        "the model does not run",
    ),
    "no heads": ({"weights/config.json": {"num_attention_heads": 0}}, _dump(), "cannot be loaded"),
    "heads that are words": (
        {"weights/config.json": {"num_attention_heads": "two"}},
        _dump(),
        "cannot be loaded",
    ),
    "an unknown architecture": (
        {"weights/config.json": {"model_type": "novel"}},
        _dump(),
        "cannot be loaded",
    ),
    "an activation that there is not": (
        {"weights/config.json": {"hidden_act": "x"}},
        _dump(),
        "cannot be loaded",
    ),
    "a negative vocabulary": (
        {"weights/config.json": {"vocab_size": -3}},
        _dump(),
        "cannot be loaded",
    ),
    "another inner width than the weights'": (
        {"weights/config.json": {"intermediate_size": 8}},
        _dump(),
        "cannot be loaded",
    ),
    "another width than the entry's": (
        {},
        _dump(shape=json.dumps({**SHAPE, "hidden_size": 64})),
        "for `hidden_size` config.json of the checkpoint says 32 where the entry says 64",
    ),
    "a layer more than there are weights": (
        {"weights/config.json": {"num_hidden_layers": 4}},
        _dump(shape=json.dumps({**SHAPE, "layers": 4})),
        "lacks 12 weights",
    ),
    "no config.json": ({"weights/config.json": None}, _dump(), "is missing or no JSON object"),
    "a page for config.json": (
        {"weights/config.json": b"<html>"},
        _dump(),
        "is missing or no JSON object",
    ),
    "no weights": ({"weights/model.safetensors": None}, _dump(), "weights holds no weights"),
    "weights cut short": (
        {"weights/model.safetensors": b"\x10\x00\x00"},
        _dump(),
        "holds no weights that can be read",
    ),
    "a page for weights": (
        {"weights/model.safetensors": b"<html>" * 99},
        _dump(),
        "holds no weights that can be read",
    ),
    "no tokenizer": ({"weights/tokenizer.json": None}, _dump(), "there is no file of a vocabulary"),
    "a page for a tokenizer": (
        {"weights/tokenizer.json": b"<html>"},
        _dump(),
        "the tokenizer in weights cannot",
    ),
    "a tokenizer of another kind": (
        {"weights/tokenizer.json": b"[]"},
        _dump(),
        "the tokenizer in weights cannot",
    ),
    "windows longer than the context": (
        {},
        _dump(protocol=json.dumps({**PROTOCOL, "window_characters": 900, "windows": 1})),
        "was made for 128; lower `sampling.window_characters`",
    ),
    "a text too short": ({"text.txt": b"short"}, _dump(), "sampling.windows"),
    "no text": ({"text.txt": None}, _dump(), "text.txt"),
    "a text that is no UTF-8": ({"text.txt": b"\xff" * 999}, _dump(), "text.txt"),
    "a folder that may not be written": ({"made": b""}, _dump(), "made"),
    "a text too short to train on": ({"text.txt": b"short"}, _pretrain(), "the training text has"),
    "a vocabulary without room for bytes": ({}, _pretrain(vocabulary=200), "make it at least 257"),
    "a recipe whose heads do not divide": ({}, _pretrain(hidden_size=9), "make it a multiple"),
    "a recipe for a GPU that is not there": ({}, _pretrain(device="cuda"), "PyTorch sees no GPU"),
    "an export that is none": ({"corpus": b"plain words"}, _clean("mediawiki"), "corpus"),
    "no corpus": ({}, _clean("text"), "corpus"),
    "an empty corpus": ({"corpus": b""}, _clean("text"), "corpus"),
    "a lock that is not there": (
        {},
        FETCH_CHECKPOINT,
        "cannot be fetched, since lock.yaml does not have it",
    ),
    "a lock without the revision": (
        {"lock.yaml": b"revisions: {}"},
        FETCH_CHECKPOINT,
        "cannot be fetched, since lock.yaml does not have it",
    ),
    "a lock that is none": ({"lock.yaml": b"[]"}, FETCH_CHECKPOINT, "lock.yaml is no lock file"),
    "a download offline": (
        {"lock.yaml": PINNED.encode()},
        FETCH_CHECKPOINT,
        "HF_HUB_OFFLINE forbids to ask for it",
    ),
    "no table": ({}, DRAW, "tables/estimates.csv is missing"),
    "a table without its digest": (
        {"tables/estimates.csv": COLUMNS.encode()},
        DRAW,
        "tables/estimates.csv has no .sha256 beside it",
    ),
    "an empty table": (_estimates(), DRAW, "tables/estimates.csv cannot be read"),
    "a table without rows": (_estimates(COLUMNS), DRAW, "tables/estimates.csv has 0 rows"),
    "a table of other columns": (
        _estimates("a,b", "1,2"),
        DRAW,
        "tables/estimates.csv has 1 rows of the columns a, b",
    ),
    "a table of words": (
        _estimates(COLUMNS, "mine,decoder,main,,,0,0,anisotropy,all,many,,,,,9,9,,4"),
        DRAW,
        "tables/estimates.csv cannot be read",
    ),
    "a table of another model": (
        _estimates(COLUMNS, "other,decoder,main,,,0,0,anisotropy,all,0.5,,,,,9,9,,4"),
        DRAW,
        "tables/estimates.csv has no model 'mine'",
    ),
}
# Name -> the source, and the sentence.
FETCHED: dict[str, tuple[Mapping[str, object], str]] = {
    "a corpus that is not there": ({"urls": ["nowhere.txt"]}, "nowhere.txt"),
    "a corpus of another hash": ({"urls": ["text.txt"], "sha256": "0" * 64}, "sha256"),
    "a corpus of another size": ({"urls": ["text.txt"], "bytes": 3}, "bytes"),
    "a corpus by an unknown protocol": ({"urls": ["gopher://x/y"]}, "gopher"),
}
ENDPOINTS = {
    "an endpoint that is no address": "hub",
    "an endpoint of files": "file:///etc",
    "half an endpoint": "http://[::1",
    "an endpoint of no port": "http://hub:words",
}
VARIABLES = {
    **{name: _fetched(source) for name, (source, _) in FETCHED.items()},
    **{name: {"HF_ENDPOINT": address} for name, address in ENDPOINTS.items()},
}


def cases() -> list[Case]:
    """All rows of all tables."""
    demo = {"case.yaml": WANTED}
    rows = [
        Case(f"configuration: {name}", said, READING, {"case.yaml": _bytes(content)})
        for name, (content, said) in CONFIGURATIONS.items()
    ]
    rows += [
        Case(f"model: {name}", said, READING, {**demo, "config/models/mine.yaml": _bytes(content)})
        for name, (content, said) in MODELS.items()
    ]
    rows += [
        Case(name, said, PLANNING, files, arguments)
        for name, (files, arguments, said) in PLANS.items()
    ]
    rows += [Case(name, "the variable HF_ENDPOINT is no address", READING) for name in ENDPOINTS]
    rows += [
        Case(name, said, JOB, changes, arguments)
        for name, (changes, arguments, said) in JOBS.items()
    ]
    return rows + [Case(name, said, JOB, {}, FETCH) for name, (_, said) in FETCHED.items()]


def _bytes(content: bytes | str) -> bytes:
    return content.encode() if isinstance(content, str) else content
