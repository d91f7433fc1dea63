"""What a configuration leaves out is said on the terminal."""


def test_what_is_left_out_is_said_once(checkout):
    checkout.write("changes.yaml", {"models": ["demo-decoder"], "figures": {"figure_3": []}})
    said = checkout.snakemake(
        *("--configfile", "config/demo.yaml", "changes.yaml", "--cores", "1"),
        *("--", "results/tables/table_1.csv"),
    )
    (note,) = (line for line in said.splitlines() if "left out" in line)
    assert {"figure_3", "linear_figure_4", "finetuning_figure_1"} <= {
        *note.replace(",", "").split()
    }
