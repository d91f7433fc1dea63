import math
from contextlib import suppress
from functools import cache

import numpy as np
import pytest
import torch
import transformers

from papers.linear import maps
from papers.linear.edits import Editor, choose_blocks
from papers.linear.job import Distillation, Editing
from runs import load_sample
from shape_of_learning.checkpoints.shapes import Shape
from shape_of_learning.embeddings.protocol import SamplingProtocol
from shape_of_learning.errors import InputError
from tiny_models import WIDTHS, save_stirred_model
from trainings import adam

DECODERS = ["gpt_neox", "bloom", "llama", "opt", "gpt2", "falcon", "opt_projected"]
LAYERS, WIDTH = 3, 32
IDS = np.random.default_rng(0).integers(5, 300, (8, 20))
TEXT = "".join(
    f"The {animal} saw the {place}, {mood} as ever.\n"
    for animal in ("cat", "dog", "horse", "bird", "fish", "mouse", "wolf", "bear")
    for place in ("river", "forest", "house", "mountain", "city", "sea")
    for mood in ("glad", "tired", "hungry", "afraid", "proud")
)
WINDOWS = [TEXT[start : start + 100] for start in range(0, 3000, 100)]
SHAPE = Shape("decoder", 3, WIDTH, WIDTH)
PROTOCOL = SamplingProtocol(1, 64, 0)
EDITING = Editing(
    fitting_windows=24,
    evaluation_windows=7,  # all windows of the end of the text
    most_blocks=2,
    orders=("most_linear_first", "least_linear_first", "alone"),
    kinds=("dropped", "replaced", "maps_distilled", "all_distilled"),
    distillation=Distillation(steps=2, windows=2, learning_rate=1e-3),
)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    """Folders of stirred models by architecture."""
    return cache(lambda name: save_stirred_model(tmp_path_factory.mktemp(name), name))


@pytest.fixture
def load_blocks(checkpoints):
    """Load a model anew; return it with its blocks and its tokenised texts."""

    def load(name):
        sample = load_sample(checkpoints(name), WIDTHS[name], WINDOWS)
        return sample.forward, maps.EditableBlocks(sample.forward, "the model"), sample.windows

    return load


def compute_logits(forward, ids=IDS):
    with torch.no_grad():
        return forward.head.model(input_ids=torch.from_numpy(ids)).logits.clone()


def record_model_states(forward):
    with torch.no_grad():
        arguments = {"input_ids": torch.from_numpy(IDS), "output_hidden_states": True}
        return [state.clone() for state in forward.model(**arguments).hidden_states]


def draw_map(seed):
    random = np.random.default_rng(seed)
    weight = np.eye(WIDTH) + random.normal(size=(WIDTH, WIDTH)) / 20
    return maps.AffineMap(weight, random.normal(size=WIDTH) / 5)


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("recorded_before", [True, False])
def test_replaced_blocks_are_recorded_and_restored(name, recorded_before, load_blocks):
    forward, blocks, _ = load_blocks(name)
    if recorded_before:  # the library hooks its blocks when hidden states are first asked for
        record_model_states(forward)
    weights = {key: value.clone() for key, value in forward.head.model.state_dict().items()}
    modules, logits_before = list(forward.model.modules()), compute_logits(forward)
    with (
        suppress(ZeroDivisionError),
        blocks.replace_blocks({1: draw_map(1), 3: torch.nn.Identity()}),
    ):
        new_states = record_model_states(forward)
        assert len(new_states) == LAYERS + 1
        for state, width in zip(new_states, WIDTHS[name], strict=True):
            assert state.shape == (*IDS.shape, width)
        torch.testing.assert_close(new_states[1], draw_map(1)(new_states[0]))
        assert not torch.equal(compute_logits(forward), logits_before)
        assert type(blocks._blocks[0]) is not type(modules[0])
        assert isinstance(blocks._blocks[0], type(blocks._blocks[1]))
        raise ZeroDivisionError  # the blocks are restored after an error, too
    assert all(a is b for a, b in zip(forward.model.modules(), modules, strict=True))
    weights_after = forward.head.model.state_dict()
    assert all(torch.equal(weights_after[key], value) for key, value in weights.items())
    assert len(record_model_states(forward)) == LAYERS + 1
    assert torch.equal(compute_logits(forward), logits_before)


@pytest.mark.parametrize("name", DECODERS)
def test_states_are_those_of_the_library_and_a_dropped_block_is_absent(name, load_blocks):
    forward, blocks, _ = load_blocks(name)
    with torch.no_grad():
        block_states = blocks.compute_states(list(IDS), 0)
    assert len(block_states) == LAYERS + 1
    # The library's last state is the one after the final norm.
    assert all(map(torch.equal, block_states[:-1], record_model_states(forward)))
    assert block_states[-1].shape == (*IDS.shape, WIDTH)
    with blocks.replace_blocks({2: torch.nn.Identity()}):
        logits_without_block = compute_logits(forward)
    del blocks._blocks[1]
    forward.config.num_hidden_layers = LAYERS - 1
    assert torch.equal(compute_logits(forward), logits_without_block)


@pytest.mark.parametrize("name", ["gpt_neox", "bloom"])
def test_replacing_linear_blocks_by_their_maps_keeps_the_logits(name, load_blocks):
    forward, blocks, windows = load_blocks(name)
    with blocks.replace_blocks({number: draw_map(number) for number in (1, 2, 3)}):
        expected_logits = compute_logits(forward)
        fitted_blocks = maps.fit_blocks(maps.TeacherStates(blocks, windows, 0).states)
        with blocks.replace_blocks(
            {number: fitted_blocks[number - 1].make_map() for number in (1, 2, 3)}
        ):
            new_logits = compute_logits(forward)
    assert min(block.linearity for block in fitted_blocks) > 1 - 1e-9
    # States are float32, and 30 of them are summed in each coordinate of a map.
    torch.testing.assert_close(
        new_logits, expected_logits, rtol=1e-3, atol=1e-3 * float(expected_logits.abs().max())
    )
    assert not torch.allclose(compute_logits(forward), expected_logits, atol=0.1)


def test_states_that_are_not_finite_leave_values_empty_and_too_few_are_refused():
    x = np.random.default_rng(0).normal(size=(100, 4)).astype(np.float32)
    fitted_blocks = maps.fit_blocks([x, x, np.full_like(x, np.nan)])
    assert fitted_blocks[0].linearity == pytest.approx(1)
    assert math.isnan(fitted_blocks[1].linearity)
    assert list(choose_blocks("most_linear_first", fitted_blocks, 2)) == [()]
    assert all(
        math.isnan(value) for value in maps.make_fit_error_rows("m", "r", fitted_blocks)[1][5:]
    )
    with pytest.raises(InputError, match=r"raise `block_editing\.fitting_windows`"):
        maps.fit_blocks([x[:5], x[:5]])


def test_distillation_reduces_the_error_and_trains_only_its_parameters(load_blocks):
    forward, blocks, windows = load_blocks("gpt_neox")
    teacher = maps.TeacherStates(blocks, windows, 0)
    poor = maps.AffineMap(np.eye(WIDTH), np.zeros(WIDTH))
    with torch.no_grad():
        # The unchanged model has no error.
        assert teacher.compute_error(blocks, 1, range(30)) < 1e-6
    with blocks.replace_blocks({2: poor}):
        error_before = teacher.compute_error(blocks, 2, range(30)).item()
        distillation = Distillation(steps=30, windows=4, learning_rate=0.01)
        maps.distil(blocks, poor.parameters(), teacher, 2, distillation, np.random.default_rng(0))
        assert teacher.compute_error(blocks, 2, range(30)).item() < 0.9 * error_before
    assert not any(weight.requires_grad for weight in forward.head.model.parameters())


def test_distillation_is_adam_with_a_rate_that_falls_to_zero():
    """Compared with Adam by hand for the error sum(gradient x parameter)."""
    calls = []

    class Teacher:
        def __len__(self):
            return 5

        def compute_error(self, blocks, first, windows):
            calls.append((first, windows))
            return (torch.tensor([3.0, -0.5]) * len(calls) * weight).sum()

    weight = torch.nn.Parameter(torch.zeros(2))
    distillation = Distillation(steps=3, windows=2, learning_rate=0.4)
    maps.distil(None, [weight], Teacher(), 4, distillation, np.random.default_rng(1))
    random = np.random.default_rng(1)
    assert calls == [(4, random.permutation(5)[:2].tolist()) for _ in range(3)]
    gradients = [np.array([3.0, -0.5]) * update for update in (1, 2, 3)]
    expected_weight = adam([0, 0], gradients, (0.4, 0.4 * 2 / 3, 0.4 / 3), betas=(0.9, 0.999))
    np.testing.assert_allclose(weight.detach().numpy(), expected_weight, rtol=1e-5)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def make_editor(checkpoint, text) -> Editor:
    return Editor(text, PROTOCOL, EDITING, checkpoint, SHAPE, device=torch.device("cpu"))


def test_a_checkpoint_is_edited_in_all_orders_and_kinds_and_restored(checkpoints, text):
    checkpoint = checkpoints("gpt_neox")
    editor = make_editor(checkpoint, text)
    model = editor._sample.forward.head.model
    weights = {key: value.clone() for key, value in model.state_dict().items()}
    edits = list(editor.measure_edits())
    edits_by_order = [[e for e in edits if e.order == order] for order in EDITING.orders]
    assert [len(edits_of_order) for edits_of_order in edits_by_order] == [4 * 3, 4 * 3, 4 * 3]
    assert [e.k for e in edits_by_order[0]] == [0, 1, 2] * 4
    linearity = [block.linearity for block in editor.fitted_blocks]
    first, second = (list(map(int, edits_by_order[n][2].blocks.split())) for n in (0, 1))
    assert first[0] == 1 + int(np.argmax(linearity))
    assert second[0] == 1 + int(np.argmin(linearity))
    assert [e.blocks for e in edits_by_order[2][:3]] == ["1", "2", "3"]
    assert len({e.loss for e in edits if e.k == 0}) == 1
    assert len({e.loss for e in edits_by_order[0] if e.k == 2}) == 4
    assert all(e.perplexity == math.exp(e.loss) and e.predicted_tokens > 50 for e in edits)
    whole_parameters, parameters_without_blocks = (
        edits_by_order[0][0].parameters,
        edits_by_order[0][2].parameters,
    )
    assert (
        whole_parameters
        == sum(weight.numel() for weight in model.parameters())
        > parameters_without_blocks
    )
    assert edits_by_order[0][5].parameters == parameters_without_blocks + 2 * (
        WIDTH * WIDTH + WIDTH
    )
    assert all(torch.equal(model.state_dict()[key], value) for key, value in weights.items())
    assert list(make_editor(checkpoint, text).measure_edits()) == edits, "to the bit, without times"


def test_the_loss_at_the_end_of_the_text_is_that_of_the_library(checkpoints, text):
    editor = make_editor(checkpoints("gpt_neox"), text)
    unchanged_edit = next(editor.measure_edits())
    model = transformers.AutoModelForCausalLM.from_pretrained(checkpoints("gpt_neox"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoints("gpt_neox"))
    end = len(TEXT)
    total = count = 0
    for start in range(end - 7 * 64, end, 64):
        ids = tokenizer(TEXT[start : start + 64], return_tensors="pt").input_ids
        with torch.no_grad():
            total += model(input_ids=ids, labels=ids).loss.item() * (ids.shape[1] - 1)
        count += ids.shape[1] - 1
    assert unchanged_edit.predicted_tokens == count
    assert unchanged_edit.loss == pytest.approx(total / count, rel=1e-5)


def test_a_checkpoint_without_a_head_is_refused(checkpoints, text, tmp_path):
    bare = transformers.AutoModel.from_pretrained(checkpoints("gpt_neox"))
    bare.save_pretrained(tmp_path)
    transformers.AutoTokenizer.from_pretrained(checkpoints("gpt_neox")).save_pretrained(tmp_path)
    with pytest.raises(InputError, match="has no language-model head"):
        make_editor(tmp_path, text)
