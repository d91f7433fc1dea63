"""What is refused while the run is planned."""

import json
from collections.abc import Mapping
from types import MappingProxyType

from refusals import NAME, WANTED

NOTHING: Mapping[str, object] = MappingProxyType({})
PLACE = {"mine": {"repository": "a/b", "role": "decoder", "layers": 2, "hidden_size": 16}}
ON_HUB = {"config/models/mine.yaml": PLACE, "case.yaml": WANTED}


def _checkpoint(**changes: object) -> dict[str, object]:
    config = {"model_type": "gpt_neox", "num_hidden_layers": 2, "hidden_size": 16, **changes}
    return {
        "weights/config.json": json.dumps(config).encode(),
        "config/models/mine.yaml": {"mine": {"path": "weights"}},
        "case.yaml": WANTED,
    }


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
    **{
        name: (_checkpoint(**{key: value}), (), f"for `{key}`, which cannot be")
        for name, key, value in (
            ("no number of layers", "num_hidden_layers", "many"),
            ("negative layers", "num_hidden_layers", -1),
            ("true layers", "num_hidden_layers", True),
            ("no width", "hidden_size", 0),
            ("neither encoder nor decoder", "model_type", ["x"]),
        )
    },
    "quantised weights": (
        _checkpoint(quantization_config={"load_in_4bit": True}),
        (),
        "config.json of the checkpoint has a `quantization_config`",
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
                "mine": {**PLACE["mine"], "training": {"revision": "step{step}", "steps": "log"}}
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
