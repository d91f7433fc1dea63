"""Save random models for a Hub on loopback and one in a folder: `make_models.py FOLDER`, by a Python with torch."""

import sys
from pathlib import Path

import torch
import transformers

from shape_of_learning.corpus.fetch import read_demo_text

sys.path.insert(0, str(Path(__file__).parents[1]))
from tiny_models import GPT, USUAL, save_tokenizer

FOLDER = Path(sys.argv[1])
VOCABULARY = 4000  # a window then has about as many tokens as with a real tokenizer
# Contexts and depths are those of the models with these names; widths are much smaller.
GPT2 = transformers.GPT2Config(
    **GPT | {"vocab_size": VOCABULARY, "n_layer": 12, "n_positions": 1024},
    bos_token_id=0,
    eos_token_id=0,
)
LONG = {"vocab_size": VOCABULARY, "num_hidden_layers": 6, "max_position_embeddings": 2048}
PYTHIA = transformers.GPTNeoXConfig(**USUAL | LONG)
MODELS = {
    "gpt2/main": (GPT2, 0),
    "EleutherAI/pythia-70m/step0": (PYTHIA, 1),
    "EleutherAI/pythia-70m/step1000": (PYTHIA, 2),
    "EleutherAI/pythia-70m/main": (PYTHIA, 3),
    "my-model": (PYTHIA, 4),
}

for name, (config, seed) in MODELS.items():
    torch.manual_seed(seed)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(FOLDER / name)
    save_tokenizer(FOLDER / name, text=[read_demo_text()], vocabulary=VOCABULARY)
