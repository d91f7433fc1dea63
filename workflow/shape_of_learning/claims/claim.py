"""A claim of a paper: its sentence, the statistic and the rule that decide it, its models and its choices.

The Snakefile reads claims at every start, so that nothing slow is imported here.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from shape_of_learning.metrics.measure_entry import Measure
from shape_of_learning.metrics.registry import find_measure, list_measure_names

# By the names of choices, the options of each, of which the first is the one that others are compared with.
Choices = Mapping[str, Sequence[str]]
# Options of choices in words, where they are not yet.
OPTION_WORDS = {
    ("text", "own"): "the run's windows",
    ("text", "resampled"): "other windows",
    ("token_types", "all"): "all vectors",
    ("token_types", "one"): "one vector of each type",
    **{(rows, "keep"): "kept" for rows in ("first_token", "special_tokens", "massive_tokens")},
    **{(rows, "drop"): "left out" for rows in ("first_token", "special_tokens", "massive_tokens")},
}


@dataclass(frozen=True)
class Claim:
    """An entry of ``claims.yaml``.

    Attributes
    ----------
    name, sentence, where : str
        Its key; what is claimed, in our words; where in the paper.
    statistic : str
        A function of the paper's ``statistics.py`` or of :mod:`shape_of_learning.claims.statistics`.
    arguments : mapping
        Of that function, besides `estimators`.
    estimators : sequence of str
        What it is a statistic of, as in the paper; none where it is of other tables.
    others : sequence of sequence of str
        Estimators of the same quantity, each of which it is judged by, too: an answer that is not theirs
        depends on the estimator.
    also : mapping of str to sequence of str
        What is asked besides, such as ``held out``: the estimators in the place of the claim's.
    reads : sequence of str
        Other tables that it reads, by the names that paper.yaml `reads`.
    rule : mapping
        ``supported`` and ``contradicted``, a condition each, see :mod:`shape_of_learning.claims.rules`.
    parts : mapping of str to str
        What each part of the statistic is, in the words of pages; ``value`` of a single one.
    models : str or sequence of str
        Names of entries, all of which it needs, or those of the run that are
        ``decoders``, ``encoders``, ``all`` (of both), ``fine_tunings`` or ``twins``.
    checkpoints : {"last", "training"}
        At which of them it is judged: the last sound one, or sound ones with a step.
    seen : mapping
        Which part of a training must have been seen, in shares of it: a sound step not after ``from``, and one
        not before ``to``. Steps before ``from_step`` do not count. A model without that part is outside the
        claim.
    matters : str
        Why a smaller effect would not matter.
    changed : mapping
        Day -> what was changed of the statistic or the rule after results had been seen.
    needs : int
        How many of the models must be measured, of which seeds of a training are one; 0 for all that are named,
        or one of a group.
    asked_of : str
        A group of which it is asked in a run that has none of the models that are named.
    on_estimators : bool
        Whether it is on what estimators say, so that suspect values count, too.
    average_over : {"block_outputs", "all_layers"}
        Which layers count.
    of_blocks : bool
        Whether the statistic is of blocks alone, whichever layers are averaged over.
    paper : str
        The folder of its paper.
    """

    name: str
    sentence: str
    where: str
    statistic: str
    rule: Mapping[str, Any]
    models: str | Sequence[str]
    estimators: Sequence[str] = ()
    parts: Mapping[str, str] = field(default_factory=dict)
    others: Sequence[Sequence[str]] = ()
    also: Mapping[str, Sequence[str]] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    reads: Sequence[str] = ()
    checkpoints: str = "last"
    seen: Mapping[str, float] = field(default_factory=dict)
    matters: str = ""
    changed: Mapping[Any, str] = field(default_factory=dict)
    needs: int = 0
    asked_of: str = ""
    on_estimators: bool = False
    average_over: str = "block_outputs"
    of_blocks: bool = False
    paper: str = ""

    @property
    def min_models(self) -> int:
        """How many models must be measured."""
        return self.needs or (1 if isinstance(self.models, str) else len(self.models))

    @property
    def all_estimators(self) -> list[str]:
        """Those of the paper, and all that may stand in their place."""
        others = [*self.others, *self.also.values()]
        return list(dict.fromkeys([*self.estimators, *(name for of in others for name in of)]))

    def count_models(self, names: Collection[str], run: Mapping[str, "EvidenceModel"]) -> int:
        """How many models count of those it needs: of all that are named each, else seeds of a training once."""
        if not (self.needs or isinstance(self.models, str)):
            return len(names)
        return len({(run[name].training if name in run else "") or name for name in names})

    def restrict_to_run(self, run: Mapping[str, "EvidenceModel"]) -> "Claim":
        """The claim as it is asked of a run, which may have none of its models."""
        if not self.asked_of or any(name in run for name in self.models):
            return self
        return replace(self, models=self.asked_of, needs=1)

    def list_models(self, run: Mapping[str, "EvidenceModel"]) -> list[str]:
        """Name the models of a run that it is on, in its order or the run's."""
        if isinstance(self.models, str):
            return [name for name, model in run.items() if self.models in model.groups]
        return [name for name in self.models if name in run]


@dataclass(frozen=True)
class EvidenceModel:
    """What a run knows of one of its models.

    Attributes
    ----------
    name, role : str
        As in its entry.
    layers : int
        Blocks; hidden states are 0 to `layers`.
    kind : {"pretrained", "twin", "fine_tuning"}
        Whether it was trained by itself, beside another one with a term more, or further from another one.
    origin : str
        The model beside or from which it was trained.
    warmup_steps : int, optional
        Of its learning rate; None where nothing tells.
    treatment : str
        What was done to a twin or on which task it was fine-tuned: those that differ in nothing else but a
        seed have it in common.
    last_step : int, optional
        Where its training ended; None where nothing tells.
    family : str
        As in its entry; without one it is its own.
    training : str
        Models with the same one differ in nothing but a seed.
    """

    name: str
    role: str
    layers: int
    kind: str = "pretrained"
    origin: str = ""
    warmup_steps: int | None = None
    treatment: str = ""
    last_step: int | None = None
    family: str = ""
    training: str = ""

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of models that a claim may be on and that have it."""
        return ("all", f"{self.role}s") if self.kind == "pretrained" else (f"{self.kind}s",)


@dataclass(frozen=True)
class ClaimGrid:
    """A claim, and the choices of its analysis.

    Attributes
    ----------
    claim : Claim
    choices : Choices
        Of each the first option is that of the reference; it is the only one where a choice does not touch
        the claim.
    decided_by : mapping of str to str
        Estimator that the claim names -> the choice whose option takes its place.
    models : sequence of str
        Those that are measured for it.
    measures : mapping of str to Measure
        All that is measured of them, by the names of tables.
    less : str
        What the first specification has less than the verdict on the claim's page; empty if it is the same.
    """

    claim: Claim
    choices: Choices
    decided_by: Mapping[str, str]
    models: Sequence[str] = ()
    measures: Mapping[str, Measure] = field(default_factory=dict)
    less: str = ""

    def make_job(self) -> dict[str, Any]:
        """What a job must know to judge it, as plain values."""
        own = {key: getattr(self, key) for key in ("choices", "decided_by", "less")}
        return {"claim": vars(self.claim), **own}

    @property
    def free_choices(self) -> dict[str, Sequence[str]]:
        """Those that have more than one option."""
        return {name: options for name, options in self.choices.items() if len(options) > 1}

    def list_specifications(self) -> list[dict[str, str]]:
        """List every combination of options; the first of all is the reference."""
        combinations = product(*self.choices.values())
        return [dict(zip(self.choices, options, strict=True)) for options in combinations]

    def choose_estimators(self, specification: Mapping[str, str]) -> dict[str, str]:
        """What stands for each estimator of the claim."""
        deciding = {name: self.decided_by.get(name, "") for name in self.claim.estimators}
        return {name: specification.get(choice, name) for name, choice in deciding.items()}


def format_choice(choice: str) -> str:
    """Write a choice in words."""
    return choice.replace("_", " ")


def format_option(choice: str, option: str) -> str:
    """Write an option in words: an estimator by its label and the settings that it has there."""
    name, _, settings = option.rstrip(")").partition("(")
    if name in list_measure_names():
        return find_measure(name).label + (f" ({settings.replace('=', ' = ')})" if settings else "")
    if choice.endswith("_share"):
        return f"{100 * float(option):g} %"
    return OPTION_WORDS.get((choice, option), option.replace("_", " "))
