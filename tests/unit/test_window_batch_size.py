import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from dumps import WINDOWS, dump, hidden_states
from shape_of_learning.embeddings.forward_pass import ForwardPass
from shape_of_learning.embeddings.memory import memory_is_exhausted
from shape_of_learning.embeddings.window_batch_size import (
    SHARE_OF_FREE_MEMORY,
    TOKENS_ON_A_GPU,
    WINDOWS_ON_A_CPU,
    automatic_window_batch_size,
    bytes_per_token,
    windows_that_fit,
)
from tiny_models import CONFIGURATIONS, WIDTHS, save_tiny_model

LLAMA_2_7B = transformers.LlamaConfig(
    hidden_size=4096, num_hidden_layers=32, num_attention_heads=32, intermediate_size=11008
)


TESTS = Path(__file__).parents[1]
# What it has beside its weights is limited.
LIMITED = """
import logging, resource, sys
from pathlib import Path
sys.path[:0] = {paths!r}
from dumps import dump
from shape_of_learning.errors import InputError
logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.INFO)
checkpoint, widths = Path({checkpoint!r}), [32] * 4
folder = checkpoint.parent
dump(checkpoint, folder / "small", widths, ["tokens"])  # loads the libraries
taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + {spare}, taken + {spare}))
try:
    dump(checkpoint, folder / "dump", widths, [{text!r}] * 8, window_batch_size=8)
except InputError as error:
    print("REFUSED:", error)
"""


def dump_with_little_memory(tmp_path, text, spare):
    """Dump eight windows through BLOOM, whose two heads take 4 T^2 bytes each for their scores."""
    checkpoint = save_tiny_model(tmp_path / "model", "bloom", head=True)
    program = LIMITED.format(
        paths=[str(TESTS), *sys.path], checkpoint=str(checkpoint), text=text, spare=spare
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return checkpoint, done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space as Linux does")
def test_exhausted_memory_halves_the_batch_until_it_fits(tmp_path):
    # The scores of eight windows take 92 MB, several times at once; those of one 12.
    text = "; " * 600
    checkpoint, said = dump_with_little_memory(tmp_path, text, 200 * 2**20)
    assert "memory is exhausted by 8 windows at a time" in said
    assert "REFUSED" not in said
    dump(checkpoint, tmp_path / "one", WIDTHS["bloom"], [text] * 8, window_batch_size=1)
    for layer in range(4):
        halved_, one = (hidden_states(tmp_path / f, layer) for f in ("dump", "one"))
        np.testing.assert_allclose(halved_, one, rtol=0, atol=1e-5 * np.abs(one).max())


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space as Linux does")
def test_memory_too_small_for_one_window_is_one_sentence(tmp_path):
    # The scores of a single window take 128 MB.
    _, said = dump_with_little_memory(tmp_path, "; " * 2000, 32 * 2**20)
    for size in (8, 4, 2, 1):
        assert f"memory is exhausted by {size} windows at a time" in said
    (refused,) = (line for line in said.splitlines() if line.startswith("REFUSED"))
    assert "memory of the CPU is exhausted by one window of 4000 tokens" in refused
    assert "lower `sampling.window_characters`" in refused
    assert not (tmp_path / "dump").exists()


def test_other_errors_are_not_taken_for_exhausted_memory():
    with pytest.raises(RuntimeError) as caught:
        torch.ones(2) @ torch.ones(3)
    assert not memory_is_exhausted(caught.value)
    assert not memory_is_exhausted(ValueError("out of memory"))
    assert memory_is_exhausted(
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
    )
    with pytest.raises((MemoryError, RuntimeError)) as caught:
        torch.empty(2**60)
    assert memory_is_exhausted(caught.value)


def test_on_a_cpu_sixteen_windows_go_together(tmp_path):
    checkpoint = save_tiny_model(tmp_path / "model", "gpt_neox")
    forward = ForwardPass.load(
        checkpoint,
        role="decoder",
        precision="float32",
        last_layer="after_final_norm",
        device=torch.device("cpu"),
    )
    assert automatic_window_batch_size(forward, 100) == WINDOWS_ON_A_CPU
    dump(checkpoint, tmp_path / "auto", WIDTHS["gpt_neox"], WINDOWS * 4)
    dump(checkpoint, tmp_path / "fixed", WIDTHS["gpt_neox"], WINDOWS * 4, window_batch_size=16)
    for layer in range(4):
        np.testing.assert_array_equal(
            hidden_states(tmp_path / "auto", layer),
            hidden_states(tmp_path / "fixed", layer),
        )


def test_the_estimate_covers_the_hidden_states_of_two_batches():
    states_of_one = 33 * 4096 * 4
    estimate = bytes_per_token(LLAMA_2_7B, 192, 4)
    assert 2 * states_of_one < estimate < 3 * states_of_one


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_every_architecture_has_an_estimate(name):
    configuration = CONFIGURATIONS[name]()
    assert bytes_per_token(configuration, 48, 2) > 2 * 2 * 4 * 32
    assert bytes_per_token(configuration, 96, 2) > bytes_per_token(configuration, 48, 2)


def test_windows_fill_the_free_memory_but_no_more_tokens_than_are_of_use():
    length, per_token = 192, bytes_per_token(LLAMA_2_7B, 192, 4)
    for gigabytes in (1, 2, 4):
        free = gigabytes * 10**9
        windows = windows_that_fit(free, per_token, length)
        taken = windows * length * per_token
        assert taken <= SHARE_OF_FREE_MEMORY * free < taken + length * per_token
    assert windows_that_fit(10**12, per_token, length) == TOKENS_ON_A_GPU // length
    assert windows_that_fit(0, per_token, length) == 1
