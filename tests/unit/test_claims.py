"""The claims of each paper are written down with what would decide them."""

from pathlib import Path

import pytest

from shape_of_learning.errors import InputError
from shape_of_learning.metrics.registry import MEASURES
from shape_of_learning.plan.model_list import read_entries
from shape_of_learning.plan.schema import validate
from shape_of_learning.storage.yaml_file import read_yaml

REPOSITORY = Path(__file__).parents[2]
CLAIMS = sorted(REPOSITORY.glob("workflow/papers/*/claims.yaml"))


@pytest.mark.parametrize("file", CLAIMS, ids=lambda file: file.parent.name)
def test_claims_name_models_and_measures_that_there_are(file):
    page = (REPOSITORY / "docs/tables.md").read_text()
    claims, models = read_yaml(file), read_entries(REPOSITORY / "config/models")
    validate(claims, "claims", str(file))
    for claim in claims.values():
        assert set(claim["models"]) <= models.keys()
        # What is measured on a task has names of its own, which the page on tables explains.
        assert {
            e for e in claim["estimators"] if e not in MEASURES and f"`{e}`" not in page
        } == set()


def test_a_claim_without_a_decision_is_refused():
    claim = {"sentence": "Blocks are linear.", "where": "abstract", "statistic": "A mean."}
    claim |= {"rule": "supported if it is high", "models": [], "estimators": []}
    with pytest.raises(InputError, match=r"x\.yaml: `linear\.rule`"):
        validate({"linear": claim}, "claims", "x.yaml")
