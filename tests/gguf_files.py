"""Small GGUF files of Llamas with random weights, whole or with faults."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import gguf
import numpy as np
import torch
import transformers as hf
from tokenizers import Tokenizer

import tiny_models as tiny

Tensors = dict[str, np.ndarray]
NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    **{f"self_attn.{name}_proj": f"attn_{name}" for name in "qkv"},
    "self_attn.o_proj": "attn_output",
    **{f"mlp.{name}_proj": f"ffn_{name}" for name in ("gate", "up", "down")},
}


def save_llama(folder: Path) -> Path:
    """Save the Llama from which the tests make files."""
    tiny.save_tiny_model(folder, "llama", head=True)
    return folder


def save_with_tokenizer(llama: Path, tokenizer: Tokenizer, folder: Path) -> Path:
    """Save a Llama with another tokenizer."""
    model = hf.LlamaForCausalLM.from_pretrained(llama)
    model.resize_token_embeddings(tokenizer.get_vocab_size())
    model.save_pretrained(folder)
    hf.PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
    return folder


def write_gguf(
    file: Path,
    folder: Path,
    change: Callable[[Tensors], Tensors] = lambda tensors: tensors,
    words: str = "gpt-2",
    kind: str = "gpt2",
    tokenizer: Mapping[str, object] | None = None,
    **metadata: object,
) -> Path:
    """Write a Llama of a folder as llama.cpp does.

    `words` names the rule that cuts text into words, or is "" for a file without a rule; `kind` is the kind of the
    tokenizer. `tokenizer` replaces metadata of the tokenizer, `metadata` those of the model; None leaves a key out.
    """
    model = hf.LlamaForCausalLM.from_pretrained(folder)
    config = model.config
    model_metadata = {
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "block_count": config.num_hidden_layers,
        "feed_forward_length": config.intermediate_size,
        "attention.head_count": config.num_attention_heads,
        "attention.head_count_kv": config.num_key_value_heads,
        "attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        "rope.freq_base": 10000.0,
        **metadata,
    }
    writer = gguf.GGUFWriter(str(file), "llama")
    add_metadata(writer, "llama", model_metadata)
    settings = json.loads((folder / "tokenizer.json").read_text())
    bpe, added_tokens = settings["model"], settings["added_tokens"]
    places = {**bpe["vocab"], **{token["content"]: token["id"] for token in added_tokens}}
    tokens = sorted(places, key=lambda token: places[token])
    types = dict.fromkeys(tokens, gguf.TokenType.NORMAL)
    kinds = {True: gguf.TokenType.CONTROL, False: gguf.TokenType.USER_DEFINED}
    types |= {token["content"]: kinds[token["special"]] for token in added_tokens}
    writer.add_tokenizer_model(kind)
    tokenizer_metadata = {"bos_token_id": 0, "eos_token_id": 0, **(tokenizer or {})}
    add_metadata(writer, "tokenizer.ggml", tokenizer_metadata)
    if words:
        writer.add_tokenizer_pre(words)
    writer.add_token_list(tokens)
    writer.add_token_types(list(types.values()))
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in bpe["merges"]])
    for name, tensor in change(_name_tensors(model)).items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def add_metadata(
    writer: gguf.GGUFWriter, architecture: str, metadata: Mapping[str, object]
) -> None:
    """Write metadata of an architecture; leave out those that are None."""
    kinds: dict[type, Callable] = {
        bool: writer.add_bool,
        str: writer.add_string,
        float: writer.add_float32,
        int: writer.add_uint32,
    }
    for key, value in metadata.items():
        if value is not None:
            kinds[type(value)](f"{architecture}.{key}", value)


def _name_tensors(model: hf.LlamaForCausalLM) -> Tensors:
    heads = {"q_proj": model.config.num_attention_heads, "k_proj": model.config.num_key_value_heads}
    tensors: Tensors = {}
    for name, weight in model.state_dict().items():
        kind = name.split(".")[-2]
        if kind in heads:  # llama.cpp interleaves the halves of each head
            halves = weight.reshape(heads[kind], 2, -1, weight.shape[1])
            weight = halves.swapaxes(1, 2).reshape(weight.shape)
        name = name.removesuffix(".weight")
        if ".layers." in name:
            _, _, block, rest = name.split(".", 3)
            name = f"blk.{block}.{NAMES[rest]}"
        else:
            name = NAMES[name]
        tensors[f"{name}.weight"] = np.ascontiguousarray(weight.to(torch.float32).numpy())
    return tensors
