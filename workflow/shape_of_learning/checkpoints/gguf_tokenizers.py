"""Tokenizers of GGUF files, built from the tokens, merges and rules in the file."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from shape_of_learning.errors import InputError
from shape_of_learning.validation import cut

if TYPE_CHECKING:
    import gguf
    from tokenizers import Tokenizer
    from tokenizers.pre_tokenizers import PreTokenizer

METADATA = "tokenizer.ggml."
# Types of tokens. Control tokens and user-defined tokens are found in text by their spelling.
NORMAL, CONTROL, USER_DEFINED = 1, 3, 4
# Names in llama.cpp for GPT-2's rule that cuts text into words, and for the same rule with each digit as a word.
WORDS_OF_GPT_2 = frozenset({"gpt-2", "granite-docling", "jais", "mpt", "olmo", "phi-2", "trillion"})
WORDS_OF_SINGLE_DIGITS = frozenset({
    "codeshell", "command-r", "exaone", "minerva-7b", "refact", "smollm", "starcoder",
})  # fmt: skip
# The patterns of other rules, from the `tokenizer.json` of the models. llama.cpp spells some differently, since it
# knows fewer classes of letters.
LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
    r"|[^\r\n\p{L}\p{N}]?\p{L}+"
    r"|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN_2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
    r"|[^\r\n\p{L}\p{N}]?\p{L}+"
    r"|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN_3_5 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
    r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+"
    r"|\p{N}"
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GPT_4O = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# Rules by which a word that is a token stays that token, even if no merges lead to it. They imply a BOS before each
# text in files without a flag for it.
WORDS_OF_LLAMA_3 = frozenset({
    "falcon-h1", "falcon3", "jina-v5-nano", "lfm2", "llama-bpe", "llama-v3", "llama3", "midm-2.0", "pixtral",
})  # fmt: skip
WHOLE_WORDS = WORDS_OF_LLAMA_3 | {"tekken"}
PATTERNS = {
    **dict.fromkeys([*WORDS_OF_LLAMA_3, "dbrx", "smaug-bpe"], LLAMA_3),
    **dict.fromkeys(["deepseek-r1-qwen", "f2llmv2", "kormo", "megrez", "qwen2"], QWEN_2),
    "qwen35": QWEN_3_5,
    "tekken": TEKKEN,
    **dict.fromkeys(["gpt-4o", "kanana2", "llama4", "minimax-m2", "talkie"], GPT_4O),
}
# Rules of models that first compose letters and their accents.
COMPOSED = frozenset({"qwen2", "qwen35"})


def load_gguf_tokenizer(file: Path, reader: "gguf.GGUFReader") -> tuple[Any, str]:
    """Load the tokenizer of a file, with the tokens, BOS, EOS and rule for words in its metadata.

    A warning follows if the file names no rule that cuts text into words; else an empty text.
    """
    import transformers

    metadata: dict[str, Any] = {
        key.removeprefix(METADATA): field.contents()
        for key, field in reader.fields.items()
        if key.startswith(METADATA)
    }
    architecture = reader.fields["general.architecture"].contents()
    kind, rule, warning = metadata.get("model"), metadata.get("pre", "default"), ""
    named_tokens = _list_named_tokens(metadata)
    if kind == "gpt2":
        inner = _build_byte_level(metadata, named_tokens, _build_pre_tokenizer(file, rule))
        if rule == "default" and architecture != "gpt2":
            warning = (
                "does not state the rule that cuts text into words (`tokenizer.ggml.pre`), so GPT-2's is taken; if "
                "the model was trained with another rule, its values are those of other tokens"
            )
    elif kind == "llama":
        inner = _build_sentencepiece(metadata, named_tokens, architecture.startswith("gemma"))
    else:
        source: dict[str, Any] = {"gguf_file": file.name, "local_files_only": True}
        return transformers.AutoTokenizer.from_pretrained(file.parent, **source), warning
    has_bos = metadata.get("add_bos_token", kind == "llama" or rule in WHOLE_WORDS)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner,
        add_bos_token="bos" in named_tokens and has_bos,
        add_eos_token="eos" in named_tokens and metadata.get("add_eos_token", False),
        **{f"{name}_token": metadata["tokens"][index] for name, index in named_tokens.items()},
    )
    return tokenizer, warning


def _list_named_tokens(metadata: dict[str, Any]) -> dict[str, int]:
    """List the indices of special tokens by name, but omit an ordinary token, such as "!", that a file pads with."""
    keys = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
    indices = {name: metadata.get(f"{key}_token_id") for name, key in keys.items()}
    types = dict(enumerate(metadata.get("token_type", [])))
    return {
        name: index
        for name, index in indices.items()
        if index is not None and (name in ("bos", "eos") or types.get(index, NORMAL) != NORMAL)
    }


def _build_pre_tokenizer(file: Path, rule: str) -> "PreTokenizer":
    """Build the pre-tokenizer that cuts text into words by the rule in a file, or refuse the file."""
    from tokenizers import Regex
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence, Split

    byte_level = ByteLevel(add_prefix_space=False)
    if rule == "default" or rule in WORDS_OF_GPT_2:
        return byte_level
    if rule in WORDS_OF_SINGLE_DIGITS:
        return Sequence([Digits(individual_digits=True), byte_level])
    if rule in PATTERNS:
        letters = ByteLevel(add_prefix_space=False, use_regex=False)
        return Sequence([Split(Regex(PATTERNS[rule]), "isolated"), letters])
    raise InputError(
        f"{file} names the rule `{cut(rule)}` that cuts text into words (`tokenizer.ggml.pre`), which is not "
        "known here; take the folder of the original weights"
    )


def _build_byte_level(
    metadata: dict[str, Any], named_tokens: dict[str, int], words: "PreTokenizer"
) -> "Tokenizer":
    """Build a tokenizer of bytes from the tokens and merges of a file.

    The tokenizer of transformers follows rules that differ between versions, and spells added tokens in GPT-2's letters
    for bytes, in which a token of two blanks has the name of another token.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers

    tokens, rule = metadata["tokens"], metadata.get("pre")
    vocabulary = {token: index for index, token in enumerate(tokens)}
    merges = [tuple(merge.split(" ", 1)) for merge in metadata["merges"]]
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, ignore_merges=rule in WHOLE_WORDS))
    if rule in COMPOSED:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = words
    tokenizer.decoder = decoders.ByteLevel()
    types = dict(enumerate(metadata.get("token_type", [])))
    return _add_tokens(tokenizer, tokens, types | dict.fromkeys(named_tokens.values(), CONTROL))


def _build_sentencepiece(
    metadata: dict[str, Any], named_tokens: dict[str, int], is_gemma: bool
) -> "Tokenizer":
    """Build a tokenizer that cuts text as SentencePiece does, from the tokens of a file and their scores.

    The tokenizer of transformers 5.0.0 cuts Gemma's text as if the scores were those of a unigram model. Newer versions
    confuse a blank at the start of a text with the blank that SentencePiece puts there, and omit unknown characters.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers

    tokens = metadata["tokens"]
    # Files of Gemma spell runs of blanks as blanks, and order scores differently than merges.
    if is_gemma:
        tokens = [token if token.strip(" ") else "▁" * len(token) for token in tokens]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    if "merges" in metadata:
        merges = [tuple(merge.split(" ", 1)) for merge in metadata["merges"]]
    else:
        scores = [-index for index in range(len(tokens))] if is_gemma else metadata["scores"]
        merges = _derive_merges(vocabulary, scores)
    unknown = tokens[named_tokens["unk"]] if "unk" in named_tokens else None
    tokenizer = Tokenizer(
        models.BPE(vocabulary, merges, unk_token=unknown, fuse_unk=True, byte_fallback=True)
    )
    has_blank = metadata.get("add_space_prefix", not is_gemma)
    blanks = normalizers.Replace(" ", "▁")
    normalizer = [normalizers.Prepend("▁"), blanks] if has_blank else [blanks]
    tokenizer.normalizer = normalizers.Sequence(normalizer)
    spelling = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    first = [decoders.Strip(" ", 1, 0)] if has_blank else []
    tokenizer.decoder = decoders.Sequence([*spelling, *first])
    types = {
        index: kind
        for index, kind in enumerate(metadata.get("token_type", []))
        if tokens[index] == metadata["tokens"][index]
    }
    return _add_tokens(tokenizer, tokens, types)


def _derive_merges(vocabulary: dict[str, int], scores: list[float]) -> list[tuple[str, str]]:
    """List the pairs of tokens that join to a third token, best score first."""
    pairs = [
        (token[:place], token[place:])
        for token in vocabulary
        for place in range(1, len(token))
        if token[:place] in vocabulary and token[place:] in vocabulary
    ]
    return sorted(
        pairs, key=lambda pair: (-scores[vocabulary["".join(pair)]], -len(pair[0]), -len(pair[1]))
    )


def _add_tokens(tokenizer: "Tokenizer", tokens: list[str], types: dict[int, int]) -> "Tokenizer":
    """Let a tokenizer find control tokens and user-defined tokens in text, in the spelling of the file."""
    from tokenizers import AddedToken

    def list_tokens(kind: int) -> list[AddedToken]:
        return [AddedToken(tokens[i], normalized=False) for i in sorted(types) if types[i] == kind]

    tokenizer.add_special_tokens(list_tokens(CONTROL))
    tokenizer.add_tokens(list_tokens(USER_DEFINED))
    return tokenizer
