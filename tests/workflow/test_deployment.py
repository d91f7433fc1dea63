"""The workflow as a module of another one, by the path of a clone, and in an image."""

from pathlib import Path

import tiny_runs
from checkouts import Checkout, check_out

DRY = ("--cores", "2")
SNAKEFILE = """
configfile: "demo.yaml"
module shape:
    snakefile: {!r}
    config: config
use rule * from shape
"""


def test_it_is_planned_as_in_a_clone_and_ones_own_entries_go_first(tmp_path: Path):
    clone = check_out(tmp_path / "shape of learning")
    # A folder with a model, a corpus and a configuration of its own, and nothing else.
    (tmp_path / "deployed/config/models").mkdir(parents=True)
    deployed = Checkout(tmp_path / "deployed")
    tiny_runs.set_up(deployed)
    (deployed.folder / "Snakefile").write_text(
        SNAKEFILE.format(str(clone.folder / "workflow/Snakefile"))
    )
    demo = (clone.folder / "config/demo.yaml").read_text()  # says less than half: defaults apply
    (deployed.folder / "demo.yaml").write_text(demo)
    directly = clone.planned("--configfile", "config/demo.yaml", *DRY)
    assert deployed.planned(*DRY) == directly
    deployed.write("config/models/own.yaml", {"demo-decoder": tiny_runs.MODEL})
    deployed.write("demo.yaml", {"models": ["demo-decoder"], "corpus": {"source": "python_topics"}})
    said = deployed.snakemake(*DRY, "--dry-run")
    assert "/demo-decoder/step1" in said
    assert "/demo-decoder/step128" not in said


def test_in_an_image_the_same_is_planned_as_without(tmp_path: Path):
    clone = check_out(tmp_path / "clone")
    demo = ("--configfile", "config/demo.yaml", *DRY)
    in_image = clone.planned("--snakefile", "workflow/containerized.smk", *demo)
    directly = clone.planned(*demo)
    assert in_image.pop("everything") == directly.pop("all") == 1
    assert in_image == directly
