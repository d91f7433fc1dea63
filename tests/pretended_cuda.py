"""PyTorch with a CUDA device that is none: tensors say ``cuda:0`` and hold their numbers on the CPU.

::

    with pretended_cuda() as gpu:
        anisotropy(torch.randn(500, 64).to("cuda"))

It shows that code written for a GPU works where there is none: that it puts every tensor where it is needed,
waits for what it reads and keeps within the memory. It says nothing of speed, and its kernels are the CPU's.
"""

import contextlib
import ctypes
import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode

from cuda_tensors import Dispatch, Event, PretendedGpu, Stream, gpus


@contextlib.contextmanager
def pretended_cuda(memory: int = 80 << 30, count: int = 1) -> Iterator[PretendedGpu]:
    """Let PyTorch find `count` devices with so many bytes of memory each; yields the first of them."""
    gpus[:] = [PretendedGpu(memory) for _ in range(count)]
    Stream.current = Stream()
    run = threading.Thread.run

    def run_like_this(thread: threading.Thread) -> None:
        with _operations_seen():
            run(thread)

    # A parameter that is moved becomes another object, instead of holding what it cannot.
    compatible = torch._has_compatible_shallow_copy_type
    replacements = [
        *((torch.cuda, name, value) for name, value in _replacements().items()),
        (
            torch,
            "_has_compatible_shallow_copy_type",
            lambda x, y: type(x) is type(y) and compatible(x, y),
        ),
        (torch, "device", Device),
        (threading.Thread, "run", run_like_this),
    ]
    if "transformers" in sys.modules:
        # It asks for memory before it needs any; of a GPU below 1.2 GB, for less than none.
        library = importlib.import_module("transformers.modeling_utils")
        replacements.append((library, "caching_allocator_warmup", lambda *args, **options: None))
    with contextlib.ExitStack() as stack:
        for owner, name, value in replacements:
            stack.enter_context(mock.patch.object(owner, name, value))
        stack.enter_context(_no_device_to_switch_to())
        stack.enter_context(_operations_seen())
        yield gpus[0]


class NumberedDevices(TorchFunctionMode):
    """Let a number name a device, which PyTorch otherwise asks its build about."""

    def __torch_function__(
        self, function: Callable, types: Any, args: Any = (), kwargs: Any = None
    ):
        kwargs = kwargs or {}
        if type(kwargs.get("device")) is int:
            kwargs["device"] = torch.device("cuda", kwargs["device"])
        if function in (torch.Tensor.to, torch.Tensor.cuda) and type(args[-1]) is int:
            args = (*args[:-1], torch.device("cuda", args[-1]))
        return function(*args, **kwargs)


device_type = torch.device


class DeviceType(type):
    """What ``torch.device`` is, but that a number is enough."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, device_type)

    def __call__(cls, *args: Any, **options: Any) -> torch.device:
        return device_type(*(("cuda", *args) if type(args[0]) is int else args), **options)


class Device(metaclass=DeviceType):
    """In the place of ``torch.device``."""


@contextlib.contextmanager
def _operations_seen() -> Iterator[None]:
    """Pretend in this thread."""
    lift = torch._C._only_lift_cpu_tensors()
    torch._C._set_only_lift_cpu_tensors(True)  # numbers become tensors of the CPU first
    try:
        with NumberedDevices(), Dispatch():
            yield
    finally:
        torch._C._set_only_lift_cpu_tensors(lift)


@contextlib.contextmanager
def _no_device_to_switch_to() -> Iterator[None]:
    """Let operations of a build without CUDA switch to its devices, which does nothing.

    PyTorch has such a guard, for builds with CUDA on machines without, and puts it in place of one that
    knows no device; in a build without there is none in that place.
    """
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libc10.so"))
    guards = (ctypes.c_void_p * 22).in_dll(library, "_ZN3c104impl26device_guard_impl_registryE")
    cuda, lazy = 1, 17  # c10::DeviceType; "lazy" has no device unless a backend is loaded
    before = guards[cuda]
    guards[cuda] = guards[lazy]
    torch._C._ensureCUDADeviceGuardSet()
    try:
        yield
    finally:
        guards[cuda] = before


def _replacements() -> dict[str, Any]:
    def gpu(device: Any = None) -> PretendedGpu:
        if not isinstance(device, int):
            device = None if device is None else torch.device(device).index
        return gpus[device or 0]

    @contextlib.contextmanager
    def stream(queue: Stream) -> Iterator[None]:
        outer, Stream.current = Stream.current, queue
        try:
            yield
        finally:
            Stream.current = outer

    return {
        "is_available": lambda: True,
        "_lazy_init": lambda: None,
        "is_initialized": lambda: True,
        "device_count": lambda: len(gpus),
        "current_device": lambda: 0,
        "set_device": lambda device: None,
        "device": lambda device: contextlib.nullcontext(),
        "get_device_name": lambda device=None: "pretended CUDA device",
        "get_device_properties": lambda device=None: SimpleNamespace(
            name="pretended CUDA device", total_memory=gpu(device).total, is_integrated=False
        ),
        "mem_get_info": lambda device=None: (
            gpu(device).total - gpu(device).allocated,
            gpu(device).total,
        ),
        "memory_allocated": lambda device=None: gpu(device).allocated,
        "memory_reserved": lambda device=None: gpu(device).allocated,
        "empty_cache": lambda: None,
        "synchronize": lambda device=None: Stream.current.synchronize(),
        "Stream": Stream,
        "Event": Event,
        "current_stream": lambda device=None: Stream.current,
        "stream": stream,
    }
