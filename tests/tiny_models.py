"""Small models of the paper's architectures with random weights, saved as checkpoints."""

from pathlib import Path

import torch
import transformers as hf
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

VOCABULARY = 300
TEXT = ["the shape of what a model learns", "Layers, tokens; windows of text.", "a b c " * 20]


def save_tokenizer(folder: Path, *, special=False, text=TEXT * 10, vocabulary=VOCABULARY) -> None:
    """Save a byte-level BPE of a text; with `special` it has [CLS], [SEP], padding and mask, as encoders have."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokens = ["[PAD]", "[CLS]", "[SEP]", "[MASK]"] if special else ["<|endoftext|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=tokens,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(text, trainer)
    names = {}
    if special:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
        )
        names = {f"{token[1:-1].lower()}_token": token for token in tokens}
    hf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)


# All models have the same sizes; each class of the library has its own names for them.
SIZES = dict(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=3, num_attention_heads=2)
USUAL = {**SIZES, "intermediate_size": 64, "max_position_embeddings": 128}
GROUPED = USUAL | {"num_attention_heads": 4, "num_key_value_heads": 2}
GPT = {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 3, "n_head": 2, "n_positions": 128}
OPT = {**SIZES, "ffn_dim": 64, "max_position_embeddings": 128}
PROJECTED = {"word_embed_proj_dim": 16, "do_layer_norm_before": False}
CONFIGURATIONS = {
    "gpt_neox": lambda: hf.GPTNeoXConfig(**USUAL),
    "bloom": lambda: hf.BloomConfig(vocab_size=VOCABULARY, hidden_size=32, n_layer=3, n_head=2),
    "llama": lambda: hf.LlamaConfig(**GROUPED),
    "gpt2": lambda: hf.GPT2Config(**GPT),
    "gptj": lambda: hf.GPTJConfig(**GPT, rotary_dim=8),
    "falcon": lambda: hf.FalconConfig(**SIZES),
    "opt": lambda: hf.OPTConfig(**OPT, word_embed_proj_dim=32),
    # As opt-350m: norm after the block, embeddings narrower than the hidden states.
    "opt_projected": lambda: hf.OPTConfig(**OPT, **PROJECTED),
    "bert": lambda: hf.BertConfig(**USUAL, pad_token_id=0),
    "roberta": lambda: hf.RobertaConfig(**USUAL | {"max_position_embeddings": 130}, pad_token_id=0),
    "albert": lambda: hf.AlbertConfig(**USUAL, embedding_size=16, pad_token_id=0),
}
ENCODERS = ("bert", "roberta", "albert")
WIDTHS = {name: [32, 32, 32, 32] for name in CONFIGURATIONS} | {"opt_projected": [32, 32, 32, 16]}


def save_tiny_model(
    folder: Path, name: str, *, head: bool = False, seed: int = 0, layers: int = 3
) -> Path:
    """Save a random model of an architecture with a tokenizer, and return `folder`.

    With `head` it is the language model of its role, otherwise the base model alone.
    """
    torch.manual_seed(seed)
    kind, config = choose_class_with_head(name) if head else hf.AutoModel, CONFIGURATIONS[name]()
    config.num_hidden_layers = layers
    kind.from_config(config).save_pretrained(folder)
    save_tokenizer(folder, special=name in ENCODERS)
    return folder


def save_stirred_model(folder: Path, name: str, config: hf.PretrainedConfig | None = None) -> Path:
    """Save a model with a head whose biases, scales and logits are far from zero, so that each has an effect."""
    torch.manual_seed(0)
    model = choose_class_with_head(name).from_config(config or CONFIGURATIONS[name]())
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(3 * weight if weight.ndim > 1 else weight + torch.randn_like(weight) / 5)
    model.save_pretrained(folder)
    save_tokenizer(folder, special=name in ENCODERS)
    return folder


def choose_class_with_head(name: str) -> type:
    """Return the class that loads an architecture with its language-model head."""
    return hf.AutoModelForMaskedLM if name in ENCODERS else hf.AutoModelForCausalLM
