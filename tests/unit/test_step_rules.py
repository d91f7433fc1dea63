"""Steps that a rule chooses, and the names that they have."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shape_of_learning.plan.revision_template import RevisionTemplate
from shape_of_learning.plan.step_rules import StepRule

PYTHIA = [0, *(2**i for i in range(10)), *range(1000, 143001, 1000)]
offers = st.lists(st.integers(0, 10**6), min_size=1, unique=True)


def test_log_takes_one_step_per_doubling_of_what_pythia_offers():
    chosen = StepRule("log").choose(PYTHIA)
    assert chosen == [0, *(2**i for i in range(10)), 1000, 2000, 4000, 8000, 16000, 33000, 66000,
                      131000, 143000]  # fmt: skip


def test_log_with_a_number_is_evenly_spaced_in_ratios():
    chosen = StepRule("log", 8).choose(PYTHIA)
    assert chosen[0] == 0
    assert chosen[-1] == 143000
    assert len(chosen) == 8
    ratios = [math.log(b / a) for a, b in itertools.pairwise(chosen[1:])]
    # The even ratio is 143000^(1/6); what is offered lies within a factor of sqrt(2) of each target.
    assert ratios == pytest.approx([math.log(143000) / 6] * 6, abs=math.log(2))


def test_linear_is_evenly_spaced():
    chosen = StepRule("linear", 12).choose(range(0, 143001, 1000))
    assert chosen == [13000 * i for i in range(12)]


@given(offers, st.sampled_from([StepRule("log"), StepRule("log", 5), StepRule("linear", 7)]))
def test_a_rule_chooses_what_is_offered_with_both_ends_and_not_twice(offered, rule):
    chosen = rule.choose(offered)
    assert set(chosen) <= set(offered)
    assert chosen == sorted(set(chosen))
    assert {min(offered), max(offered)} <= set(chosen)
    assert rule.points is None or len(chosen) <= max(2, rule.points)


@pytest.mark.parametrize(
    ("written", "rule"),
    [
        ("log", StepRule("log")),
        ({"log": 8}, StepRule("log", 8)),
        ({"linear": 20}, StepRule("linear", 20)),
        ([1, 2], None),
    ],
)
def test_rules_are_read_as_the_configuration_writes_them(written, rule):
    assert StepRule.parse(written) == rule


@pytest.mark.parametrize(
    ("pattern", "name", "read"),
    [
        ("step{step}", "step1000", (1000, None)),
        ("step-{kilosteps}k-token-{gigatokens}B", "step-240k-token-503B", (240_000, 503 * 10**9)),
        ("stage1-step{step}-tokens{gigatokens}B", "stage1-step1000-tokens3B", (1000, 3 * 10**9)),
    ],
)
def test_a_name_says_its_step_and_tokens(pattern, name, read):
    assert RevisionTemplate(pattern).read(name) == read


@pytest.mark.parametrize("name", ["step", "step10-old", "xstep10", "main", "step1.5"])
def test_other_names_are_no_steps(name):
    assert RevisionTemplate("step{step}").read(name) is None


@given(st.integers(0, 10**7))
def test_a_name_that_is_written_is_read_again(step):
    template = RevisionTemplate("global_step{step}")
    assert template.read(template.name(step)) == (step, None)
