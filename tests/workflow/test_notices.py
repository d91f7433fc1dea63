"""The terminal says what a configuration leaves out, what a text loses, and why a text is missing."""

import json
import re
import socket

import yaml

import tiny_runs
from gguf_files import save_llama, write_gguf


def test_a_note_names_figures_without_models_but_none_that_the_user_left_empty(checkout):
    checkout.write("changes.yaml", {"models": ["demo-decoder"], "figures": {"figure_3": []}})
    output = checkout.snakemake(
        *("--configfile", "config/demo.yaml", "changes.yaml", "--cores", "1"),
        *("--", "results/tables/table_1.csv"),
    )
    (note,) = (line for line in output.splitlines() if "left out" in line)
    words = note.replace(",", "").split()
    assert {"linear_figure_4", "finetuning_figure_1"} <= {*words}
    assert "figure_3" not in words


def test_characters_that_a_text_loses_are_counted_and_other_texts_keep_all(checkout):
    settings = tiny_runs.set_up(checkout)
    source = settings["corpus"]["sources"]["export"]
    source["alphabet_size"] = 40
    (checkout.folder / "text.txt").write_text(
        text := "漢字🙂 and every kind\n" * 400, encoding="utf-8"
    )
    sources = {"export": source, "own": {"urls": ["text.txt"], "format": "text"}}
    settings["corpus"] = {"source": "export", "sources": sources}
    settings["measurement"]["estimators"] = ["anisotropy"]
    checkout.write("tiny.yaml", settings)
    other_text = "results/corpus/own/text.txt"
    arguments = ("--configfile", "tiny.yaml", "--cores", "2", "--")
    output = checkout.snakemake(*arguments, "results/figures/figure_1.md", other_text)
    record = json.loads((checkout.folder / "results/corpus/export/alphabet.json").read_text())
    lost_characters, kept_characters = record["dropped"]["characters"], record["text"]["characters"]
    assert lost_characters > 0
    sentence = (
        f"{lost_characters:,} of {lost_characters + kept_characters:,} characters are left out, "
        "those outside of an alphabet of 40"
    )
    assert output.count(sentence) == 1
    caption = (checkout.folder / "results/figures/figure_1.md").read_text()
    assert f"Of the text export, {sentence}." in caption
    assert (checkout.folder / other_text).read_text(encoding="utf-8") == text


def test_a_run_of_all_targets_ends_with_findings_and_one_of_a_figure_does_not(checkout):
    settings = tiny_runs.set_up(checkout)
    settings["measurement"]["estimators"] = ["anisotropy"]
    checkout.write("tiny.yaml", settings)
    arguments = ("--configfile", "tiny.yaml", "--cores", "2", "--")
    output = checkout.snakemake(*arguments, "results/figures/figure_1.md")
    output_of_all = checkout.snakemake(*arguments, "results/explorer.html")
    sentences = (checkout.folder / "results/findings.txt").read_text().splitlines()
    assert sentences
    for sentence in sentences:
        assert sentence in output_of_all
        assert sentence not in output
    assert output_of_all.count("results/explorer.html") == 1


def test_a_text_is_requested_once_without_a_network_and_the_remedy_works(checkout):
    settings = tiny_runs.set_up(checkout)
    with socket.socket() as unused_socket:
        unused_socket.bind(("127.0.0.1", 0))
        urls = [f"http://127.0.0.1:{unused_socket.getsockname()[1]}/corpus.zip"]
    settings["corpus"]["sources"]["export"] = {"urls": urls, "format": "mediawiki"}
    checkout.write("tiny.yaml", settings)
    figure = ("results/figures/figure_1.md", "--cores", "2", "--configfile", "tiny.yaml")
    output = checkout.snakemake(*figure, succeeds=False)
    assert output.count("ERROR: corpus 'export' cannot be downloaded") == 1
    assert "begins: download of the text export" in output
    # The remedy works beside the values of the user's `--config`, and in a file.
    (option,) = set(re.findall(r"`'(corpus=.*?)'`", output))
    (line,) = set(re.findall(r"`(corpus: .*?)`", output))
    checkout.write("line.yaml", yaml.safe_load(line))
    for arguments in ("--config", "seed=5", option), ("line.yaml",):
        jobs = checkout.plan_jobs(*figure, *arguments)
        assert jobs["write_python_topics"] == 1
        assert "fetch_corpus" not in jobs


def test_a_plan_that_unpacks_a_model_prints_no_progress_bar(checkout):
    file = write_gguf(checkout.folder / "model.gguf", save_llama(checkout.folder / "llama"))
    checkout.write("config/models/own.yaml", {"mine": {"path": str(file)}})
    checkout.write("own.yaml", {"models": ["mine"], "figures": {"figure_1": "all"}})
    options = ("--configfile", "config/demo.yaml", "own.yaml", "--dry-run", "--cores", "1")
    nothing_unpacked = {"HF_ASSETS_CACHE": str(checkout.folder / "unpacked")}
    output = checkout.snakemake(*options, "--", "figure_1", environment=nothing_unpacked)
    assert [*checkout.folder.glob("unpacked/**/model.safetensors")]
    assert "%|" not in output
