"""Every type of the installed transformers that reads text is measured correctly, or refused in a sentence."""

import sys
from pathlib import Path

import pytest
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

sys.path += [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "docs")]
import write_architectures as page

from architectures import examine, find_text_types

pytestmark = pytest.mark.long
PARTS = 12  # several processes can share the work


@pytest.mark.parametrize("part", range(PARTS))
def test_states_equal_those_of_blocks_and_of_single_windows_as_the_table_says(part):
    names = list(CONFIG_MAPPING_NAMES)[part::PARTS]
    outcomes = {name: examine(kind, model) for name, kind, model in find_text_types(names)}
    wrong = {name: outcome for name, outcome in outcomes.items() if outcome.error > page.MOST_ERROR}
    assert not wrong
    assert sum(outcome.word == "measured" for outcome in outcomes.values()) > len(outcomes) / 2
    if page.read_version() == transformers.__version__:
        rows = page.read_rows()
        assert {name: page.make_row(outcome) for name, outcome in outcomes.items()} == {
            name: rows[name] for name in names if name in rows
        }
