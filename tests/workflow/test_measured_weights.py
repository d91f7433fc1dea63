"""A model's own matrices are measured for the figures that read them, with a dump and without one."""

from tiny_runs import FIGURES, set_up

DRAWN = ("inherent_figure_1", "inherent_figure_2", "inherent_figure_4", "inherent_figure_5")
TABLES = ("weights.csv", "weights/tiny.csv", "last_weights/tiny.csv", "weight_points/tiny.csv")
ESTIMATORS = {
    "matrix_partition_isotropy",
    "matrix_partition_isotropy_centered",
    "bias_length",
    "bias_to_gain",
}


def test_matrices_are_measured_alike_with_and_without_a_dump(checkout):
    settings = set_up(checkout)
    drawn = {f"inherent_figure_{n}": [] for n in (3, 6)} | {name: ["tiny"] for name in DRAWN}
    settings["figures"] = {**FIGURES, "figure_1": [], **drawn}
    for run, dump in (("dumped", True), ("at_once", False)):
        checkout.write("tiny.yaml", {**settings, "run": run, "embeddings": {"dump": dump}})
        arguments = ("--configfile", "tiny.yaml", "--cores", "1")
        if dump:
            planned = checkout.planned(*arguments, "inherent_figure_1")
            assert "measure" not in planned, "hidden states are measured for nobody"
        tables = [f"results/{run}/tables/{table}" for table in TABLES]
        checkout.snakemake(*arguments, *tables, *(DRAWN if dump else ()))
    folders = [checkout.folder / "results" / run for run in ("dumped", "at_once")]
    for table in TABLES:
        one, other = ((folder / "tables" / table).read_bytes() for folder in folders)
        assert one == other, table
    rows = checkout.rows("results/dumped/tables/weights.csv")
    assert {row["estimator"] for row in rows} == ESTIMATORS
    assert all(row["value"] for row in rows)
    sizes = {row["matrix"]: (row["n"], row["d"]) for row in rows}
    assert sizes == {"input": ("300", "16"), "output": ("300", "16"), "final_norm": ("1", "16")}
    points = checkout.rows("results/dumped/tables/weight_points/tiny.csv")
    assert len(points) == 2 * 2 * 2 * 300  # steps, matrices, raw and centred
    # The bias is zero before training, and not after it.
    lengths = [r["value"] for r in rows if r["estimator"] == "bias_length"]
    assert float(lengths[0]) == 0 < float(lengths[1])
