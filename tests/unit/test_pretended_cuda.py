"""The stand-in for a GPU finds what a GPU would find."""

from concurrent.futures import ThreadPoolExecutor

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
@pytest.mark.parametrize("index", [[2, 0], [[2, 0], [1, 1]], torch.tensor([2, 0]), slice(1, 3), -1])
def test_indices_may_come_from_the_host(index):
    X = torch.arange(12.0).reshape(3, 4)
    index = tuple(index) if isinstance(index, list) and isinstance(index[0], list) else index
    found = X.to("cuda")[index]
    assert found.device == torch.device("cuda", 0)
    np.testing.assert_array_equal(found.cpu().numpy(), X[index].numpy())


@pytest.mark.usefixtures("gpu")
def test_a_copy_is_another_memory():
    X = torch.zeros(3)
    there = X.to("cuda")
    there += 1
    back = there.cpu()
    there += 1
    assert X.tolist() == [0, 0, 0]
    assert back.tolist() == [1, 1, 1]
    assert there.tolist() == [2, 2, 2]


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
    assert gpu.allocated == gpu.peak == 400_000
    assert torch.cuda.mem_get_info() == ((1 << 20) - 400_000, 1 << 20)
    with pytest.raises(torch.OutOfMemoryError, match=r"^CUDA out of memory"):
        X.double()
    del X
    assert gpu.allocated == 400_000
    del view
    assert gpu.allocated == 0


@pytest.mark.usefixtures("gpu")
def test_a_number_names_a_device():
    for X in (torch.ones(2).to(0), torch.tensor([1.0, 1.0], device=0), torch.ones(2).cuda()):
        assert X.device == torch.device(0) == torch.device("cuda", 0)
    assert isinstance(X.device, torch.device)


@pytest.mark.usefixtures("gpu")
def test_other_threads_see_the_device():
    with ThreadPoolExecutor(1) as pool:
        X = pool.submit(on_gpu, 3).result()
    assert (X + 1).cpu().tolist() == [2, 2, 2]


def test_what_is_copied_is_counted(gpu):
    (2 * on_gpu(100)).sum().cpu()
    assert (gpu.to_device, gpu.to_host) == (400, 4)


def test_nothing_of_it_remains():
    with pretended_cuda():
        pass
    assert not torch.cuda.is_available()
    with pytest.raises((RuntimeError, AssertionError)):
        torch.ones(3).to("cuda:0")


def test_nothing_of_it_remains_after_an_error():
    with pytest.raises(KeyError), pretended_cuda():
        raise KeyError
    test_nothing_of_it_remains()
