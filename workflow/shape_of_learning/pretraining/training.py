"""Local pretraining of small models, whose saved steps serve like revisions of a Hub repository."""

import copy
import hashlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from shape_of_learning.checkpoints.saved_training import deterministic, save_step, software
from shape_of_learning.corpus.windows import HELD_OUT_SHARE
from shape_of_learning.errors import InputError
from shape_of_learning.pretraining.recipe import Recipe
from shape_of_learning.pretraining.regularisers import TERMS, recorded_states
from shape_of_learning.pretraining.steps import pretraining_steps, revision_of_step
from shape_of_learning.pretraining.tokenizer import (
    ENCODER_TOKENS,
    characters_of,
    token_ids,
    train_tokenizer,
)
from shape_of_learning.pretraining.training_batches import CausalObjective, MaskedObjective
from shape_of_learning.random_streams import random_stream, stream_seed
from shape_of_learning.storage.files import atomic_write

logger = logging.getLogger(__name__)

# As in the training configurations of Pythia (Biderman et al. 2023).
ADAM_BETAS = (0.9, 0.95)
WEIGHT_DECAY = 0.01
GRADIENT_NORM = 1.0
WIDENING = 4
# At the end of the text, which is never trained on: the loss that is reported is measured there.
HELD_OUT_SEQUENCES = 32


def pretrain(text: str, recipe: Recipe, *, model: str, destination: Path) -> None:
    """Train a model on `text` and save it at log-spaced steps.

    Parameters
    ----------
    text : str
        The cleaned corpus. Its last twentieth is held out.
    recipe : Recipe
        What to train and how.
    model : str
        Name of the model, to which its random streams belong, unless it is a twin.
    destination : Path
        Folder that appears, whole, at the end. It holds one folder in Hugging Face format per step
        of :func:`.pretraining_steps`, called ``step{N}``, with the tokenizer and a
        ``checkpoint.json`` that says the step, the tokens seen, the held-out loss (nats per
        predicted token), the regulariser's term there if there is one, how much of the text was
        trained on, and the recipe.

    Raises
    ------
    InputError
        If the text is too short, or the vocabulary too small for all bytes; if the recipe is for a GPU
        and none is visible, or its memory is too small.

    Notes
    -----
    The same text, recipe and library versions give the same bytes on processors with the same
    vector instructions, or on GPUs of the same kind; on others floating-point sums are formed in
    another order.
    """
    device = _device(recipe)
    try:
        _pretrain(text, recipe, model, destination, device)
    except torch.OutOfMemoryError as error:
        raise InputError(
            f"memory of the GPU is exhausted by {recipe.batch_size} sequences of {recipe.context} tokens; "
            "lower `pretraining.batch_size`, or, if other jobs of this run are on that GPU, let one at a "
            "time have it by `--resources gpu=1`"
        ) from error


def _device(recipe: Recipe) -> torch.device:
    """Return where to train, ready to form its sums in the same order each time."""
    if recipe.device == "cuda":
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # cuBLAS reads it as it starts
        if not torch.cuda.is_available():
            raise InputError(
                "`pretraining.device` is `cuda`, but PyTorch sees no GPU; start this where there is one, "
                "with a PyTorch that has CUDA, or set `device: cpu`"
            )
        torch.set_float32_matmul_precision("highest")  # some installations switch TF32 on
    return torch.device(recipe.device)


def _pretrain(
    text: str, recipe: Recipe, model: str, destination: Path, device: torch.device
) -> None:
    streams = recipe.twin_of or model
    with deterministic(recipe.threads), atomic_write(destination) as folder:
        tokenizer = train_tokenizer(
            text, encoder=recipe.encoder, vocabulary=recipe.vocabulary, context=recipe.context
        )
        training, held_out = _split(token_ids(tokenizer, text), recipe.context)
        objective = _objective(recipe, tokenizer)
        held_out_batch = objective.batch(
            held_out, HELD_OUT_SEQUENCES, random_stream(recipe.seed, "held-out", model=streams)
        )
        provenance = {
            "source": "pretraining",
            "model": model,
            "recipe": recipe.written(),
            "text": {"characters": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest()},
            "training_tokens": len(training),
            "training_characters": characters_of(tokenizer, text, len(training)),
            "software": {**software(), **_gpu(device)},
        }
        torch.manual_seed(stream_seed(recipe.seed, "initial weights", model=streams))
        network = _network(recipe, tokenizer)
        # What is saved is on the CPU, wherever it is trained.
        trained = network if recipe.device == "cpu" else copy.deepcopy(network).to(device)
        random = random_stream(recipe.seed, "training batches", model=streams)
        saved = set(pretraining_steps(recipe.last_step))
        for step in _train(trained, objective, training, recipe, random):
            if step not in saved:
                continue
            measured = _held_out(trained, held_out_batch, recipe)
            logger.info("%s: step %d, %s", model, step, _shown("held-out", measured))
            if trained is not network:
                network.load_state_dict(trained.state_dict())
            save_step(
                network,
                tokenizer.save_pretrained,
                folder / revision_of_step(step),
                step=step,
                tokens=step * recipe.tokens_per_step,
                **measured,
                **provenance,
            )


def _gpu(device: torch.device) -> dict[str, str]:
    return {"gpu": torch.cuda.get_device_name(device)} if device.type == "cuda" else {}


def _train(
    network: Any,
    objective: CausalObjective | MaskedObjective,
    ids: np.ndarray,
    recipe: Recipe,
    random: np.random.Generator,
) -> Iterator[int]:
    """Yield the number of updates made so far: 0 before the first one, then 1, 2, ..."""
    parameters = list(network.parameters())
    optimiser = torch.optim.AdamW(
        [
            {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": WEIGHT_DECAY},
            {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
        ],
        betas=ADAM_BETAS,
    )
    reported = max(1, recipe.last_step // 10)
    network.train()
    for step in range(recipe.last_step):
        yield step
        for group in optimiser.param_groups:
            group["lr"] = recipe.learning_rate_at(step)
        losses = _losses(network, objective.batch(ids, recipe.batch_size, random), recipe)
        optimiser.zero_grad()
        torch.stack(list(losses.values())).sum().backward()
        torch.nn.utils.clip_grad_norm_(parameters, GRADIENT_NORM)
        optimiser.step()
        if (step + 1) % reported == 0:
            values = {name: value.item() for name, value in losses.items()}
            logger.info(
                "update %d of %d, %s", step + 1, recipe.last_step, _shown("training", values)
            )
    yield recipe.last_step


def _losses(
    network: Any, batch: tuple[np.ndarray, np.ndarray], recipe: Recipe
) -> dict[str, torch.Tensor]:
    """Return what is minimised: the ``loss`` and, if there is one, the ``regularisation``."""
    shown, predicted = (torch.from_numpy(part).to(network.device) for part in batch)
    if recipe.regulariser == "none":
        return {"loss": network(input_ids=shown, labels=predicted).loss}
    with recorded_states(network) as states:
        loss = network(input_ids=shown, labels=predicted).loss
    return {"loss": loss, "regularisation": recipe.strength * TERMS[recipe.regulariser](states)}


def _shown(whose: str, values: dict[str, float]) -> str:
    return ", ".join(f"{whose} {name} {value:.3f}" for name, value in values.items())


@torch.no_grad()
def _held_out(
    network: Any, batch: tuple[np.ndarray, np.ndarray], recipe: Recipe
) -> dict[str, float]:
    return {name: value.item() for name, value in _losses(network, batch, recipe).items()}


def _split(ids: np.ndarray, context: int) -> tuple[np.ndarray, np.ndarray]:
    held_out = max(context, round(HELD_OUT_SHARE * len(ids)))
    if len(ids) < held_out + context:
        raise InputError(
            f"the training text has {len(ids)} tokens, but `pretraining.context` {context} needs at least "
            f"{2 * context}; give a longer text or a shorter context"
        )
    return ids[:-held_out], ids[-held_out:]


def _objective(recipe: Recipe, tokenizer: Any) -> CausalObjective | MaskedObjective:
    if not recipe.encoder:
        return CausalObjective(recipe.context)
    # The trainer numbers special tokens first, so that the others are one range.
    ordinary = range(len(ENCODER_TOKENS), len(tokenizer))
    special = tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.mask_token_id
    return MaskedObjective(recipe.context, *special, ordinary)


def _network(recipe: Recipe, tokenizer: Any) -> Any:
    size: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "num_hidden_layers": recipe.layers,
        "hidden_size": recipe.hidden_size,
        "num_attention_heads": recipe.attention_heads,
        "intermediate_size": WIDENING * recipe.hidden_size,
        "max_position_embeddings": recipe.context,
    }
    # No dropout in either, as in Pythia: small models do not overfit in a few passes over the text.
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
