"""Bad inputs end the command with one sentence and status 1, and leave no results.

Other bad inputs are in tests/unit/test_bad_configurations.py, which starts no Snakemake.
"""

import pytest
import yaml

# Name -> content of case.yaml, further arguments, and the sentence.
CASES = {
    "no YAML": ("models: [gpt2\n", (), "not valid JSON or YAML"),
    "key twice": ("seed: 1\nseed: 2", (), "case.yaml, line 2: the key 'seed' occurs twice"),
    "aliases that multiply": (
        "\n".join(
            [
                f"a{n}: &a{n} {{{', '.join(f'k{m}: *a{n - 1}' for m in range(9))}}}"
                for n in range(1, 9)
            ]
        ).replace("*a0", "1"),
        (),
        "aliases repeat more than 10000 values",
    ),
    "many levels": ("models: " + 100_000 * "[", (), "is within more than 50 levels"),
    "no such file": ({}, ("nowhere.yaml",), "nowhere.yaml cannot be read"),
    "target that there is not": (
        {},
        ("--", "figure_11"),
        "unknown target `figure_11`; did you mean `figure_1`?",
    ),
    "file that nothing makes": (
        {},
        ("--", "results/figures/figure_11.pdf"),
        "did you mean `results/figures/figure_1.pdf`?",
    ),
    "ending that there is not": (
        {},
        ("--", "results/figures/figure_1.pfd"),
        "did you mean `results/figures/figure_1.pdf`?",
    ),
    "step that is not measured": (
        {"embeddings": {"dump": True}},
        ("--", "results/embeddings/demo-decoder/step7/layer_0.h5"),
        "unknown revision of model `demo-decoder` `step7`; did you mean `step",
    ),
    "step that is not measured, of a file": (
        {},
        ("--", "results/losses/demo-decoder/step7.csv"),
        "unknown revision of model `demo-decoder` `step7`; did you mean `step",
    ),
    "layer that there is not": (
        {"embeddings": {"dump": True}},
        ("--", "results/measurements/demo-decoder/step16/isotropy/layer_99.csv"),
        "model `demo-decoder` has the layers 0 to",
    ),
    "text of choices that there is not": (
        {"choices": {"text": ["enwik"]}},
        ("--", "choices"),
        "`choices.text`: unknown text `enwik`",
    ),
    "specification curve of a claim on other tables": (
        {},
        ("--", "results/figures/specification_most_linear_blocks_can_go.png"),
        "claim `most_linear_blocks_can_go` has no specification curve in this run",
    ),
    "text of the command line": (
        {},
        ("--config", "models=gpt2"),
        "input should be a valid list; write [gpt2]",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_inputs_are_refused_in_one_sentence_before_any_job(checkout, name):
    content, arguments, sentence = CASES[name]
    file = checkout.folder / "case.yaml"
    file.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    configuration = ("--configfile", "config/demo.yaml", "case.yaml")
    output = checkout.snakemake("--dry-run", *configuration, *arguments, succeeds=False)
    lines = [line for line in output.splitlines() if line.strip()]
    assert sentence in lines[-1]
    assert sum(sentence in line for line in lines) == 1
    assert "Traceback" not in output
    assert not (checkout.folder / "results").exists()


def test_a_figure_is_planned_despite_wrong_choices_that_it_does_not_need(checkout):
    checkout.write("case.yaml", {"choices": {"text": ["enwik"]}})
    configuration = ("--configfile", "config/demo.yaml", "case.yaml")
    assert checkout.plan_jobs("figure_4", *configuration)["draw_figure"] == 1
