"""A claim of a paper: its sentence, the statistic and the criteria that decide it, its models and its choices.

The Snakefile imports this module at every start, so this module imports nothing slow.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import product
from typing import Any, NamedTuple

from shape_of_learning.metrics.measure_entry import Measure
from shape_of_learning.metrics.registry import find_measure, list_measure_names

# Options by the names of choices; the other options are compared with the first one.
Choices = Mapping[str, Sequence[str]]
# Words for options whose names are not plain words.
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
    """A named number, a comparison and a bound; the share of the rule applies if `share` is None."""

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
        """Whether the criterion only requires that the evidence does not show something."""
        return self.comparison.startswith("not_")


class Rule(NamedTuple):
    """Criteria of which all must hold, or at least one must hold, in a share of the units."""

    criteria: tuple[Criterion, ...]
    share: Share = "all"
    is_any: bool = False

    @property
    def groups(self) -> list["Rule"]:
        """A rule of the criteria without a share of their own, and a rule for each other criterion."""
        common_criteria = tuple(criterion for criterion in self.criteria if criterion.share is None)
        single_rules = [Rule((c,), c.share) for c in self.criteria if c.share is not None]
        if not common_criteria:
            return single_rules
        return [self._replace(criteria=common_criteria), *single_rules]


Condition = Sequence[Rule]  # at least one rule must hold


def read_condition(entry: Any) -> tuple[Rule, ...]:
    """Read the condition for a verdict, which ``claims.yaml`` writes as a rule or a list of rules."""
    rules = entry if isinstance(entry, list) else [entry]
    return tuple(_read_rule(rule) for rule in rules)


def _read_rule(entry: Mapping[str, Any]) -> Rule:
    criterion_entry = {key: value for key, value in entry.items() if key != "in"}
    criteria = entry.get("all_of") or entry.get("any_of") or [criterion_entry]
    return Rule(
        tuple(_read_criterion(criterion) for criterion in criteria),
        share=entry.get("in", "all"),
        is_any="any_of" in entry,
    )


def _read_criterion(entry: Mapping[str, Any]) -> Criterion:
    comparison = next(key for key in COMPARISONS if key in entry)
    return Criterion(
        entry.get("number", ""), comparison, float(entry[comparison]), share=entry.get("in")
    )


class ClaimVerdict(StrEnum):
    """The verdict of the evidence on a claim."""

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
    """A claim, as an entry of ``claims.yaml`` describes it.

    Attributes
    ----------
    name, sentence, where : str
        The key; the claim in our words; the place in the paper.
    statistic : str
        A function of the paper's ``statistics.py`` or of :mod:`shape_of_learning.claims.statistics`.
    arguments : mapping
        Arguments of that function other than `estimators`.
    estimators : sequence of str
        The estimators of the paper, whose values the statistic takes; empty if the statistic reads other tables.
    other_estimators : sequence of sequence of str
        Estimators of the same quantity, each list in the places of `estimators`. If their verdict is the opposite, the
        claim depends on the estimator. If the values of `estimators` are suspect, the other estimators decide.
    robustness : mapping of str to sequence of str
        Further estimators in the places of `estimators`, such as ``held out`` estimators. The page reports their
        verdicts beside the verdict on the claim.
    reads : sequence of str
        Other tables that the statistic reads, by their names under `reads` in paper.yaml.
    supported, contradicted : sequence of Rule
        The rules for each verdict; see :mod:`shape_of_learning.claims.criteria`.
    numbers : mapping of str to str
        Words for each number of the statistic, ``NAME: DEFINITION`` or a name alone. If the statistic has only one
        number, criteria may leave out its name, and its key may be ``value``.
    conclusion : mapping
        The conclusion if the claim is `supported` or `contradicted`, as the end of a sentence that begins with the
        numbers; or a conclusion for each number that may contradict the claim.
    models : str or sequence of str
        Names of entries, or a group of the run's models: ``decoders``, ``encoders``, ``all`` (both), ``fine_tunings``
        or ``twins``.
    checkpoints : {"last", "training"}
        The checkpoints of each model that count: the last good checkpoint, or all good checkpoints with a step.
    seen : mapping
        The part of a training that must be measured, in shares of the training: the run needs a good step at or before
        ``from``, and a good step at or after ``to``. Steps before ``from_step``, step 0 and steps at which weights
        have not moved yet do not count. A model without that part is outside the claim.
    matters : str
        The reason why a smaller effect would not matter.
    changed : mapping
        Day -> the change of the statistic or the criteria after results had been seen.
    min_models : int
        The number of models that must be measured; all seeds of a training count as one model. 0 stands for all named
        models, or for one model of a group.
    applies_to : str
        The group of models that decides in a run without any of the named models.
    on_estimators : bool
        Whether the claim is about the agreement of estimators. Suspect values count then, but the verdict must be the
        same without the estimators that have suspect values.
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
        """The estimators of the paper, and all estimators that may take their places."""
        substitutes = [*self.other_estimators, *self.robustness.values()]
        names = (name for estimators in substitutes for name in estimators)
        return list(dict.fromkeys([*self.estimators, *names]))

    def find_condition(self, verdict: ClaimVerdict) -> Condition:
        """Return the condition for a verdict, `supported` or `contradicted`."""
        return self.supported if verdict == ClaimVerdict.SUPPORTED else self.contradicted

    def name_number(self, key: str) -> str:
        """Return the short name of a number, without its definition."""
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
        """Write the condition for a verdict, such as "in all cases growth is above 0.05"."""
        rules = []
        for rule in self.find_condition(verdict):
            groups = [
                f"{format_share(group.share)} {self.format_criteria(group.criteria, is_any=group.is_any)}"
                for group in rule.groups
            ]
            rules.append(", and ".join(groups))
        return "; or ".join(rules)

    def find_conclusion(self, verdict: ClaimVerdict, met_numbers: Collection[str]) -> str:
        """Return the conclusion of a verdict from the numbers that meet its criteria; empty if the claim has none."""
        conclusion = self.conclusion.get(verdict, "")
        if isinstance(conclusion, str):
            return conclusion
        conclusions = (words for number, words in conclusion.items() if number in met_numbers)
        return " and ".join(dict.fromkeys(conclusions))

    def count_models(self, names: Collection[str], run: Mapping[str, "EvidenceModel"]) -> int:
        """Count models; all seeds of a training count as one model unless the claim needs every model that it names."""
        if not (self.min_models or isinstance(self.models, str)):
            return len(names)
        return len({(run[name].training if name in run else "") or name for name in names})

    def restrict_to_run(self, run: Mapping[str, "EvidenceModel"]) -> "Claim":
        """Return the claim about the group `applies_to` if a run has none of the claim's models, else the claim."""
        if not self.applies_to or self.list_models(run):
            return self
        return replace(self, models=self.applies_to, min_models=1)

    def list_models(self, run: Mapping[str, "EvidenceModel"]) -> list[str]:
        """Return the models of a run that the claim is about, in the order of the claim, or else of the run."""
        if isinstance(self.models, str):
            return [name for name, model in run.items() if self.models in model.groups]
        return [name for name in self.models if name in run]


@dataclass(frozen=True)
class EvidenceModel:
    """The properties of a model of a run that claims use.

    Attributes
    ----------
    name, role : str
        As in its entry.
    layers : int
        The number of blocks; hidden states are numbered from 0 to `layers`.
    kind : {"pretrained", "twin", "fine_tuning"}
        A model trained by itself, a twin trained with one more term in the loss, or a fine-tuning of another model.
    origin : str
        The model with which a twin is compared, or from which a fine-tuning began.
    warmup_steps : int, optional
        The number of steps in which the learning rate rises; None if unknown.
    treatment : str
        The term of a twin's loss, or the task of a fine-tuning. Models that differ only in a seed have the same
        treatment.
    last_step : int, optional
        The last step of its training; None if unknown.
    family : str
        As in its entry; a model without a family is a family of its own.
    training : str
        Models with the same training differ only in a seed.
    width : int
        The number of coordinates of its hidden states; 0 if unknown.
    label : str
        The name in figures; the model's name if empty.
    is_from_scratch : bool
        Whether its weights at step 0 are known to be untrained; a user's own folders may hold a fine-tuning.
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
        The first option of each choice belongs to the reference. A choice that does not affect the claim has one
        option.
    decided_by : mapping of str to str
        Estimator of the claim -> the choice whose option takes the estimator's place.
    models : sequence of str
        The models that are measured for the claim.
    measures : mapping of str to Measure
        All measures of these models, by their names in tables.
    less : str
        The data that the verdict on the claim's page has, but the first specification lacks; empty if both have the
        same.
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
        """List every combination of options; the first combination is the reference."""
        combinations = product(*self.choices.values())
        return [dict(zip(self.choices, options, strict=True)) for options in combinations]

    def choose_estimators(self, specification: Mapping[str, str]) -> dict[str, str]:
        """Return for each estimator of the claim the estimator that takes its place."""
        choices = {name: self.decided_by.get(name, "") for name in self.claim.estimators}
        return {name: specification.get(choice, name) for name, choice in choices.items()}


class ClaimsJob(NamedTuple):
    """The job that judges the claims of a paper.

    Attributes
    ----------
    title : str
        The title of the paper.
    claims : tuple of Claim
    models : tuple of EvidenceModel
        The models of the run.
    near_duplicate_limits : mapping of str to float or None
        Estimator of the intrinsic dimension -> the largest share of near-duplicates with which its values are
        trusted; None if copies do not matter.
    """

    title: str
    claims: tuple[Claim, ...]
    models: tuple[EvidenceModel, ...]
    near_duplicate_limits: Mapping[str, float | None]


class SpecificationsJob(NamedTuple):
    """The job that judges a claim under all choices of its analysis.

    Attributes
    ----------
    grid : ClaimGrid
    models, near_duplicate_limits
        As in :class:`ClaimsJob`.
    sample : str
        The windows that are measured, as a figure describes them.
    """

    grid: ClaimGrid
    models: tuple[EvidenceModel, ...]
    near_duplicate_limits: Mapping[str, float | None]
    sample: str


def strip_brackets(words: str) -> str:
    """Remove brackets with the words in them.

    Examples
    --------
    >>> strip_brackets("the rise (of blocks (all)) less the fall (ln)")
    'the rise less the fall'
    """
    while (shorter := re.sub(r" ?\([^()]*\)", "", words)) != words:
        words = shorter
    return words


def name_criteria_columns(verdict: str) -> tuple[str, ...]:
    """Name the columns of the table of criteria on a claim with this verdict."""
    bound = "Bound to contradict" if verdict == ClaimVerdict.CONTRADICTED else "Bound"
    return "Number", "Of", "Value", "95 % interval", bound, "Met"


def format_bound(comparison: str, bound: float) -> str:
    """Write a bound, such as "above 0.5"."""
    return f"{comparison.replace('not_', 'not_clearly_').replace('_', ' ')} {bound:g}"


def format_share(share: Share) -> str:
    """Write in how many units criteria must hold, such as "in all cases"."""
    if isinstance(share, str):
        return f"in {SHARES[share]}"
    if isinstance(share, float):
        return f"in at least {100 * share:g} % of the families"
    return f"in at least {share} case{'s' * (share != 1)}"


def format_choice(choice: str) -> str:
    """Write a choice in words."""
    return choice.replace("_", " ")


def format_option(choice: str, option: str) -> str:
    """Write an option in words: an estimator as its label with its settings."""
    name, _, settings = option.rstrip(")").partition("(")
    if name in list_measure_names():
        return find_measure(name).label + (f" ({settings.replace('=', ' = ')})" if settings else "")
    if choice.endswith("_share"):
        return f"{100 * float(option):g} %"
    return OPTION_WORDS.get((choice, option), option.replace("_", " "))
