"""Entries of models that are refused as they are read."""

import json

from refusals import GROWS, NAME, NO_TEXT, TWICE, bomb

REVISION = "must be a branch, tag or commit as git names them"
LABEL = "`label` must be 1 to 60 Latin, Greek or Cyrillic letters"
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
        "`pretraining.regulariser` is 'cosin', but must be one of `none`, `cosine`, `mse`",
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
    "laughs": (bomb(), GROWS),
    "an entry in itself": ("mine: &m {path: *m}", GROWS),
    "very deep": ("mine: " + "[" * 3000, "mine.yaml is not valid YAML in UTF-8"),
    "huge": (b"#" * 11_000_000, "mine.yaml has more than 10,000,000 bytes"),
    "empty": (b"", "unknown model `mine`"),
    "a mark at the beginning alone": (b"\xef\xbb\xbf", "unknown model `mine`"),
}
