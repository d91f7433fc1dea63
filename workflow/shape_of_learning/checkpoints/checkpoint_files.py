"""Which files of a repository make a checkpoint."""

from collections.abc import Callable, Collection

CONFIGURATION = "config.json"
# Safetensors before pickles and a single file before shards, which is how transformers chooses.
WEIGHTS = (
    ("model.safetensors", "model.safetensors.index.json"),
    ("pytorch_model.bin", "pytorch_model.bin.index.json"),
)
# Any of these holds a vocabulary, in the format of one tokenizer library or another.
VOCABULARIES = frozenset(
    {
        "sentencepiece.bpe.model",
        "sentencepiece.model",
        "spiece.model",
        "spm.model",
        "tokenizer.json",
        "tokenizer.model",
        "vocab.json",
        "vocab.txt",
    }
)
TOKENIZER = VOCABULARIES | {
    "added_tokens.json",
    "merges.txt",
    "special_tokens_map.json",
    "tokenizer_config.json",
}


def weight_files(names: Collection[str], shards: Callable[[str], Collection[str]]) -> list[str]:
    """Choose one set of weights, and nothing of the same weights in other formats.

    Parameters
    ----------
    names : collection of str
        The files that there are.
    shards : callable
        Reads an index file and returns the names of the shards that it points to. The index decides,
        not the names: repositories keep shards of layouts that they have given up.

    Returns
    -------
    list of str
        Sorted; empty if there are neither safetensors nor ``pytorch_model.bin``.
    """
    for whole, index in WEIGHTS:
        if whole in names:
            return [whole]
        if index in names:
            return sorted({index, *shards(index)})
    return []


def tokenizer_files(names: Collection[str]) -> list[str]:
    """Choose the files of the tokenizer, sorted; empty if none of them holds a vocabulary."""
    return sorted(TOKENIZER & set(names)) if VOCABULARIES & set(names) else []
