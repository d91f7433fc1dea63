import math

import numpy as np
import pytest
import torch
import transformers

from dumps import WINDOWS, cross_entropy, hidden_states
from shape_of_learning.embeddings.cross_entropy import (
    LOGITS_BYTES,
    masked_tokens,
    negative_log_likelihood,
    next_tokens,
)
from shape_of_learning.embeddings.tokenisation import TokenisedWindow, load_tokenizer, tokenise
from shape_of_learning.random_streams import random_stream
from tiny_models import (
    CONFIGURATIONS,
    ENCODERS,
    VOCABULARY,
    save_stirred_model,
    save_tiny_model,
    with_head,
)

DECODERS = [name for name in CONFIGURATIONS if name not in ENCODERS]
UNIT_ROUNDOFF = 2.0**-24  # of float32
SIZES = {
    "vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 3, "intermediate_size": 64,
    "num_attention_heads": 4, "num_key_value_heads": 2,
}  # fmt: skip
# Decoders whose logits are scaled or capped, or whose base model returns more than hidden states.
MORE_THAN_LINEAR = {
    "cohere": lambda: transformers.CohereConfig(**SIZES, logit_scale=0.3),
    "gemma2": lambda: transformers.Gemma2Config(**SIZES, head_dim=8, final_logit_softcapping=2.0),
    "mixtral": lambda: transformers.MixtralConfig(**SIZES, num_local_experts=2),
}


def predicted_tokens(checkpoint, name):
    """What `cross_entropy` asks for, window by window."""
    tokenizer = load_tokenizer(checkpoint)
    tokenised = tokenise(tokenizer, WINDOWS)
    if name not in ENCODERS:
        return [next_tokens(window) for window in tokenised]
    random = random_stream(0, "masked tokens")
    return [masked_tokens(window, tokenizer.mask_token_id, random) for window in tokenised]


def loss_of_the_library(checkpoint, name):
    """What transformers itself computes, one whole window at a time."""
    model = with_head(name).from_pretrained(checkpoint, dtype=torch.float32).eval()
    total, count = 0.0, 0
    for window in predicted_tokens(checkpoint, name):
        if len(window.targets) == 0:
            continue
        shown = torch.from_numpy(window.shown)[None]
        labels = shown.clone()  # a decoder shifts them itself
        if name in ENCODERS:
            labels[:] = -100
            labels[0, window.positions] = torch.from_numpy(window.targets)
        with torch.no_grad():
            mean = model(input_ids=shown, labels=labels).loss.item()
        total, count = total + mean * len(window.targets), count + len(window.targets)
    return total / count, count


@pytest.mark.parametrize("name", [*CONFIGURATIONS, *MORE_THAN_LINEAR])
def test_the_loss_is_that_of_the_library(name, tmp_path):
    configuration = MORE_THAN_LINEAR[name]() if name in MORE_THAN_LINEAR else None
    checkpoint = save_stirred_model(tmp_path / "model", name, configuration)
    measured = cross_entropy(checkpoint, tmp_path / "dump", name, window_batch_size=1)
    expected, count = loss_of_the_library(checkpoint, name)
    # A sum of n terms errs by about sqrt(n) roundings (Higham & Mary 2019). Up to four are formed in
    # a row (dense layer, logits, partition function, mean), of at most 300 terms below 10.
    tolerance = 4 * math.sqrt(300) * UNIT_ROUNDOFF * 10
    assert measured.loss == pytest.approx(expected, abs=tolerance)
    assert (measured.predicted_tokens, measured.vocabulary) == (count, VOCABULARY)


@pytest.mark.parametrize("name", DECODERS)
def test_an_untrained_decoder_guesses(name, tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", name, head=True)
    measured = cross_entropy(checkpoint, tmp_path / "dump", name)
    # A logit is the product of a normalised state, of norm sqrt(32) at most, and of weights with a
    # standard deviation of 0.02; a mean over tokens strays no further than four of its deviations.
    deviation = 0.02 * math.sqrt(32)
    assert measured.loss == pytest.approx(math.log(VOCABULARY), abs=4 * deviation)


def save_trained(folder):
    """A GPT-NeoX that knows the windows of this file."""
    save_tiny_model(folder, "gpt_neox", head=True)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    ids = torch.tensor([tokenizer(WINDOWS[1])["input_ids"]])
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(40):
        optimiser.zero_grad()
        model(input_ids=ids, labels=ids).loss.backward()
        optimiser.step()
    model.save_pretrained(folder)
    return model


def test_a_head_with_shuffled_rows_is_worse_than_guessing(tmp_path):
    # The mean over all orders of the rows is at least the logarithm of the vocabulary (Jensen).
    model = save_trained(tmp_path / "model")
    trained = cross_entropy(tmp_path / "model", tmp_path / "a", "gpt_neox", WINDOWS[1:2])
    head = model.get_output_embeddings().weight.data
    head.copy_(head[torch.randperm(VOCABULARY, generator=torch.Generator().manual_seed(0))])
    model.save_pretrained(tmp_path / "model")
    shuffled = cross_entropy(tmp_path / "model", tmp_path / "b", "gpt_neox", WINDOWS[1:2])
    assert trained.loss < math.log(VOCABULARY) / 2
    assert shuffled.loss > math.log(VOCABULARY)


@pytest.mark.parametrize("name", ["gpt_neox", "llama", "bloom"])
def test_the_loss_does_not_depend_on_the_batch_size(name, tmp_path):
    checkpoint = save_stirred_model(tmp_path / "model", name)
    one = cross_entropy(checkpoint, tmp_path / "one", name, window_batch_size=1)
    sixteen = cross_entropy(checkpoint, tmp_path / "sixteen", name, window_batch_size=16)
    # Padding changes a hidden state by 1e-5 of the largest entry at most (test_embedding_dump); a
    # logit by that times the sum of its weights, and a loss by twice the change of its logits.
    head = with_head(name).from_pretrained(checkpoint).get_output_embeddings().weight
    largest = np.abs(hidden_states(tmp_path / "one", 3)).max().item()
    tolerance = 2 * 1e-5 * largest * head.detach().abs().sum(dim=1).max().item()
    assert tolerance < 0.01
    assert one.loss == pytest.approx(sixteen.loss, abs=tolerance)


@pytest.mark.parametrize("name", ["gpt_neox", "bert"])
def test_the_number_of_threads_does_not_change_a_bit_of_the_loss(name, tmp_path):
    checkpoint = save_stirred_model(tmp_path / "model", name)
    one, three = (
        cross_entropy(
            checkpoint, tmp_path / str(n), name, WINDOWS * 4, threads=n, window_batch_size=2
        )
        for n in (1, 3)
    )
    assert one == three


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_mean_over_many_copies_of_a_window_is_that_over_one(precision, tmp_path):
    checkpoint = save_stirred_model(tmp_path / "model", "gpt_neox")
    once, often = (
        cross_entropy(
            checkpoint,
            tmp_path / str(copies),
            "gpt_neox",
            WINDOWS[:1] * copies,
            precision=precision,
            window_batch_size=1,
        )
        for copies in (1, 1000)
    )
    # In float64 a thousand additions stay below 1e-12; in bfloat16 the sum would stop growing.
    assert often.loss == pytest.approx(once.loss, rel=1e-12)


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_which_last_hidden_state_is_stored_does_not_change_the_loss(name, tmp_path):
    checkpoint = save_stirred_model(tmp_path / "model", name)
    after = cross_entropy(checkpoint, tmp_path / "after", name)
    before = cross_entropy(checkpoint, tmp_path / "before", name, last_layer="before_final_norm")
    assert before == after


def test_logits_of_a_large_vocabulary_come_in_blocks():
    vocabulary, rows = 250_880, 150  # BLOOM's
    random = torch.Generator().manual_seed(0)
    head = torch.randn(vocabulary, 4, generator=random)
    states = torch.randn(rows, 4, generator=random)
    targets = torch.randint(vocabulary, (rows,), generator=random)
    sizes = []

    def logits(block):
        sizes.append(block.shape[0] * 4 * vocabulary)
        return block @ head.T

    measured = negative_log_likelihood(logits, states, targets.numpy(), vocabulary)
    exact = torch.log_softmax((states @ head.T).double(), dim=1)[torch.arange(rows), targets]
    assert max(sizes) <= LOGITS_BYTES
    assert len(sizes) > 1
    # Sums of 250,880 and of 4 terms, each of which rounds in float32.
    tolerance = math.sqrt(vocabulary) * UNIT_ROUNDOFF * exact.abs().sum().item()
    assert measured.item() == pytest.approx(-exact.sum().item(), abs=tolerance)


def test_special_tokens_are_context_and_never_targets():
    ids = np.array([1, 40, 41, 2, 42, 2])
    special = np.isin(ids, [1, 2])
    window = next_tokens(TokenisedWindow(ids, special))
    assert window.positions.tolist() == [0, 1, 3]
    assert window.targets.tolist() == [40, 41, 42]


@pytest.mark.parametrize(("ordinary", "masked"), [(1, 1), (3, 1), (20, 3), (200, 30), (0, 0)])
def test_fifteen_percent_of_the_ordinary_tokens_are_masked(ordinary, masked):
    ids = np.array([1, *range(10, 10 + ordinary), 2])
    window = TokenisedWindow(ids, ids < 10)
    predicted = masked_tokens(window, 3, np.random.default_rng(0))
    assert len(set(predicted.positions.tolist())) == masked
    assert (predicted.targets >= 10).all()
    np.testing.assert_array_equal(ids[predicted.positions], predicted.targets)
    assert (predicted.shown == 3).sum() == masked
    hidden = np.isin(np.arange(len(ids)), predicted.positions)
    np.testing.assert_array_equal(predicted.shown[~hidden], ids[~hidden])
