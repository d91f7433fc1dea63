"""Write the table of architectures: `python docs/write_architectures.py` takes a few minutes; `--check` only compares.

The script builds a small model with random weights of each text model type in the installed transformers, measures it,
and compares the hidden states with those of the library and of separate hooks (tests/architectures.py).
"""

import re
import sys
from pathlib import Path

import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "workflow"), str(ROOT / "tests")]
from architectures import Outcome, examine, find_text_types  # noqa: E402 (beside the tests)

PAGE = ROOT / "docs/reference/architectures.md"
TABLE = re.compile(r"(<!-- table -->\n).*?(\n<!-- end -->)", re.DOTALL)
ROW = re.compile(r"^\| `(\S+)` \| (.*?) \| (.*?) \|$", re.MULTILINE)
VERSION = re.compile(r"transformers (\d\S*\d)")
MOST_ERROR = 2e-6  # relative; float32 rounds to 6e-8


def read_rows() -> dict[str, tuple[str, str]]:
    """Read the outcome and the remark of each type from the page."""
    return {name: (word, remark) for name, word, remark in ROW.findall(PAGE.read_text())}


def read_version() -> str:
    """Read the version of transformers from the page."""
    version = VERSION.search(PAGE.read_text())
    assert version is not None
    return version[1]


def make_row(outcome: Outcome) -> tuple[str, str]:
    """Return the cells of a type."""
    return outcome.word, outcome.remark.replace("|", "/")


def main() -> int:
    """Measure all types, and write or compare the page."""
    transformers.logging.set_verbosity_error()
    outcomes = {
        name: examine(kind, model) for name, kind, model in find_text_types(CONFIG_MAPPING_NAMES)
    }
    if wrong := [name for name, outcome in outcomes.items() if outcome.error > MOST_ERROR]:
        print(f"hidden states are wrong for {', '.join(wrong)}", file=sys.stderr)
        return 1
    words = [outcome.word for outcome in outcomes.values()]
    counts = ", ".join(
        f"{words.count(word)} {word}" for word in ("measured", "refused", "not tried")
    )
    lines = [
        f"Of the {len(words)} types of transformers {transformers.__version__} that read text alone: {counts}.",
        "",
        "| Type | Outcome | Remark |",
        "|---|---|---|",
        *(f"| `{name}` | {' | '.join(make_row(outcomes[name]))} |" for name in sorted(outcomes)),
    ]
    old = PAGE.read_text()
    new = TABLE.sub(lambda match: match[1] + "\n".join(lines) + match[2], old)
    if "--check" in sys.argv and new != old:
        print(f"{PAGE} is out of date; run `python docs/write_architectures.py`", file=sys.stderr)
        return 1
    PAGE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
