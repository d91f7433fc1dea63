"""Pretrain small models and their tokenizers, and save steps that serve like revisions on the Hub."""

import hashlib
import logging
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from shape_of_learning.corpus.windows import HELD_OUT_SHARE
from shape_of_learning.embeddings.hooks import record_states
from shape_of_learning.errors import InputError
from shape_of_learning.files import atomic_write
from shape_of_learning.random_streams import random_stream, stream_seed
from shape_of_learning.training.recipe import PRETRAINING_BETAS, PretrainingRecipe, space_steps
from shape_of_learning.training.train import (
    format_terms,
    list_versions,
    make_deterministic,
    save_step,
    train,
)

logger = logging.getLogger(__name__)

# A decoder is trained and run without special tokens, as Pythia is; no text contains its only special token.
DECODER_TOKENS = ["<|endoftext|>"]
ENCODER_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
BYTES = 256
# The library needs about 100 bytes for each token, so a long text is encoded in parts.
CHUNK_CHARACTERS = 1 << 20
WIDENING = 4
IGNORED = -100  # the label that transformers leaves out of the loss
# Devlin et al. 2019, section 3.1: 80 % of the masked positions show the mask, 10 % a random token.
MASKED_SHARE, MASK_TOKEN_SHARE, RANDOM_TOKEN_SHARE = 0.15, 0.8, 0.1
HELD_OUT_SEQUENCES = 32  # sequences drawn from the held-out end of the text; their loss is recorded


def pretrain(text: str, recipe: PretrainingRecipe, *, model: str, destination: Path) -> None:
    """Train a model on `text` and save it at log-spaced steps.

    Parameters
    ----------
    text : str
        The cleaned corpus. Its last twentieth is held out.
    recipe : PretrainingRecipe
        Architecture and hyperparameters.
    model : str
        Name of the model. It decides the random numbers, except in a twin, which has the numbers of its original.
    destination : Path
        Folder that appears when all steps are saved. It holds one folder in Hugging Face format per step of
        :func:`.space_steps`, called ``step{N}``, with the tokenizer and a ``checkpoint.json``. This states
        the step, the number of tokens so far, the loss on held-out text (nats per predicted token), the regulariser's
        term on that text if there is one, the length of the training text, and the recipe.

    Raises
    ------
    InputError
        If the text is too short, or the vocabulary too small for all bytes.

    Notes
    -----
    The same text, recipe and library versions give the same bytes on processors with the same
    vector instructions; other processors form floating-point sums in another order.
    """
    with make_deterministic(recipe.threads), atomic_write(destination) as folder:
        tokenizer = train_tokenizer(text, recipe)
        ids, ends = tokenize_text(tokenizer, text)
        end = len(ids) - max(recipe.context, round(HELD_OUT_SHARE * len(ids)))
        if end < recipe.context:
            raise InputError(
                f"the training text has {len(ids)} tokens, but `pretraining.context` {recipe.context} needs "
                f"at least {2 * recipe.context}; give a longer text or a shorter context"
            )
        provenance = {
            "source": "pretraining",
            "model": model,
            "recipe": recipe.make_record(),
            "text": {"characters": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest()},
            "training_tokens": end,
            "training_characters": int(ends[:end].max()),
            "software": list_versions(),
        }
        seed, owner = recipe.seed, recipe.twin_of or model
        random = random_stream(seed, "held-out", model=owner)
        held_out = draw_batch(ids[end:], HELD_OUT_SEQUENCES, random, recipe, tokenizer)
        torch.manual_seed(stream_seed(seed, "initial weights", model=owner))
        network = _make_network(recipe, tokenizer).train()
        random = random_stream(seed, "training batches", model=owner)
        steps = range(recipe.last_step)
        updates = train(
            list(network.parameters()),
            (draw_batch(ids[:end], recipe.batch_size, random, recipe, tokenizer) for _ in steps),
            lambda batch: _compute_losses(network, batch, recipe),
            list(map(recipe.learning_rate_at, steps)),
            betas=PRETRAINING_BETAS,
            name=model,
        )
        steps_to_save = set(space_steps(recipe.last_step))
        for step in updates:
            if step not in steps_to_save:
                continue
            with torch.no_grad():
                losses = _compute_losses(network, held_out, recipe)
            logger.info("%s: step %d, held-out %s", model, step, format_terms(losses))
            record = {
                "tokens": step * recipe.tokens_per_step,
                **{name: value.item() for name, value in losses.items()},
                **provenance,
            }
            save_step(network, tokenizer.save_pretrained, folder, step=step, **record)


def draw_batch(
    ids: np.ndarray,
    size: int,
    random: np.random.Generator,
    recipe: PretrainingRecipe,
    tokenizer: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw sequences of a text: inputs and labels, each of shape (size, context).

    A decoder predicts the next token of a sequence, an encoder masked tokens of ``[CLS] sequence [SEP]``.
    """
    length = recipe.context - 2 if recipe.encoder else recipe.context
    starts = random.integers(0, len(ids) - length + 1, size)
    sequences = ids[starts[:, np.newaxis] + np.arange(length)]
    if not recipe.encoder:
        return sequences, sequences  # the model shifts the labels itself
    is_target = random.random(sequences.shape) < MASKED_SHARE
    is_target[:, 0] |= ~is_target.any(axis=1)  # a sequence without targets has no loss
    choice = random.random(sequences.shape)
    # The trainer numbers special tokens first, so that the other tokens are one range.
    random_tokens = random.integers(len(ENCODER_TOKENS), len(tokenizer), sequences.shape)
    shows_mask = choice < MASK_TOKEN_SHARE
    shows_random_token = ~shows_mask & (choice < MASK_TOKEN_SHARE + RANDOM_TOKEN_SHARE)
    inputs = np.where(is_target & shows_mask, tokenizer.mask_token_id, sequences)
    inputs = np.where(is_target & shows_random_token, random_tokens, inputs)
    labels = np.where(is_target, sequences, IGNORED)
    inputs = _add_special_tokens(inputs, tokenizer.cls_token_id, tokenizer.sep_token_id)
    return inputs, _add_special_tokens(labels, IGNORED, IGNORED)


def _add_special_tokens(sequences: np.ndarray, first: int, last: int) -> np.ndarray:
    return np.pad(sequences, ((0, 0), (1, 1)), constant_values=((0, 0), (first, last)))


def _make_network(recipe: PretrainingRecipe, tokenizer: Any) -> Any:
    size: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "num_hidden_layers": recipe.layers,
        "hidden_size": recipe.hidden_size,
        "num_attention_heads": recipe.attention_heads,
        "intermediate_size": WIDENING * recipe.hidden_size,
        "max_position_embeddings": recipe.context,
    }
    # No model has dropout, as in Pythia: small models do not overfit in a few passes over the text.
    if recipe.encoder:
        return transformers.BertForMaskedLM(
            transformers.BertConfig(
                **size,
                pad_token_id=tokenizer.pad_token_id,
                hidden_dropout_prob=0.0,
                attention_probs_dropout_prob=0.0,
            )
        )
    end = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    return transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(**size, **end))


def _compute_losses(
    network: Any, batch: tuple[np.ndarray, np.ndarray], recipe: PretrainingRecipe
) -> dict[str, torch.Tensor]:
    """Return the terms to minimise: the ``loss`` and, with a regulariser, the ``regularisation``."""
    inputs, labels = map(torch.from_numpy, batch)
    if recipe.regulariser == "none":
        return {"loss": network(input_ids=inputs, labels=labels).loss}
    base = network.base_model
    blocks = base.encoder.layer if recipe.encoder else base.layers
    with record_states(blocks) as states:
        loss = network(input_ids=inputs, labels=labels).loss
    return {
        "loss": loss,
        "regularisation": (recipe.strength or 0) * TERMS[recipe.regulariser](states),
    }


def cosine_term(states: list[torch.Tensor]) -> torch.Tensor:
    """Sum 1 - cos(h_i, h_{i-1}), averaged over tokens, over the blocks (Razzhigaev et al. 2024, section 5).

    The paper states neither which hidden states it means, nor whether it takes sums or means.
    """
    units = [torch.nn.functional.normalize(state, dim=-1) for state in states]
    terms = [(1 - (unit * previous).sum(-1)).mean() for previous, unit in pairwise(units)]
    return torch.stack(terms).sum()


def mse_term(states: list[torch.Tensor]) -> torch.Tensor:
    """Sum ||h_i - h_{i-1}||^2, averaged over tokens, over the blocks, as in :func:`cosine_term`."""
    terms = [(state - previous).square().sum(-1).mean() for previous, state in pairwise(states)]
    return torch.stack(terms).sum()


TERMS = {"cosine": cosine_term, "mse": mse_term}


def train_tokenizer(text: str, recipe: PretrainingRecipe) -> transformers.PreTrainedTokenizerFast:
    """Train a byte-level BPE tokenizer, which has no unknown tokens.

    Parameters
    ----------
    text : str
        The training text.
    recipe : PretrainingRecipe
        Its `vocabulary` is the number of tokens, with special tokens and the 256 bytes; a text without further pairs to
        merge gives fewer. For an encoder, the tokenizer frames a text as ``[CLS] text [SEP]`` and has a mask token.

    Raises
    ------
    InputError
        If the vocabulary has no room for the bytes.
    """
    special_tokens = ENCODER_TOKENS if recipe.encoder else DECODER_TOKENS
    minimum = BYTES + len(special_tokens)
    if recipe.vocabulary < minimum:
        raise InputError(
            f"`pretraining.vocabulary` is {recipe.vocabulary}, but {BYTES} bytes and {len(special_tokens)} special "
            f"tokens need room; make it at least {minimum}"
        )
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=recipe.vocabulary,
        special_tokens=special_tokens,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_split_lines(text), trainer)
    if recipe.encoder:
        frame = [(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=frame
        )
        names = {f"{token[1:-1].lower()}_token": token for token in ENCODER_TOKENS}
    else:
        names = {"bos_token": DECODER_TOKENS[0], "eos_token": DECODER_TOKENS[0]}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=recipe.context,
        clean_up_tokenization_spaces=False,
        **names,
    )


def tokenize_text(tokenizer: Any, text: str) -> tuple[np.ndarray, np.ndarray]:
    """Tokenise a whole text without special tokens; return ids, and ends in the text, both int64 of shape (tokens,).

    If tokens share a character, all of them end after it.
    """
    empty = np.zeros(0, dtype=np.int64)
    ids, ends, offset = [empty], [empty], 0
    for chunk in _split_lines(text):
        encoding = tokenizer.backend_tokenizer.encode(chunk, add_special_tokens=False)
        ids.append(np.array(encoding.ids, dtype=np.int64))
        ends.append(np.array([end + offset for _, end in encoding.offsets], dtype=np.int64))
        offset += len(chunk)
    return np.concatenate(ids), np.concatenate(ends)


def _split_lines(text: str) -> Iterator[str]:
    """Split a text at line ends, since tokens of ordinary text do not cross these."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + CHUNK_CHARACTERS) + 1 or len(text)
        yield text[start:end]
        start = end
