"""The stand-in for a GPU finds what a GPU would find."""

import numpy as np
import pytest
import torch

from pretended_cuda import pretended_cuda


@pytest.fixture
def gpu():
    with pretended_cuda(memory=1 << 20) as device:
        yield device


def on_gpu(*shape):
    return torch.ones(*shape).to("cuda")


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    "mixed",
    [
        lambda: on_gpu(3) + torch.ones(3),
        lambda: torch.ones(2, 3) @ on_gpu(3, 2),
        lambda: torch.cat([on_gpu(3), torch.ones(3)]),
        lambda: torch.ones(3).add_(on_gpu(3)),
        lambda: torch.ones(3)[on_gpu(3) > 0],
        lambda: torch.where(on_gpu(3) > 0, torch.ones(3), 0.0),
        lambda: torch.nn.functional.linear(on_gpu(2, 3), torch.ones(4, 3)),
        lambda: torch.nn.functional.scaled_dot_product_attention(
            on_gpu(1, 2, 3, 4), torch.ones(1, 2, 3, 4), torch.ones(1, 2, 3, 4)
        ),
    ],
)
@pytest.mark.parametrize("inference", [False, True])
def test_tensors_of_two_devices_are_not_mixed(mixed, inference):
    with torch.inference_mode(inference), pytest.raises(RuntimeError, match="two devices, cuda:0 "):
        mixed()


def test_two_gpus_are_two_devices():
    with pretended_cuda(count=2):
        with pytest.raises(RuntimeError, match="cuda:1 and cuda:0"):
            torch.ones(3, device="cuda:0") + torch.ones(3, device="cuda:1")
        assert torch.cuda.device_count() == 2


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("read", [lambda X: X.numpy(), np.asarray])
def test_the_host_cannot_read_the_memory_of_the_device(read):
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        read(on_gpu(3))


@pytest.mark.usefixtures("gpu")
def test_a_copy_that_is_not_waited_for_has_not_arrived():
    stream, arrived = torch.cuda.Stream(), torch.cuda.Event(blocking=True)
    host = torch.empty(3, pin_memory=True)
    with torch.cuda.stream(stream):
        host.copy_(on_gpu(3), non_blocking=True)
    arrived.record(stream)
    assert host.isnan().all()
    arrived.synchronize()
    assert host.tolist() == [1, 1, 1]


def test_memory_is_limited_and_given_back(gpu):
    X = torch.zeros(100_000, device="cuda")
    view = X[:10]
    assert gpu.allocated == 400_000
    assert torch.cuda.mem_get_info() == ((1 << 20) - 400_000, 1 << 20)
    with pytest.raises(torch.OutOfMemoryError, match=r"^CUDA out of memory"):
        X.double()
    del X
    assert gpu.allocated == 400_000
    del view
    assert gpu.allocated == 0


def test_what_is_copied_is_counted(gpu):
    (2 * on_gpu(100)).sum().cpu()
    assert (gpu.to_device, gpu.to_host) == (400, 4)


def test_nothing_of_it_remains():
    with pretended_cuda():
        pass
    assert not torch.cuda.is_available()
    with pytest.raises((RuntimeError, AssertionError)):
        torch.ones(3).to("cuda:0")
