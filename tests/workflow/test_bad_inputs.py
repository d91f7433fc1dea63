"""Bad inputs as the command shows them: one sentence as the last word, status 1, nothing left behind.

What else is refused is in tests/unit/test_bad_configurations.py, which starts no Snakemake.
"""

import pytest
import yaml

# Name -> content of case.yaml, further arguments, and the sentence.
EDITS = "results/tables/edits/{}.csv"
CASES = {
    "no YAML": ("models: [gpt2\n", (), "not valid JSON or YAML"),
    "key twice": ("seed: 1\nseed: 2", (), "case.yaml, line 2: the key 'seed' occurs twice"),
    "text of the command line": (
        {},
        ("--config", "models=gpt2"),
        "input should be a valid list; write [gpt2]",
    ),
    "blocks of an encoder": (
        {},
        ("--", EDITS.format("demo-encoder")),
        "model `demo-encoder` is an encoder, but blocks are changed of decoders only",
    ),
    "too few blocks": (
        {"block_editing": {"most_blocks": 99}},
        ("--", EDITS.format("demo-decoder")),
        "`block_editing.most_blocks` is 99, but model `demo-decoder` has",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_refused_in_one_sentence_before_any_job(checkout, name):
    content, arguments, sentence = CASES[name]
    file = checkout.folder / "case.yaml"
    file.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    configured = ("--configfile", "config/demo.yaml", "case.yaml")
    said = checkout.snakemake("--dry-run", *configured, *arguments, succeeds=False)
    lines = [line for line in said.splitlines() if line.strip()]
    assert sentence in lines[-1]
    assert sum(sentence in line for line in lines) == 1
    assert "Traceback" not in said
    assert not (checkout.folder / "results").exists()
