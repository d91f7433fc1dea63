"""Hidden states of the texts and pairs of texts of a task, without special tokens."""

import numpy as np
import pytest
import torch
from tokenizers import processors
from transformers import AutoModel, AutoTokenizer

from papers.finetuning.measure_on_task import compute_vectors
from shape_of_learning.checkpoints.shapes import Shape
from shape_of_learning.embeddings.protocol import SamplingProtocol
from shape_of_learning.errors import InputError
from shape_of_learning.tasks.examples import Example, Task
from tiny_models import save_tiny_model

SHAPE = Shape("encoder", 3, 32, 32)
PAIRS = [("a b c of windows", "tokens"), ("the shape of what", "Layers, a model; text of tokens")]


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


def compute_splits(bert, train, held_out):
    examples = [
        Example(split, label, "g", *([text] if isinstance(text, str) else text))
        for split, label, texts in (("held_out", 1, held_out), ("train", 0, train))
        for text in texts
    ]
    return compute_vectors(Task("accuracy", examples), bert, SamplingProtocol(0, 0, 0), shape=SHAPE)


@pytest.mark.parametrize(
    ("train", "held_out"),
    [(PAIRS, PAIRS[::-1]), (["a model", "of what the windows"], ["tokens of tokens", "x"])],
)
def test_states_of_each_split_are_those_of_the_library(bert, train, held_out):
    splits = compute_splits(bert, train, held_out)
    tokenizer, model = AutoTokenizer.from_pretrained(bert), AutoModel.from_pretrained(bert).eval()
    assert [set(split.layers) for split in splits] == [{3}, {0, 1, 2, 3}]
    for split, texts, label in zip(splits, (train, held_out), (0, 1), strict=True):
        assert split.labels.tolist() == [label] * 2
        ids, text_numbers, expected_layers = [], [], {layer: [] for layer in split.layers}
        for number, text in enumerate(texts):
            parts = text if isinstance(text, tuple) else (text,)
            encoding = tokenizer(*parts, return_tensors="pt", return_token_type_ids=True)
            with torch.no_grad():
                states = model(**encoding, output_hidden_states=True).hidden_states
            for part in range(len(parts)):
                rows = [place for place, t in enumerate(encoding.sequence_ids(0)) if t == part]
                ids += encoding["input_ids"][0, rows].tolist()
                text_numbers += [len(parts) * number + part] * len(rows)
                for layer, states_of_layer in expected_layers.items():
                    states_of_layer.append(states[layer][0, rows].numpy())
        assert split.token_ids.tolist() == ids
        assert split.texts.tolist() == text_numbers
        for layer, states_of_layer in expected_layers.items():
            np.testing.assert_allclose(
                split.layers[layer], np.concatenate(states_of_layer), atol=1e-5
            )


@pytest.mark.parametrize("text", ["", ("a model", ""), ("", "a model")])
def test_a_text_without_a_token_is_refused(text, bert):
    other = "a" if isinstance(text, str) else ("a", "b")
    with pytest.raises(InputError, match="has no token"):
        compute_splits(bert, [other], [text])
