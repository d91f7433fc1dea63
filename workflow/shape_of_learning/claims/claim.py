"""A claim of a paper: its sentence, the statistic and the criteria that decide it, its models and its choices.

The Snakefile reads claims at every start, so that nothing slow is imported here.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import product
from typing import Any, NamedTuple

from shape_of_learning.metrics.measure_entry import Measure
from shape_of_learning.metrics.registry import find_measure, list_measure_names

# Options by the names of choices; the first option is the one that others are compared with.
Choices = Mapping[str, Sequence[str]]
# Options of choices whose names are not plain words.
OPTION_WORDS = {
    ("text", "own"): "the run's windows",
    ("text", "resampled"): "other windows",
    ("token_types", "all"): "all vectors",
    ("token_types", "one"): "one vector of each type",
    ("sequence", "all"): "a vector of each token",
    ("sequence", "last_token"): "the last token of each window",
    ("sequence", "mean"): "the mean of each window",
    **{(rows, "keep"): "kept" for rows in ("first_token", "special_tokens", "massive_tokens")},
    **{(rows, "drop"): "left out" for rows in ("first_token", "special_tokens", "massive_tokens")},
}


COMPARISONS = ("above", "below", "at_least", "at_most", "not_above", "not_below")
UPWARDS = ("above", "at_least", "not_below")
INCLUSIVE = ("at_least", "at_most", "not_above", "not_below")
TOGETHER = "together"
SHARES = {
    "all": "all cases",
    "any": "at least one case",
    "most": "more than half of the families",
    TOGETHER: "all cases together",
}
Share = str | int | float


class Criterion(NamedTuple):
    """A named number, a comparison and a bound; without a `share` of its own, the share of the rule applies."""

    number: str
    comparison: str
    bound: float
    share: Share | None = None

    @property
    def is_upwards(self) -> bool:
        """Whether the number must be large."""
        return self.comparison in UPWARDS

    @property
    def is_hurdle(self) -> bool:
        """Whether it asks only that something is not shown."""
        return self.comparison.startswith("not_")


class Rule(NamedTuple):
    """Criteria that must all hold, or any of which must hold, in a share of the units."""

    criteria: tuple[Criterion, ...]
    share: Share = "all"
    is_any: bool = False

    @property
    def groups(self) -> list["Rule"]:
        """The criteria that are counted together, a rule per share."""
        shared = tuple(criterion for criterion in self.criteria if criterion.share is None)
        single = [Rule((c,), c.share) for c in self.criteria if c.share is not None]
        return [*([self._replace(criteria=shared)] if shared else []), *single]


Condition = Sequence[Rule]  # of which one must hold


def read_condition(written: Any) -> tuple[Rule, ...]:
    """Read when ``claims.yaml`` says that a claim has a verdict: a rule, or a list of them."""
    return tuple(_read_rule(rule) for rule in (written if isinstance(written, list) else [written]))


def _read_rule(written: Mapping[str, Any]) -> Rule:
    single = {key: value for key, value in written.items() if key != "in"}
    criteria = written.get("all_of") or written.get("any_of") or [single]
    share, is_any = written.get("in", "all"), "any_of" in written
    return Rule(tuple(_read_criterion(criterion) for criterion in criteria), share, is_any)


def _read_criterion(written: Mapping[str, Any]) -> Criterion:
    comparison = next(key for key in COMPARISONS if key in written)
    number, bound = written.get("number", ""), float(written[comparison])
    return Criterion(number, comparison, bound, written.get("in"))


class ClaimVerdict(StrEnum):
    """What the evidence says of a claim."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    DEPENDS = "depends on the estimator"
    UNDECIDED = "undecided"
    OUTSIDE = "outside the claim"
    NOT_MEASURED = "not measured"


DECIDED = (ClaimVerdict.SUPPORTED, ClaimVerdict.CONTRADICTED)
UNJUDGED = (ClaimVerdict.OUTSIDE, ClaimVerdict.NOT_MEASURED)


@dataclass(frozen=True)
class Claim:
    """An entry of ``claims.yaml``.

    Attributes
    ----------
    name, sentence, where : str
        The key; the claim in our words; the place in the paper.
    statistic : str
        A function of the paper's ``statistics.py`` or of :mod:`shape_of_learning.claims.statistics`.
    arguments : mapping
        Arguments of that function other than `estimators`.
    estimators : sequence of str
        The estimators of the paper, of which the statistic takes the values; empty if it reads other tables.
    other_estimators : sequence of sequence of str
        Estimators of the same quantity, which take the places of `estimators`. If their verdict is the opposite, the
        claim depends on the estimator. If values by `estimators` are suspect, the other estimators decide.
    robustness : mapping of str to sequence of str
        Further estimators in these places, such as ``held out`` ones, whose verdicts are reported beside the verdict
        of the claim.
    reads : sequence of str
        Other tables that the statistic reads, by their names under `reads` in paper.yaml.
    supported, contradicted : sequence of Rule
        The rules for each verdict; see :mod:`shape_of_learning.claims.criteria`.
    numbers : mapping of str to str
        Words for each number of the statistic, ``NAME: DEFINITION`` or a name alone; the key ``value`` stands for the
        number of a statistic that has only one.
    conclusion : mapping
        The conclusion if the claim is `supported` or `contradicted`, as the end of a sentence that begins with the
        numbers; or a conclusion for each number that may contradict the claim.
    models : str or sequence of str
        Names of entries, or a group of the run's models: ``decoders``, ``encoders``, ``all`` (both), ``fine_tunings``
        or ``twins``.
    checkpoints : {"last", "training"}
        The checkpoints of each model that are judged: the last sound one, or all sound ones with a step.
    seen : mapping
        The part of a training that must be measured, in shares of the training: a sound step at or before ``from``,
        and one at or after ``to``. Steps before ``from_step``, step 0 and steps at which weights have not moved yet do
        not count. A model without that part is outside the claim.
    matters : str
        The reason why a smaller effect would not matter.
    changed : mapping
        Day -> the change of the statistic or the criteria after results had been seen.
    min_models : int
        The number of models that must be measured; seeds of a training count once. 0 stands for all named models, or
        for one model of a group.
    applies_to : str
        The group of models by which the claim is judged in a run without any of the named models.
    on_estimators : bool
        Whether the claim is about the agreement of estimators. Suspect values count then, but the verdict must be the
        same without the estimator that has them.
    average_over : {"block_outputs", "all_layers"}
        The layers that count.
    of_blocks : bool
        Whether the statistic takes blocks only, whichever layers are averaged over.
    paper : str
        The folder of the paper.
    """

    name: str
    sentence: str
    where: str
    statistic: str
    supported: Condition
    contradicted: Condition
    models: str | Sequence[str]
    estimators: Sequence[str] = ()
    numbers: Mapping[str, str] = field(default_factory=dict)
    conclusion: Mapping[str, str | Mapping[str, str]] = field(default_factory=dict)
    other_estimators: Sequence[Sequence[str]] = ()
    robustness: Mapping[str, Sequence[str]] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    reads: Sequence[str] = ()
    checkpoints: str = "last"
    seen: Mapping[str, float] = field(default_factory=dict)
    matters: str = ""
    changed: Mapping[Any, str] = field(default_factory=dict)
    min_models: int = 0
    applies_to: str = ""
    on_estimators: bool = False
    average_over: str = "block_outputs"
    of_blocks: bool = False
    paper: str = ""

    @property
    def needed_models(self) -> int:
        """How many models must be measured."""
        return self.min_models or (1 if isinstance(self.models, str) else len(self.models))

    @property
    def all_estimators(self) -> list[str]:
        """Those of the paper, and all that may stand in their place."""
        substitutes = [*self.other_estimators, *self.robustness.values()]
        names = (name for estimators in substitutes for name in estimators)
        return list(dict.fromkeys([*self.estimators, *names]))

    def find_condition(self, verdict: ClaimVerdict) -> Condition:
        """Return when the claim has a verdict."""
        return self.supported if verdict == ClaimVerdict.SUPPORTED else self.contradicted

    def name_number(self, key: str) -> str:
        """Return the short name of a number, which its definition follows in `numbers`."""
        if key not in self.numbers and len(self.numbers) == 1:
            key = next(iter(self.numbers))
        words = self.numbers.get(key, "the statistic" if key in ("", "value") else f"`{key}`")
        name, colon, _ = words.partition(": ")
        return name if colon else strip_brackets(words)

    def format_criteria(self, criteria: Sequence[Criterion], *, is_any: bool) -> str:
        """Write criteria, such as "mid-network peak is above 0.005"."""
        words = [
            f"{self.name_number(criterion.number)} is {format_bound(criterion.comparison, criterion.bound)}"
            for criterion in criteria
        ]
        return (" or " if is_any else " and ").join(words)

    def format_condition(self, verdict: ClaimVerdict) -> str:
        """Write when the claim has a verdict, such as "in all cases growth is above 0.05"."""
        rules = []
        for rule in self.find_condition(verdict):
            groups = [
                f"{format_share(group.share)} {self.format_criteria(group.criteria, is_any=group.is_any)}"
                for group in rule.groups
            ]
            rules.append(", and ".join(groups))
        return "; or ".join(rules)

    def find_conclusion(self, verdict: ClaimVerdict, met: Collection[str]) -> str:
        """Return the conclusion of a verdict, from the numbers that meet its criteria; empty if none is written."""
        written = self.conclusion.get(verdict, "")
        if isinstance(written, str):
            return written
        conclusions = (words for number, words in written.items() if number in met)
        return " and ".join(dict.fromkeys(conclusions))

    def count_models(self, names: Collection[str], run: Mapping[str, "EvidenceModel"]) -> int:
        """Count models: each one if all that are named are needed, else seeds of a training once."""
        if not (self.min_models or isinstance(self.models, str)):
            return len(names)
        return len({(run[name].training if name in run else "") or name for name in names})

    def restrict_to_run(self, run: Mapping[str, "EvidenceModel"]) -> "Claim":
        """Return the claim for a run, which may have none of its models."""
        if not self.applies_to or any(name in run for name in self.models):
            return self
        return replace(self, models=self.applies_to, min_models=1)

    def list_models(self, run: Mapping[str, "EvidenceModel"]) -> list[str]:
        """Return the models of a run that the claim is about, in its order or the run's."""
        if isinstance(self.models, str):
            return [name for name, model in run.items() if self.models in model.groups]
        return [name for name in self.models if name in run]


@dataclass(frozen=True)
class EvidenceModel:
    """A model of a run, as claims see it.

    Attributes
    ----------
    name, role : str
        As in its entry.
    layers : int
        Blocks; hidden states are 0 to `layers`.
    kind : {"pretrained", "twin", "fine_tuning"}
        Trained by itself, a twin trained with one more term in the loss, or fine-tuned from another model.
    origin : str
        The model that a twin is compared with, or that a fine-tuning began with.
    warmup_steps : int, optional
        Of its learning rate; None if unknown.
    treatment : str
        The term of a twin's loss, or the task of a fine-tuning. Models that differ only in a seed have the same.
    last_step : int, optional
        Where its training ended; None if unknown.
    family : str
        As in its entry; a model without one is a family of its own.
    training : str
        Models with the same one differ only in a seed.
    width : int
        Coordinates of its hidden states; 0 if unknown.
    label : str
        What figures call it; its name if empty.
    is_from_scratch : bool
        Whether its step 0 is known to be untrained; a user's own folders may hold a fine-tuning.
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
    width: int = 0
    label: str = ""
    is_from_scratch: bool = False

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of models that a claim may be about and that include this one."""
        return ("all", f"{self.role}s") if self.kind == "pretrained" else (f"{self.kind}s",)


@dataclass(frozen=True)
class ClaimGrid:
    """A claim, and the choices of its analysis.

    Attributes
    ----------
    claim : Claim
    choices : Choices
        The first option of each choice belongs to the reference. A choice that does not touch the claim has no other.
    decided_by : mapping of str to str
        Estimator of the claim -> the choice whose option takes the estimator's place.
    models : sequence of str
        The models that are measured for the claim.
    measures : mapping of str to Measure
        All measures of these models, by their names in tables.
    less : str
        The difference between the first specification and the verdict on the claim's page, which has more data; empty
        if both have the same.
    """

    claim: Claim
    choices: Choices
    decided_by: Mapping[str, str]
    models: Sequence[str] = ()
    measures: Mapping[str, Measure] = field(default_factory=dict)
    less: str = ""

    @property
    def free_choices(self) -> dict[str, Sequence[str]]:
        """Choices that have more than one option."""
        return {name: options for name, options in self.choices.items() if len(options) > 1}

    def list_specifications(self) -> list[dict[str, str]]:
        """List every combination of options; the first of all is the reference."""
        combinations = product(*self.choices.values())
        return [dict(zip(self.choices, options, strict=True)) for options in combinations]

    def choose_estimators(self, specification: Mapping[str, str]) -> dict[str, str]:
        """Return for each estimator of the claim the one that takes its place."""
        deciding = {name: self.decided_by.get(name, "") for name in self.claim.estimators}
        return {name: specification.get(choice, name) for name, choice in deciding.items()}


class ClaimsJob(NamedTuple):
    """The claims of a paper that a job judges.

    Attributes
    ----------
    title : str
        The title of the paper.
    claims : tuple of Claim
    models : tuple of EvidenceModel
        The models of the run.
    near_duplicate_limits : mapping of str to float or None
        Intrinsic dimension -> the share of near-duplicates up to which it can be trusted; None if copies do not matter.
    """

    title: str
    claims: tuple[Claim, ...]
    models: tuple[EvidenceModel, ...]
    near_duplicate_limits: Mapping[str, float | None]


class SpecificationsJob(NamedTuple):
    """A claim that a job judges under all choices of its analysis.

    Attributes
    ----------
    grid : ClaimGrid
    models, near_duplicate_limits
        As in :class:`ClaimsJob`.
    sample : str
        The windows that are measured, in the words of a figure.
    """

    grid: ClaimGrid
    models: tuple[EvidenceModel, ...]
    near_duplicate_limits: Mapping[str, float | None]
    sample: str


def strip_brackets(words: str) -> str:
    """Leave out brackets with the words in them.

    Examples
    --------
    >>> strip_brackets("the rise (of blocks (all)) less the fall (ln)")
    'the rise less the fall'
    """
    while (shorter := re.sub(r" ?\([^()]*\)", "", words)) != words:
        words = shorter
    return words


def name_criteria_columns(verdict: str) -> tuple[str, ...]:
    """Name the columns of a table of criteria, whose bounds are those of the verdict."""
    bound = "Bound to contradict" if verdict == ClaimVerdict.CONTRADICTED else "Bound"
    return "Number", "Of", "Value", "95 % interval", bound, "Met"


def format_bound(comparison: str, bound: float) -> str:
    """Write a bound, such as "above 0.5"."""
    return f"{comparison.replace('not_', 'not_clearly_').replace('_', ' ')} {bound:g}"


def format_share(share: Share) -> str:
    """Write in how many units criteria must hold, such as "in all cases"."""
    if isinstance(share, str):
        return f"in {SHARES[share]}"
    return f"in at least {f'{100 * share:g} % of the families' if isinstance(share, float) else f'{share} cases'}"


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
