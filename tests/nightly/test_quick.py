"""config/quick.yaml on stand-ins: random weights of the same layers and widths, from a Hub on loopback."""

import hashlib
import lzma
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import transformers as hf
import yaml

from checkouts import Checkout
from hub_server import HubRepository, serve_hub
from shape_of_learning.plan.steps import choose
from tiny_models import save_tokenizer

OFFERED_STEPS = [0, *(2**i for i in range(10)), *range(1000, 143001, 1000)]
STEPS = 3  # config/quick.yaml has eight
REVISIONS = choose({"log": STEPS}, OFFERED_STEPS)
BIN = "pytorch_model.bin"
# Tokens of these tokenizers have about as many characters as those of the real ones.
VOCABULARY = 12_000


def save_pythia(folder: Path, step: int) -> None:
    """Save random weights like EleutherAI/pythia-14m at a step: float16, pickled."""
    torch.manual_seed(step)
    size = {"hidden_size": 128, "num_hidden_layers": 6, "num_attention_heads": 4}
    config = hf.GPTNeoXConfig(vocab_size=VOCABULARY, intermediate_size=512, **size)
    model = hf.GPTNeoXForCausalLM(config).half()
    model.config.save_pretrained(folder)
    torch.save(model.state_dict(), folder / BIN)


@pytest.fixture(scope="module")
def endpoint(
    tmp_path_factory: pytest.TempPathFactory, hub_program: Path, real_text: Path
) -> Iterator[str]:
    root, sources = tmp_path_factory.mktemp("hub"), tmp_path_factory.mktemp("sources")
    text = lzma.decompress(real_text.read_bytes()).decode(errors="ignore")
    words = {}
    for kind in ("decoder", "encoder"):
        words[kind] = sources / kind
        save_tokenizer(words[kind], special=kind == "encoder", text=[text], vocabulary=VOCABULARY)

    pythia = HubRepository(root, "EleutherAI/pythia-14m")
    for step in REVISIONS:
        folder = shutil.copytree(words["decoder"], sources / f"step{step}")
        save_pythia(folder, step)
        commit = pythia.commit(f"step{step}", folder, large=(BIN,))
    for step in set(OFFERED_STEPS) - set(REVISIONS):  # offered, but not chosen
        pythia.branch(f"step{step}", commit)

    bert = shutil.copytree(words["encoder"], sources / "bert")
    size = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4}
    config = hf.BertConfig(vocab_size=VOCABULARY, intermediate_size=1024, **size)
    hf.BertForMaskedLM(config).save_pretrained(bert)
    (bert / "model.safetensors").chmod(0o644)
    gpt2 = shutil.copytree(words["decoder"], sources / "gpt2")
    hf.GPT2LMHeadModel(hf.GPT2Config(vocab_size=VOCABULARY)).save_pretrained(gpt2)
    for name, folder in (
        ("google/bert_uncased_L-4_H-256_A-4", bert),
        ("openai-community/gpt2", gpt2),
    ):
        HubRepository(root, name).commit("main", folder, large=("model.safetensors",))
    shutil.rmtree(sources)
    with serve_hub(root, hub_program) as address:
        yield address


def test_the_quick_configuration_draws_its_figures(checkout: Checkout, endpoint, real_text):
    text = checkout.folder / "enwik6"
    text.write_bytes(lzma.decompress(real_text.read_bytes()))
    digest = hashlib.sha256(text.read_bytes()).hexdigest()
    source = {"urls": [str(text)], "sha256": digest, "member": "enwik8", "format": "mediawiki"}
    # A text at hand, few steps and one small batch of vectors are enough for a test.
    changes = {
        "training_steps": {"pythia-14m": {"log": STEPS}},
        "corpus": {"sources": {"enwik8": source}},
        "sampling": {"windows": 12},
        "measurement": {"batch_vectors": 1000},
    }
    checkout.write("changes.yaml", changes)
    checkout.snakemake(
        *("--configfile", "config/quick.yaml", "changes.yaml", "--cores", "2"),
        environment={"HF_ENDPOINT": endpoint, "HF_HUB_OFFLINE": "0"},
    )
    drawn_names = {path.stem for path in (checkout.folder / "results/figures").glob("*.pdf")}
    figures = yaml.safe_load((checkout.folder / "config/quick.yaml").read_text())["figures"]
    assert {name for name, models in figures.items() if models} <= drawn_names
    verdicts = (checkout.folder / "results/checkpoints/pythia-14m.csv").read_text()
    assert [int(row.split(",")[0]) for row in verdicts.splitlines()[1:]] == REVISIONS
