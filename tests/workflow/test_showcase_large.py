"""The showcase repeated larger by one key, as far as a plan goes."""

import re

LARGE = ("--configfile", "config/showcase.yaml", "config/showcase_large.yaml", "--cores", "8")


def test_every_model_is_planned_for_a_gpu(checkout):
    said = checkout.snakemake(*LARGE, "--dry-run")
    # By the rule that a profile sends to a GPU.
    assert re.search(r"^pretrain_model_on_gpu +[1-9]\d*$", said, re.M)
    assert not re.search(r"^pretrain_model ", said, re.M)
