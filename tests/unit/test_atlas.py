"""The rows of the atlas are valid, and contain the reported faults."""

import importlib.util
import json
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

import jsonschema
import pytest
from safetensors.numpy import load_file

from hub_fetching import make_environment
from hub_server import HubRepository, serve_hub
from published_trainings import OF_MAIN, PYTHIA, SECOND
from shape_of_learning.checkpoints import atlas, find
from shape_of_learning.checkpoints.atlas import AtlasRow, merge_rows, read_atlas
from shape_of_learning.errors import InputError
from shape_of_learning.plan.entries import expand_seeds, read_entries, read_models
from tiny_models import save_tiny_model

ROOT = Path(__file__).parents[2]
TABLES = sorted((ROOT / "atlas").glob("*/*.csv"))


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_every_row_is_unique_and_names_its_source(path):
    rows = read_atlas(path)
    assert len({(row.repository, row.revision) for row in rows}) == len(rows) > 0
    for row in rows:
        # What nobody has said is unknown, and what somebody has said has a source.
        assert bool(row.source) == bool(row.reason)
        assert row.verdict == "unknown" or row.source
        for source in row.source.split():
            assert source in ("audit", "lock") or source.startswith("https://")


def test_the_schema_is_that_of_the_rows():
    assert json.loads((ROOT / "atlas/schema.json").read_text()) == atlas.schema()


def test_the_atlas_contains_the_reported_faults():
    for step in PYTHIA:
        verdict = find("pythia-2.8b", step=step).verdict
        late_verdict = "same as step 143000" if step in SECOND and step != 143_000 else "ok"
        assert verdict == ("same as main" if step in OF_MAIN else late_verdict)
    assert find("pythia-2.8b", step=0).sha256.startswith("ab496f1c3fd7")
    assert find("pythia-12b", step=58_000).verdict == "mixed shards"
    assert find("pythia-70m", step=1).verdict == "not yet moved"
    assert find("bloom-560m", step=600_000).verdict == "broken"
    assert find("olmo-2-7b", step=175_000).commit.startswith("990e7827")
    with pytest.raises(InputError, match=r"did you mean `pythia-2\.8b`"):
        find("pythia-2.8", step=0)
    with pytest.raises(InputError, match="near it are 65,000, 66,000"):
        find("pythia-2.8b", step=66_400)


def test_the_workflow_reads_faults_from_the_atlas():
    entries, _ = expand_seeds(read_entries(ROOT / "config/models"), {})
    names = ["pythia-2.8b", "polypythia-160m-weight-1", "pythia-70m", "bloom-7b1"]
    models = read_models(entries, names)
    copies = {step for report in models["pythia-2.8b"].known_bad for step in report.all_steps}
    assert copies == (OF_MAIN | SECOND) - {143_000}
    (start,) = models["polypythia-160m-weight-1"].known_bad
    assert (start.all_steps, "not of this training" in start.because) == ((0,), True)
    assert models["pythia-70m"].known_bad == ()  # what has not moved yet is no fault


def test_an_audit_replaces_verdicts_and_keeps_reports():
    old_row = AtlasRow(
        repository="o/m",
        revision="step1",
        step=1,
        verdict="broken",
        reason="r",
        source="https://x/1",
    )
    other_row = old_row.model_copy(update={"revision": "step2", "source": "audit"})
    new_row = AtlasRow(
        repository="o/m", revision="step1", step=1, commit="a" * 40, verdict="ok", source="audit"
    )
    unknown_row = AtlasRow(repository="o/m", revision="step2", step=2)
    merged_rows = {
        row.revision: row for row in merge_rows([old_row, other_row], [new_row, unknown_row])
    }
    assert (merged_rows["step1"].verdict, merged_rows["step1"].source) == (
        "ok",
        "audit https://x/1",
    )
    assert merged_rows["step2"] == other_row
    again = {row.revision: row for row in merge_rows(merged_rows.values(), [new_row])}
    assert again["step1"].source == "audit https://x/1"
    row_with_tokens = old_row.model_copy(update={"tokens": 2})
    assert merge_rows([row_with_tokens], [new_row])[0].tokens == 2


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("o/m,step1,1,,,,fine,,,", "verdict"),
        ("o/m,step1,-1,,,,ok,,,", "step"),
        ("o/m,step1,1,,zz,,ok,,,", "commit"),
        ("o/m,step1,1,,,ab,ok,,,", "sha256"),
        ("o/m,step1,1,,,,ok,,,,yesterday", "checked"),
    ],
)
def test_an_invalid_row_is_refused_with_its_line(tmp_path, line, says):
    path = tmp_path / "m.csv"
    path.write_text(",".join(atlas.COLUMNS) + "\n" + line + "\n")
    with pytest.raises(InputError, match=rf"m.csv, line 2: {says}"):
        read_atlas(path)


def test_where_answers_in_one_line():
    def run_where(*arguments):
        command = [sys.executable, "-m", "shape_of_learning", "where", *arguments]
        process = subprocess.run(command, capture_output=True, text=True, cwd=ROOT / "workflow")
        return process.stdout.strip(), process.returncode

    line, code = run_where("pythia-2.8b", "66000")
    assert (code, line.count("\n")) == (0, 0)
    assert line.startswith("EleutherAI/pythia-2.8b step66000 ")
    assert run_where("pythia-2.8b", "1000")[1] == 1
    assert run_where("pythia-14m", "1000")[1] == 2
    assert run_where("nothing", "1000")[1] == 2


def test_a_written_row_is_read_unchanged(tmp_path):
    row = AtlasRow(
        repository="o/m", revision="a/b", step=0, tokens=1, verdict="ok", checked=date(2026, 1, 2)
    )
    atlas.write_atlas(tmp_path / "m.csv", [row])
    assert read_atlas(tmp_path / "m.csv") == [row]


def test_the_joined_file_has_all_tables_and_follows_its_schema():
    text = (ROOT / "atlas/atlas.json").read_text()
    assert text == atlas.join_tables(ROOT / "atlas")
    jsonschema.validate(json.loads(text), json.loads((ROOT / "atlas/schema.json").read_text()))
    rows = [row for path in TABLES for row in read_atlas(path)]
    assert rows == [row for path in TABLES for row in atlas.find_rows(path.stem)]


def run_without(packages, *command):
    """Run Python where some packages cannot be imported."""
    hidden = f"import sys; sys.modules |= dict.fromkeys({packages})\n"
    program = f"{hidden}sys.argv[1:] = {list(command[1:])}\n{command[0]}"
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT / "workflow"
    )


def test_the_atlas_is_read_with_the_standard_library():
    packages = ["torch", "transformers", "pydantic", "typer", "rich", "pandas", "yaml", "numpy"]
    program = "from shape_of_learning.checkpoints import find, verdicts, where\n"
    program += "known = verdicts('EleutherAI/pythia-2.8b')\n"
    program += "print(len(known), sum(row.is_fault for row in known.values()))\n"
    program += "print(find('EleutherAI/pythia-2.8b', 66000).verdict, verdicts('nobody/nothing'))"
    process = run_without(packages, program)
    faults = len((OF_MAIN | SECOND) - {143_000})
    assert process.stdout.split("\n")[:2] == [f"154 {faults}", "ok {}"], process.stderr
    command = "from shape_of_learning.__main__ import main; main()"
    answer = run_without(packages, command, "where", "pythia-2.8b", "1000")
    assert (answer.returncode, "same as main" in answer.stdout) == (1, True), answer.stderr
    assert run_without(packages, command, "where", "pythia-14m", "1000").returncode == 2
    assert run_without(packages, command, "where", "pythia-2.8b", "1,000").returncode == 2
    refusal = run_without(packages, command, "where", "pythia-2.8", "1000")
    assert (refusal.returncode, "did you mean" in refusal.stderr) == (2, True)


def test_a_merged_table_is_in_the_joined_file(tmp_path):
    row = AtlasRow(
        repository="o/m", revision="step1", step=1, verdict="broken", reason="r", source="lock"
    )
    atlas.update_atlas(tmp_path, "suite", "m", [row], merge_rows)
    content = json.loads((tmp_path / "atlas.json").read_text())
    (revision,) = content["models"]["m"]["revisions"]
    assert AtlasRow.model_validate(revision) == row


def test_the_page_refuses_a_revision_before_anything_is_loaded():
    page = (ROOT / "docs/how_to/use_the_atlas.md").read_text()
    sentence = re.search(
        r"lists ([\d,]+) revisions of (\d+) .*verdicts on (\d+) of them, and (\d+) are", page
    )
    rows = [row for path in TABLES for row in read_atlas(path)]
    verified_rows = [row for row in rows if row.verdict != "unknown"]
    counts = [len(rows), len(TABLES), len(verified_rows), sum(row.is_fault for row in rows)]
    assert [int(number.replace(",", "")) for number in sentence.groups()] == counts
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    recipes = [block for block in blocks if "raise ValueError" in block]
    assert len(recipes) == 3
    for recipe, arguments in zip(
        recipes,
        [
            ("EleutherAI/pythia-2.8b", "step1000"),
            ("pythia-2.8b", 1000),
            ("EleutherAI/pythia-2.8b", "step1000", ["lambada_openai"]),
        ],
        strict=True,
    ):
        assert len(recipe.splitlines()) <= 12
        library = re.search(r"^(?:from|import) (\w+)", recipe)[1]
        if importlib.util.find_spec(library) is None:
            recipe = "\n".join(line for line in recipe.splitlines() if library not in line[:30])
        names: dict = {}
        exec(recipe, names)
        (load,) = (names[name] for name in names if name.endswith("_checked"))
        with pytest.raises(ValueError, match=r"step1000 .*same as main"):
            load(*arguments)


RECIPE_ON_A_HUB = """
exec(open("recipe.py").read())
model = load_checked("EleutherAI/pythia-2.8b", "step66000")
print(float(model.get_input_embeddings().weight.sum()))
try:
    load_checked("EleutherAI/pythia-2.8b", "step1000")
except ValueError as error:
    print(error)
"""


def test_from_pretrained_loads_a_good_revision_of_a_hub_and_refuses_a_copy(tmp_path, hub_program):
    root = tmp_path / "hub"
    repository = HubRepository(root, "EleutherAI/pythia-2.8b")
    for seed, step in enumerate(("step1000", "step66000")):
        folder = save_tiny_model(tmp_path / step, "gpt_neox", head=True, seed=seed)
        repository.commit(step, folder)
    embedding = load_file(folder / "model.safetensors")["gpt_neox.embed_in.weight"]
    page = (ROOT / "docs/how_to/use_the_atlas.md").read_text()
    (recipe,) = re.findall(r"## transformers\n\n```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "recipe.py").write_text(recipe)
    with serve_hub(root, hub_program) as endpoint:
        process = subprocess.run(
            [sys.executable, "-c", RECIPE_ON_A_HUB],
            cwd=tmp_path,
            env=make_environment(endpoint, tmp_path / "home"),
            capture_output=True,
            text=True,
        )
    assert process.returncode == 0, process.stderr
    total, refusal = process.stdout.splitlines()
    assert float(total) == pytest.approx(float(embedding.sum()), rel=1e-5)
    assert re.search("step1000 .*same as main", refusal)
