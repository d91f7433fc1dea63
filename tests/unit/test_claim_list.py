"""Claims are data that a paper's file holds, and what is wrong with them is said while planning."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from made_claims import CLAIM
from shape_of_learning.claims.claim import Claim
from shape_of_learning.errors import InputError
from shape_of_learning.metrics.registry import MEASURES
from shape_of_learning.plan.claim_list import check_claims, read_claims
from shape_of_learning.plan.configuration import read_configuration
from shape_of_learning.plan.merging import with_defaults
from shape_of_learning.plan.model_list import read_entries
from shape_of_learning.plan.papers import figures_of, read_papers

REPOSITORY = Path(__file__).parents[2]
PAPERS = sorted(REPOSITORY.glob("workflow/papers/*/claims.yaml"))
READ_PAPERS = read_papers(REPOSITORY / "workflow/papers")


@pytest.mark.parametrize("file", PAPERS, ids=lambda file: file.parent.name)
def test_claims_name_statistics_models_and_measures_that_there_are(file):
    claims = read_claims(file)
    assert claims
    check_claims(claims, file, MEASURES, read_entries(REPOSITORY / "config/models"))


def test_every_paper_has_claims():
    assert {file.parent for file in PAPERS} == {
        file.parent for file in REPOSITORY.glob("workflow/papers/*/paper.yaml")
    }


@pytest.mark.parametrize("paper", READ_PAPERS, ids=lambda paper: paper.name)
def test_the_configuration_of_a_paper_measures_what_its_claims_need(paper):
    file = REPOSITORY / "config" / f"{paper.name}.yaml"
    defaults = REPOSITORY / "config/config.yaml"
    own = yaml.safe_load((file if file.exists() else defaults).read_text())
    run = read_configuration(
        with_defaults(own, defaults),
        REPOSITORY / "config/models",
        papers=READ_PAPERS,
        has_hub_token=True,
    )
    drawn = figures_of(READ_PAPERS)
    apart = run.settings["measurement"]["for_figures_only"]
    measured = {(m, e) for m in run.models if m not in apart for e in run.estimators}
    measured |= {
        (m, e) for f, models in run.figures.items() for m in models for e in drawn[f].estimators
    }
    for claim in paper.claims.values():
        assert set(claim.estimators) <= set(run.measures)
        of_states = [e for e in claim.estimators if run.measures[e].family != "weights"]
        named = [] if isinstance(claim.models, str) else claim.models
        whole = [m for m in named if all((m, e) in measured for e in of_states)]
        assert len(whole) >= (claim.needs or len(named)), claim.name


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"statistic": "mean_over_layer"}, "key `c.statistic`: unknown statistic `mean_over_layer`; "
         "did you mean `mean_over_layers`?"),
        ({"arguments": {"estimator": "x"}}, "unknown argument of `mean_over_layers` `estimator`; "
         "did you mean `estimators`?"),
        ({"statistic": "growth_then_settling"}, "key `c`: `growth_then_settling` needs `arguments.share`"),
        ({"rule": {"supported": {"above": 0}}}, "key `c.rule.contradicted` is missing"),
        ({"rule": CLAIM["rule"] | {"supported": {"beyond": 0}}}, "unknown key `beyond` in"),
        ({"rule": CLAIM["rule"] | {"supported": {"of": "x"}}}, "needs exactly one of `above` or"),
        ({"rule": CLAIM["rule"] | {"supported": {"any_of": [{"above": 0}, {"not_below": 0}]}}},
         "key `c.rule.supported` can be met by `not_above` or `not_below` alone"),
        ({"rule": CLAIM["rule"] | {"supported": {"in": "all", "holds": {"any_of": [
            {"above": 1}, {"in": "any", "holds": {"above": 0}}]}}}},
         "`c.rule.supported` counts by `in` within another `in`; put them side by side in `all_of` or"),
        ({"rule": CLAIM["rule"] | {"supported": {"of": "x", "in": "all", "holds": {"above": 0}}}},
         "key `c.rule.supported` has an `of` beside conditions that have their own; move it into them"),
        ({"rule": CLAIM["rule"] | {"supported": {"of": "x", "all_of": [{"above": 0}, {"above": 1}]}}},
         "key `c.rule.supported` has an `of` beside conditions that have their own"),
        ({"statistic": "rise_then_fall", "checkpoints": "training", "estimators": ["two_nn", "mle"]},
         "key `c.estimators` names 2, but `rise_then_fall` is of 1"),
        ({"statistic": "difference_of_estimators"}, "names 1, but `difference_of_estimators` is of 2"),
        ({"statistic": "rise_then_fall"}, "`rise_then_fall` is of a training; add `checkpoints: training`"),
        ({"statistic": "growth_then_settling", "checkpoints": "training", "arguments": {"share": "half"}},
         "key `c.arguments.share` is 'half', but must be a number"),
        ({"statistic": "isotropy_beside_others", "arguments": {"of": ["a"], "others": "b"}},
         "key `c.arguments.others` is 'b', but must be a list of words"),
        ({"arguments": {"estimators": ["mle"]}}, "`c.arguments.estimators`: estimators stand beside"),
        ({"models": ["gpt2"], "needs": 2}, "key `c.needs` is 2, but `models` names 1"),
        ({"models": "decoder"}, "`c.models` must be a list of names of models, or one of `decoders`"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_claim_is_said_in_a_sentence_before_any_job(
    tmp_path, change, sentence
):
    file = tmp_path / "claims.yaml"
    file.write_text(yaml.safe_dump({"c": CLAIM | change}))
    with pytest.raises(InputError) as refused:
        read_claims(file)
    assert str(refused.value).startswith(str(file))
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"estimators": ["linerity"]}, "`c.estimators`: unknown estimator `linerity`; did you mean "),
        ({"models": ["gpt-2"]}, "`c.models`: unknown model `gpt-2`; did you mean `gpt2`?"),
    ],
)  # fmt: skip
def test_estimators_and_models_that_there_are_not_are_refused(change, sentence):
    claims = {"c": Claim(name="c", **CLAIM | change)}
    with pytest.raises(InputError, match=r"claims\.yaml, key") as refused:
        check_claims(claims, Path("claims.yaml"), MEASURES, ["gpt2"])
    assert sentence in str(refused.value)


def test_reading_claims_for_a_plan_imports_no_numerical_library():
    program = (
        "import sys; from shape_of_learning.plan.papers import read_papers; print(*sys.modules)"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(REPOSITORY / "workflow")}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert not {"numpy", "pandas", "scipy"} & set(loaded.stdout.split())
