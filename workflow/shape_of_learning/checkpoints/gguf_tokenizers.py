"""Tokenizers of GGUF files, which find in a text the tokens that the file states."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shape_of_learning.errors import InputError
from shape_of_learning.validation import cut

if TYPE_CHECKING:
    import gguf

# Names that llama.cpp gives to the rule by which GPT-2 cuts text into words, and to the same rule after each digit has
# become a word of its own. transformers takes the first for both, which differs in blanks before a digit.
WORDS_OF_GPT_2 = frozenset({"gpt-2", "granite-docling", "jais", "mpt", "olmo", "phi-2", "trillion"})
WORDS_OF_SINGLE_DIGITS = frozenset({
    "codeshell", "command-r", "exaone", "minerva-7b", "refact", "smollm", "starcoder",
})  # fmt: skip
# Rules of words that imply a BOS before each text, in files that do not state whether there is one.
WORDS_AFTER_BOS = frozenset({
    "falcon-h1", "falcon3", "jina-v5-nano", "lfm2", "llama-bpe", "llama-v3", "llama3", "midm-2.0", "pixtral", "tekken",
})  # fmt: skip
# Types of tokens that are found in text as they are spelled: those of control, and those that a user defined.
NORMAL, CONTROL, USER_DEFINED = 1, 3, 4


def load_gguf_tokenizer(file: Path, reader: "gguf.GGUFReader") -> tuple[Any, str]:
    """Load the tokenizer of a file, with the tokens, BOS, EOS and rule of words that its metadata state.

    Returns a warning with it, which is empty unless the file names no rule by which text is cut into words.
    """
    import transformers

    source: dict[str, Any] = {"gguf_file": file.name, "local_files_only": True}
    tokenizer = transformers.AutoTokenizer.from_pretrained(file.parent, **source)
    tokenizer = _restore_tokenizer(reader, tokenizer)
    return tokenizer, _set_word_rule(file, reader, tokenizer)


def _restore_tokenizer(reader: "gguf.GGUFReader", tokenizer: Any) -> Any:
    """Return a tokenizer with the tokens, BOS, EOS and blank before a text that its file states."""
    import transformers
    from tokenizers import Tokenizer

    def read(key: str, default: Any = None) -> Any:
        field = reader.fields.get(f"tokenizer.ggml.{key}")
        return default if field is None else field.contents()

    kind, tokens = read("model"), read("tokens")
    if kind not in ("gpt2", "llama"):
        return tokenizer
    keys = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
    indices = {name: read(f"{key}_token_id") for name, key in keys.items()}
    types = dict(enumerate(read("token_type", [])))
    named = {
        name: index
        for name, index in indices.items()
        if index is not None
        # A file may name a token of the text, such as "!", for padding.
        and (name in ("bos", "eos") or types.get(index, NORMAL) != NORMAL)
    }
    settings = json.loads(tokenizer.backend_tokenizer.to_str())
    if kind == "gpt2":
        _restore_tokens(settings, tokens, types | dict.fromkeys(named.values(), CONTROL))
    elif not read("add_space_prefix", True):
        settings["pre_tokenizer"] = None
        settings["normalizer"] = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    is_after_bos = kind == "llama" or read("pre") in WORDS_AFTER_BOS
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(settings)),
        add_bos_token="bos" in named and read("add_bos_token", is_after_bos),
        add_eos_token="eos" in named and read("add_eos_token", False),
        **{f"{name}_token": tokens[index] for name, index in named.items()},
    )


def _restore_tokens(settings: dict[str, Any], tokens: list[str], types: dict[int, int]) -> None:
    """Spell tokens of control and of users as the file does, and let a tokenizer find them in text.

    transformers spells them in GPT-2's letters for bytes, where that of two blanks is another token's name.
    """
    added = {index for index, kind in types.items() if kind in (CONTROL, USER_DEFINED)}
    vocabulary = {
        token: index
        for token, index in settings["model"]["vocab"].items()
        if index < len(tokens) and index not in added
    }
    lost = set(range(len(tokens))).difference(vocabulary.values())
    settings["model"]["vocab"] = {**vocabulary, **{tokens[index]: index for index in lost}}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    settings["added_tokens"] = [
        {"id": index, "content": tokens[index], "special": types[index] == CONTROL, **flags}
        for index in sorted(added)
    ]


def _set_word_rule(file: Path, reader: "gguf.GGUFReader", tokenizer: Any) -> str:
    """Let a tokenizer cut text into words by the rule that its file names, or refuse the file.

    Returns a warning if the file names none: transformers takes GPT-2's for every rule that it does not know.
    """
    from tokenizers import pre_tokenizers

    field = reader.fields.get("tokenizer.ggml.pre")
    rule = field.contents() if field else "default"
    settings = json.loads(tokenizer.backend_tokenizer.to_str())["pre_tokenizer"] or {}
    is_gpt_2 = settings.get("type") == "ByteLevel" and settings["use_regex"]
    if not is_gpt_2 or rule in WORDS_OF_GPT_2:
        return ""
    if rule in WORDS_OF_SINGLE_DIGITS:
        digits = pre_tokenizers.Digits(individual_digits=True)
        words = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, words])
        return ""
    if rule != "default":
        raise InputError(
            f"{file} names the rule `{cut(rule)}` by which text is cut into words (`tokenizer.ggml.pre`), which "
            "transformers does not know; take the folder of the weights that it was made of"
        )
    if reader.fields["general.architecture"].contents() == "gpt2":
        return ""
    return (
        "does not say by which rule text is cut into words (`tokenizer.ggml.pre`), so GPT-2's is taken; if the "
        "model was trained with another, its values are of other tokens"
    )
