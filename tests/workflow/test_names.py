"""Names of folders, models and files may hold what a shell, Snakemake or Python would take for its own."""

from pathlib import Path

import tiny_runs
from checkouts import check_out
from tiny_models import save_tiny_model

HARD = "a \"b\" 'd' $(touch F) ü"


def test_a_run_in_a_hard_place_with_hard_names(tmp_path):
    folder = tmp_path / HARD
    checkout = check_out(folder)
    settings = tiny_runs.set_up(checkout)
    corpus = folder / HARD / "text d.xml"
    corpus.parent.mkdir()
    (folder / "export.xml").rename(corpus)
    settings["corpus"]["sources"]["export"]["urls"] = [str(corpus)]
    save_tiny_model(tmp_path / "weights {c}", "gpt_neox", head=True)
    own = {"role": "decoder", "layers": 3, "hidden_size": 32, "label": 'm {n} "o" ü'}
    own["path"] = str(tmp_path / "weights {c}")
    checkout.write("config/models/own.yaml", {"own": own})
    settings["models"].append("own")
    settings["measurement"]["batch_vectors"] = 600
    checkout.write("tiny.yaml", settings)
    checkout.snakemake("--configfile", "tiny.yaml", "--cores", "2", "--quiet", "rules")
    estimates = (folder / "results/tables/estimates.csv").read_text()
    assert "\nown,decoder,main,,,3," in estimates
    assert "\nown,decoder,main,,,,,anisotropy,all,0." in estimates
    assert "\ntiny,anisotropy,all,," in (folder / "results/tables/changes.csv").read_text()
    assert (folder / "results/figures/figure_1.pdf").exists()
    assert not [path for path in tmp_path.rglob("*") if path.name == "F"]
    assert not Path("F").exists()
    assert checkout.planned("--configfile", "tiny.yaml", "--cores", "2") == {}
