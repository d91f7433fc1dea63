"""Configurations that are refused as they are read."""

from refusals import GROWS, NAME, NO_TEXT, TWICE, bomb

RUN = "configuration key `run` is"

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
        "training_steps: {demo-encoder-topic: [32]}",
        "names `demo-encoder-topic`, of which steps 0 and 32, the first and the last one, are drawn",
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
    "laughs": (bomb(), GROWS),
    "a list in itself": (b"models: &a [*a]\n", GROWS),
    "huge": (b"#" * 11_000_000 + b"\nseed: 1\n", "has more than 10,000,000 bytes"),
    "a tag of Python": (b"seed: !!python/tuple [1]\n", "not valid YAML"),
}
