"""What a configuration leaves out is said on the terminal."""


def test_what_is_left_out_is_said_once(checkout):
    checkout.write("changes.yaml", {"models": ["demo-decoder"], "figures": {"figure_3": ["gpt2"]}})
    said = checkout.snakemake(
        *("--configfile", "config/demo.yaml", "changes.yaml", "--cores", "1"),
        *("--", "results/tables/table_1.csv"),
    )
    assert said.count("NOTE: figure_3 is left out") == 1
