"""The showcase repeated larger by one key, as far as a plan goes."""

import re

LARGE = ("--configfile", "config/showcase.yaml", "config/showcase_large.yaml", "--cores", "8")
SIZE = "--layers=12 --hidden-size=512 .* --vocabulary=16384 .* --last-step=8192 .* --device=cuda "
FOLDER = "--output results/showcase_large/pretrained/"


def test_every_model_is_planned_large_and_for_a_gpu(checkout):
    said = checkout.snakemake(*LARGE, "--dry-run", "--printshellcmds")
    commands = re.findall(r"pretrain_model\.py.*", said)
    assert all(re.search(f"{SIZE}.*{FOLDER}", each) for each in commands)
    # By the rule that a profile sends to a GPU.
    assert re.search(rf"^pretrain_model_on_gpu +{len(commands)}$", said, re.M)
    assert not re.search(r"^pretrain_model ", said, re.M)
