"""Figures of suites under their real names, from a Hub on loopback: Ettin's tags and PolyPythias' seeds."""

import lzma
import shutil
import subprocess

import pytest
import torch
import transformers as hf

from hub_server import GIT, HubRepository, serve_hub
from tiny_models import save_tokenizer

VOCABULARY = 2000
STEPS = (2997, 5994)
SIZE = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 48,
}
TOKENS = {
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "cls_token_id": 1,
    "sep_token_id": 2,
}


def make_model(name, seed):
    """Make a random model with the architecture of the repository's models."""
    torch.manual_seed(seed)
    if "pythia" in name:
        size = SIZE | {"hidden_size": 128, "num_hidden_layers": 6, "num_attention_heads": 4}
        return hf.GPTNeoXForCausalLM(hf.GPTNeoXConfig(vocab_size=VOCABULARY, **size))
    if "decoder" in name:
        config = hf.ModernBertDecoderConfig(vocab_size=VOCABULARY, **SIZE, **TOKENS)
        return hf.ModernBertDecoderForCausalLM(config)
    return hf.ModernBertForMaskedLM(hf.ModernBertConfig(vocab_size=VOCABULARY, **SIZE, **TOKENS))


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory, hub_program, real_text):
    root, sources = tmp_path_factory.mktemp("hub"), tmp_path_factory.mktemp("sources")
    text = lzma.decompress(real_text.read_bytes())[:1_000_000].decode(errors="ignore")
    repositories = [f"jhu-clsp/ettin-{kind}-17m" for kind in ("encoder", "decoder")]
    repositories += [f"EleutherAI/pythia-14m-seed{seed}" for seed in range(1, 10)]
    for number, name in enumerate(repositories):
        words = sources / f"{number}"
        is_encoder = "encoder" in name
        save_tokenizer(words, special=is_encoder, text=[text], vocabulary=VOCABULARY)
        repository = HubRepository(root, name)
        for step in ("main", *STEPS):
            folder = shutil.copytree(words, sources / f"{number} {step}")
            make_model(name, hash((number, step)) % 1000).save_pretrained(folder)
            branch = "main" if step == "main" else f"step{step}"
            commit = repository.commit(branch, folder, large=("model.safetensors",))
            if "ettin" in name and step != "main":
                # The suite has tags, and no branches.
                for command in (
                    ["checkout", "-q", "main"],
                    ["branch", "-D", branch],
                    ["tag", branch, commit],
                ):
                    subprocess.run(
                        [*GIT, *command], cwd=repository.folder, check=True, capture_output=True
                    )
    with serve_hub(root, hub_program) as address:
        yield address


def test_ettin_is_drawn_in_figure_1_and_seeds_as_one_curve_with_a_band(
    checkout, endpoint, real_text
):
    text = checkout.folder / "text.txt"
    text.write_bytes(lzma.decompress(real_text.read_bytes())[:400_000])
    seeds = [f"polypythia-14m-{seed}" for seed in range(1, 10)]
    changes = {
        "models": ["ettin-encoder-17m", "ettin-decoder-17m", "polypythia-14m"],
        "corpus": {"source": "text.txt"},
        "sampling": {"windows": 12},
        "measurement": {"batch_vectors": 1000},
        "embeddings": {"dump": False},
        "training_steps": {"polypythia-14m": list(STEPS)},
        "figures": {
            "figure_1": ["ettin-encoder-17m", "ettin-decoder-17m"],
            "figure_2": ["polypythia-14m"],
        },
    }
    checkout.write("changes.yaml", changes)
    output = checkout.snakemake(
        *("figure_1", "figure_2", "--configfile", "changes.yaml", "--cores", "2"),
        environment={"HF_ENDPOINT": endpoint, "HF_HUB_OFFLINE": "0"},
    )
    rows = checkout.read_rows("results/figures/figure_1.csv")
    assert {row["model"] for row in rows} == {"ettin-encoder-17m", "ettin-decoder-17m"}, output
    rows = checkout.read_rows("results/figures/figure_2.csv")
    assert {(row["model"], row["label"]) for row in rows} == {(seeds[0], "PolyPythia-14M")}
    assert {int(row["step"]) for row in rows} == set(STEPS)
    assert all(float(row["low"]) < float(row["value"]) < float(row["high"]) for row in rows)
    assert "8.5 billion tokens" in checkout.folder.joinpath("config/models/ettin.yaml").read_text()
