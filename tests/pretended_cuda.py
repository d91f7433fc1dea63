"""A CUDA device that is none: tensors that say ``cuda:0``, hold numbers on the CPU and refuse to be mixed.

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

import numpy as np
import torch
import torch._dynamo  # else PyTorch imports it with its first operation, in the middle of this
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

ops = torch.ops.aten
# CUDA takes these from the host: indices and, where a number is meant, a tensor without dimensions.
TAKE_INDICES = (ops.index, ops.index_put, ops.index_put_, ops._index_put_impl_, ops._unsafe_index)
TAKE_NUMBERS = (ops.masked_fill, ops.masked_fill_, ops.fill, ops.fill_, ops.where, ops.index_fill_)
COPY = (ops.to, ops._to_copy, ops.copy_, ops.copy, ops._foreach_copy_)
# Attention asks the device for its kernel before any operation that could be seen here.
WHOLE = (torch.nn.functional.scaled_dot_product_attention,)


class PretendedGpu:
    """Memory and traffic of one pretended device.

    Attributes
    ----------
    total : int
        Bytes of memory that it says it has.
    limit : int
        Bytes of memory that tensors may take together; beyond, torch.OutOfMemoryError is raised.
    allocated, peak : int
        Bytes that tensors take now, and the most that they have taken.
    to_host, to_device : int
        Bytes that have been copied.
    """

    def __init__(self, memory: int):
        self.total = self.limit = memory
        self.allocated = self.peak = self.to_host = self.to_device = 0


class Allocation:
    """Memory of a tensor and its views, given back with the last of them."""

    def __init__(self, gpu: PretendedGpu, size: int):
        self.gpu, self.size = gpu, 0
        if gpu.allocated + size > gpu.limit:
            raise torch.OutOfMemoryError(
                f"CUDA out of memory. Tried to allocate {size} bytes beside "
                f"{gpu.allocated} of {gpu.limit}."
            )
        self.size = size
        gpu.allocated += size
        gpu.peak = max(gpu.peak, gpu.allocated)

    def __del__(self) -> None:
        self.gpu.allocated -= self.size


class CudaTensor(torch.Tensor):
    """A tensor that says it is on a GPU; made by ``.to("cuda")`` and what is computed from such."""

    @staticmethod
    def __new__(
        cls,
        held: torch.Tensor,
        device: torch.device | None = None,
        allocation: Allocation | None = None,
        requires_grad: bool = False,
    ) -> torch.Tensor:
        """Wrap a tensor of the CPU, without a copy."""
        if device is None:  # accelerate makes a parameter by the type of the one in its place
            return torch.nn.Parameter(held, requires_grad)
        # In inference mode, too, a view of a weight is none of its tensors.
        with torch.inference_mode(held.is_inference()):
            tensor = torch.Tensor._make_wrapper_subclass(
                cls,
                held.size(),
                strides=held.stride(),
                storage_offset=held.storage_offset(),
                dtype=held.dtype,
                device=device,
            )
        tensor.held, tensor.allocation = held, allocation
        return tensor

    def __repr__(self) -> str:
        return f"{self.held!r} as if on {self.device}"

    def numpy(self, **options: Any) -> np.ndarray:
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor "
            "to host memory first."
        )

    def __array__(self, *args: Any, **options: Any) -> np.ndarray:
        return self.numpy()

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def record_stream(self, stream: "Stream") -> None:
        pass

    @classmethod
    def __torch_function__(cls, function: Callable, types: Any, args: Any = (), kwargs: Any = None):
        if function in WHOLE:
            return _compute(function, args, kwargs or {})
        with torch._C.DisableTorchFunctionSubclass():  # else tensors of the CPU would say the same
            return function(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, function: Callable, types: Any, args: Any = (), kwargs: Any = None):
        return _run(function, args, kwargs or {})


class Dispatch(TorchDispatchMode):
    """See operations that have no tensor of the device yet, and make one."""

    def __torch_dispatch__(
        self, function: Callable, types: Any, args: Any = (), kwargs: Any = None
    ):
        return _run(function, args, kwargs or {})


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


class Stream:
    """A queue of copies to the host: they have arrived only once they are waited for."""

    current: "Stream"

    def __init__(self, device: Any = None, **options: Any):
        self.copies: list[Callable[[], None]] = []

    def wait_stream(self, other: "Stream") -> None:
        """Wait on the device, which computes everything at once."""

    def synchronize(self) -> None:
        """Let all copies arrive."""
        with torch.inference_mode():  # in which the copy may have been asked for
            while self.copies:
                self.copies.pop(0)()


class Event:
    """A point in a stream."""

    def __init__(self, **options: Any):
        self.stream: Stream | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Remember what is in the queue."""
        self.stream = stream or Stream.current

    def synchronize(self) -> None:
        """Wait for it."""
        if self.stream is not None:
            self.stream.synchronize()


_gpus: list[PretendedGpu] = []


@contextlib.contextmanager
def pretended_cuda(memory: int = 80 << 30, count: int = 1) -> Iterator[PretendedGpu]:
    """Let PyTorch find `count` devices with so many bytes of memory each; yields the first of them."""
    _gpus[:] = [PretendedGpu(memory) for _ in range(count)]
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
        yield _gpus[0]


@contextlib.contextmanager
def _operations_seen() -> Iterator[None]:
    """Pretend in this thread."""
    lift = torch._C._only_lift_cpu_tensors()
    torch._C._set_only_lift_cpu_tensors(True)  # numbers become tensors of the CPU first
    with NumberedDevices(), Dispatch():
        yield
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
    yield
    guards[cuda] = before


def _replacements() -> dict[str, Any]:
    def gpu(device: Any = None) -> PretendedGpu:
        if not isinstance(device, int):
            device = None if device is None else torch.device(device).index
        return _gpus[device or 0]

    @contextlib.contextmanager
    def stream(queue: Stream) -> Iterator[None]:
        outer, Stream.current = Stream.current, queue
        yield
        Stream.current = outer

    def limit(fraction: float, device: Any = None) -> None:
        gpu(device).limit = int(fraction * gpu(device).total)

    def reset_peak(device: Any = None) -> None:
        gpu(device).peak = gpu(device).allocated

    return {
        "is_available": lambda: True,
        "_lazy_init": lambda: None,
        "is_initialized": lambda: True,
        "device_count": lambda: len(_gpus),
        "current_device": lambda: 0,
        "set_device": lambda device: None,
        "device": lambda device: contextlib.nullcontext(),
        "get_device_name": lambda device=None: "pretended CUDA device",
        "get_device_properties": lambda device=None: SimpleNamespace(
            name="pretended CUDA device", total_memory=gpu(device).total, is_integrated=False
        ),
        "get_device_capability": lambda device=None: (9, 0),
        "is_bf16_supported": lambda *args, **options: True,
        "mem_get_info": lambda device=None: (
            gpu(device).total - gpu(device).allocated,
            gpu(device).total,
        ),
        "memory_allocated": lambda device=None: gpu(device).allocated,
        "memory_reserved": lambda device=None: gpu(device).allocated,
        "max_memory_allocated": lambda device=None: gpu(device).peak,
        "reset_peak_memory_stats": reset_peak,
        "set_per_process_memory_fraction": limit,
        "empty_cache": lambda: None,
        "synchronize": lambda device=None: Stream.current.synchronize(),
        "Stream": Stream,
        "Event": Event,
        "current_stream": lambda device=None: Stream.current,
        "stream": stream,
    }


def _run(function: Any, args: tuple, kwargs: dict) -> Any:
    """Run an operator of PyTorch, which tells by its schema whether it is given a device."""
    given = dict(zip((a.name for a in function._schema.arguments), args, strict=False)) | kwargs
    if function.overloadpacket in COPY:
        return _copy(function, given)
    return _compute(function, args, kwargs, given.get("device"))


def _compute(function: Any, args: tuple, kwargs: dict, asked: Any = None) -> Any:
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    device = _device_of(function, args, tensors)
    where = device if asked is None else torch.device(asked)
    if device is None and where is None:
        return function(*args, **kwargs)
    found = function(*_held(args, where), **_held(kwargs, where))
    return _wrapped(found, tensors, where)


def _device_of(function: Any, args: tuple, tensors: list[torch.Tensor]) -> torch.device | None:
    """Return the pretended device of the tensors, None if there is none; raises if they are mixed."""
    devices = {x.device for x in tensors if isinstance(x, CudaTensor)}
    if not devices:
        return None
    packet = getattr(function, "overloadpacket", None)
    indices = tree_leaves(args[1]) if packet in TAKE_INDICES and args[0].is_cuda else []
    numbers = packet in (*TAKE_NUMBERS, *TAKE_INDICES) or (
        torch.Tag.pointwise in getattr(function, "tags", ())
    )
    for x in tensors:
        allowed = any(x is index for index in indices) or (numbers and x.dim() == 0)
        if not isinstance(x, CudaTensor) and not allowed:
            devices.add(x.device)
    if len(devices) > 1:
        names = " and ".join(sorted(map(str, devices), reverse=True))
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{names}! (in {function})"
        )
    return devices.pop()


def _copy(function: Any, given: dict[str, Any]) -> Any:
    """Copy to another device or type, as ``to`` and ``copy_`` do."""
    if function.overloadpacket in (ops.copy_, ops.copy):
        return _copy_into(function, given)
    source = given["self"]
    asked = given.get("device")
    if "other" in given:
        asked = given["other"].device
    target = source.device if asked is None else torch.device(asked)
    if target.type == "cuda" and target.index is None:
        target = torch.device("cuda", 0)
    held = _held(given, target)
    found = function(**held)
    if target == source.device:
        return _wrapped(found, [source], target)
    if target.type == "cpu" and not isinstance(source, CudaTensor):
        return found
    _count(source, target)
    if found.untyped_storage()._cdata == held["self"].untyped_storage()._cdata:
        found = found.clone()  # two memories
    return _wrapped(found, [], target)


def _copy_into(function: Any, given: dict[str, Any]) -> Any:
    target, source = given["self"], given["src"]
    if target.device == source.device or not (target.is_cuda or source.is_cuda):
        held = function(**_held(given, target.device))
        return held if not isinstance(target, CudaTensor) else target
    _count(source, target.device)
    values = _held(source).clone()
    if target.is_cuda or not given.get("non_blocking"):
        function(_held(target), values)
        return target
    # Until the stream is waited for, the host has what nobody should read.
    target.fill_(torch.nan if target.is_floating_point() else torch.iinfo(target.dtype).min)
    Stream.current.copies.append(lambda: function(target, values))
    return target


def _count(source: torch.Tensor, target: torch.device) -> None:
    size = source.numel() * source.element_size()
    if isinstance(source, CudaTensor):
        _gpus[source.device.index].to_host += size
    if target.type == "cuda":
        _gpus[target.index].to_device += size


def _held(values: Any, device: torch.device | None = None) -> Any:
    """Replace tensors of the device by what they hold, and the device by the CPU."""

    def held(x: Any) -> Any:
        if isinstance(x, torch.device):
            return torch.device("cpu") if x.type == "cuda" else x
        return x.held if isinstance(x, CudaTensor) else x

    values = tree_map(held, values)
    if isinstance(values, dict) and values.get("pin_memory"):
        values["pin_memory"] = False
    return values


def _wrapped(found: Any, tensors: list[torch.Tensor], device: torch.device) -> Any:
    """Put results on the device: the tensors that they are, views of them, or new memory."""
    if device.type != "cuda":
        return found
    device = torch.device("cuda", device.index or 0)
    same = {id(x.held): x for x in tensors if isinstance(x, CudaTensor)}
    memory = {
        x.held.untyped_storage()._cdata: x.allocation for x in tensors if isinstance(x, CudaTensor)
    }

    def wrapped(x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return x
        if id(x) in same:
            return same[id(x)]
        storage = x.untyped_storage()
        if storage._cdata not in memory:
            memory[storage._cdata] = Allocation(_gpus[device.index], storage.nbytes())
        return CudaTensor(x, device, memory[storage._cdata])

    return tree_map(wrapped, found)
