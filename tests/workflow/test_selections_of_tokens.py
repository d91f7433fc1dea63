"""Other tokens are measured without another forward pass, and the same ones with and without a dump."""

import csv

import h5py
import numpy as np
import pytest

import tiny_runs
from checkouts import Checkout, check_out
from shape_of_learning import anisotropy
from shape_of_learning.random_streams import random_stream

RUN = ("results/tables/measurements.csv", "--configfile", "tiny.yaml", "--cores", "2")
SELECTIONS = [
    {"first_token": "drop"},
    {"token_types": "one"},
    {"token_types": "one", "first_token": "drop", "special_tokens": "drop"},
]
LAYERS = [("step0", 0), ("step0", 1), ("step1", 0), ("step1", 1)]


def settings_of(checkout: Checkout, **measurement) -> dict:
    settings = tiny_runs.set_up(checkout)
    # Of a vocabulary of 300, about 110 token types occur.
    settings["measurement"] |= {"batch_vectors": 80, "neighbours": 20, **measurement}
    settings["embeddings"] = {"keep": True}
    return settings


def measured(checkout: Checkout) -> list[dict[str, str]]:
    with (checkout.folder / "results/tables/measurements.csv").open(newline="") as table:
        return list(csv.DictReader(table))


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Checkout:
    checkout = check_out(tmp_path_factory.mktemp("selections") / "checkout")
    checkout.write("tiny.yaml", settings_of(checkout))
    checkout.snakemake(*RUN, "--quiet", "rules")
    return checkout


@pytest.mark.parametrize("selection", SELECTIONS, ids=lambda chosen: "+".join(chosen))
def test_another_selection_is_no_forward_pass(finished, selection):
    finished.write("tiny.yaml", settings_of(finished, **selection))
    planned = finished.planned(*RUN)
    assert "dump_embeddings" not in planned
    assert planned["measure"] == 8  # two checkpoints, two layers, two families


def test_one_vector_of_each_token_type_is_measured(finished):
    finished.write("tiny.yaml", settings_of(finished, token_types="one"))
    said = finished.snakemake(*RUN)
    assert "rule measure:" in said
    assert "dump_embeddings" not in said
    rows = measured(finished)
    chosen = {}
    for revision, layer in LAYERS:
        path = finished.folder / f"results/embeddings/tiny/{revision}/layer_{layer}.h5"
        with h5py.File(path) as file:
            token_ids, vectors = file["token_ids"][()], file["embeddings"][()]
        (own,) = [
            row
            for row in rows
            if (row["revision"], int(row["layer"]), row["estimator"])
            == (revision, layer, "anisotropy")
        ]
        types = np.unique(token_ids)
        assert int(own["n"]) == len(types)
        # Of each type the one that a shuffle of all tokens puts first.
        order = random_stream(0, "token types").permutation(len(token_ids))
        picked = sorted(order[np.flatnonzero(token_ids[order] == t)[0]] for t in types)
        chosen[revision, layer] = picked
        assert float(own["value"]) == pytest.approx(anisotropy(vectors[picked]), rel=1e-9)
    assert all(picked == chosen[LAYERS[0]] for picked in chosen.values())


def test_too_few_token_types_are_refused_with_what_to_do(finished):
    finished.write("tiny.yaml", settings_of(finished, token_types="one", batch_vectors=1000))
    said = finished.snakemake(*RUN, succeeds=False)
    assert "fewer than one batch of 1000; raise `sampling.windows` or lower" in said
