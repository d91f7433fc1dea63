"""Byte-level BPE tokenizers trained on the corpus, for models that are pretrained here."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from shape_of_learning.errors import InputError

# A decoder is trained and read without special tokens, as Pythia is; its one is never inserted.
DECODER_TOKENS = ["<|endoftext|>"]
ENCODER_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
BYTES = 256
# The library keeps about 100 bytes beside each token, so a long text is encoded in parts.
CHUNK_CHARACTERS = 1 << 20


def train_tokenizer(
    text: str, *, encoder: bool, vocabulary: int, context: int
) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE tokenizer, so that any text has tokens and none is unknown.

    Parameters
    ----------
    text : str
        The training text.
    encoder : bool
        Whether a text is framed as ``[CLS] text [SEP]`` and there is a mask token.
    vocabulary : int
        Number of tokens, special ones and the 256 bytes included; fewer come out of a text that has
        no more pairs to merge.
    context : int
        Longest sequence that the model is made for.

    Raises
    ------
    InputError
        If `vocabulary` has no room for the bytes.
    """
    special = ENCODER_TOKENS if encoder else DECODER_TOKENS
    if vocabulary < BYTES + len(special):
        raise InputError(
            f"`pretraining.vocabulary` is {vocabulary}, but {BYTES} bytes and {len(special)} special "
            f"tokens need room; make it at least {BYTES + len(special)}"
        )
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_chunks(text), trainer)
    if encoder:
        frame = [(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=frame
        )
        names = {f"{token[1:-1].lower()}_token": token for token in ENCODER_TOKENS}
    else:
        names = {"bos_token": DECODER_TOKENS[0], "eos_token": DECODER_TOKENS[0]}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=context,
        clean_up_tokenization_spaces=False,
        **names,
    )


def tokens_of(tokenizer: Any, text: str) -> tuple[np.ndarray, np.ndarray]:
    """Tokens of a whole text without special ones, and where in it each ends, both int64 of shape (tokens,).

    Of a character that several tokens share, all of them have the end.
    """
    nothing = np.zeros(0, dtype=np.int64)
    ids, ends, before = [nothing], [nothing], 0
    for chunk in _chunks(text):
        encoding = tokenizer.backend_tokenizer.encode(chunk, add_special_tokens=False)
        ids.append(np.array(encoding.ids, dtype=np.int64))
        ends.append(np.array([end + before for _, end in encoding.offsets], dtype=np.int64))
        before += len(chunk)
    return np.concatenate(ids), np.concatenate(ends)


def _chunks(text: str) -> Iterator[str]:
    """Cut at line ends, where no token of ordinary text crosses the cut."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + CHUNK_CHARACTERS) + 1 or len(text)
        yield text[start:end]
        start = end
