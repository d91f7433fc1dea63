"""Texts and pairs of texts through a model, without its special tokens."""

import numpy as np
import pytest
import torch
from shape_of_learning.embeddings.task_texts import text_vectors
from tokenizers import processors
from transformers import AutoModel, AutoTokenizer

from shape_of_learning.embeddings.run import SamplingProtocol
from shape_of_learning.errors import InputError
from tiny_models import save_tiny_model

PROTOCOL = SamplingProtocol(0, 0, 0)
SHAPE = {"role": "encoder", "layers": 3, "hidden_size": 32, "last_hidden_size": 32}


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """A tiny BERT whose tokenizer joins pairs as BERT's does."""
    folder = save_tiny_model(tmp_path_factory.mktemp("bert"), "bert")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    tokenizer.save_pretrained(folder)
    return folder


PAIRS = [("a b c of windows", "tokens"), ("the shape of what", "Layers, a model; text of tokens")]


def test_pairs_go_through_a_model_as_its_own_library_runs_them(bert):
    (found,) = text_vectors(bert, [(PAIRS, [1, 3])], PROTOCOL, SHAPE)
    tokenizer, model = AutoTokenizer.from_pretrained(bert), AutoModel.from_pretrained(bert).eval()
    parts, place = [], 0
    for number, pair in enumerate(PAIRS):
        encoded = tokenizer(*pair, return_tensors="pt", return_token_type_ids=True)
        assert encoded["token_type_ids"].sum() > 1
        with torch.no_grad():
            states = model(**encoded, output_hidden_states=True).hidden_states
        of_text = encoded.sequence_ids(0)
        for which in (0, 1):
            rows = [place for place, text in enumerate(of_text) if text == which]
            parts += [2 * number + which] * len(rows)
            for layer in (1, 3):
                expected = states[layer][0, rows].numpy()
                own = found.layers[layer][place : place + len(rows)]
                np.testing.assert_allclose(own, expected, atol=1e-5)
            place += len(rows)
    assert found.texts.tolist() == parts
    assert set(found.layers) == {1, 3}


def test_parts_keep_their_own_layers_and_texts_without_special_tokens(bert):
    first, second = ["a model", "of what the windows"], ["tokens of tokens"]
    one, other = text_vectors(bert, [(first, [3]), (second, [0, 3])], PROTOCOL, SHAPE)
    (alone,) = text_vectors(bert, [(second, [0, 3])], PROTOCOL, SHAPE)
    assert [set(part.layers) for part in (one, other)] == [{3}, {0, 3}]
    for layer in (0, 3):
        np.testing.assert_allclose(other.layers[layer], alone.layers[layer], atol=1e-5)
    ids = AutoTokenizer.from_pretrained(bert)(first, add_special_tokens=False)["input_ids"]
    assert one.token_ids.tolist() == [*ids[0], *ids[1]]
    assert one.texts.tolist() == [0] * len(ids[0]) + [1] * len(ids[1])
    assert other.texts.tolist() == [0] * len(other.token_ids)


@pytest.mark.parametrize("text", ["", ("a model", ""), ("", "a model")])
def test_a_text_without_a_token_is_refused(text, bert):
    other = "a" if isinstance(text, str) else ("a", "b")
    with pytest.raises(InputError, match="has no token"):
        text_vectors(bert, [([other, text], [3])], PROTOCOL, SHAPE)
