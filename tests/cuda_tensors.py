"""Tensors of a CUDA device that is none: they hold their numbers on the CPU and refuse to be mixed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch._dynamo  # else PyTorch imports it with its first operation, in the middle of this
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

ops = torch.ops.aten
# CUDA takes these from the host: indices and, where a number is meant, a tensor without dimensions.
TAKE_INDICES = (ops.index, ops.index_put, ops.index_put_, ops._index_put_impl_, ops._unsafe_index)
TAKE_NUMBERS = (ops.masked_fill, ops.masked_fill_, ops.fill, ops.fill_, ops.where, ops.index_fill_)
COPY = (ops.to, ops._to_copy, ops.copy_, ops.copy, ops._foreach_copy_)
# Attention asks the device for its kernel before any operation that could be seen here, unless it keeps what
# its gradient needs.
WHOLE = (torch.nn.functional.scaled_dot_product_attention,)


class PretendedGpu:
    """Memory and traffic of one pretended device.

    Attributes
    ----------
    total : int
        Bytes of memory that it says it has.
    limit : int
        Bytes of memory that tensors may take together; beyond, torch.OutOfMemoryError is raised.
    allocated : int
        Bytes that tensors take now.
    to_host, to_device : int
        Bytes that have been copied.
    """

    def __init__(self, memory: int):
        self.total = self.limit = memory
        self.allocated = self.to_host = self.to_device = 0


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

    def __del__(self) -> None:
        self.gpu.allocated -= self.size


# The devices, by their number.
gpus: list[PretendedGpu] = []


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


class CudaTensor(torch.Tensor):
    """A tensor that says it is on a GPU; made by ``.to("cuda")`` and what is computed from such.

    To PyTorch's own code it is on a "lazy" device, which needs no backend, streams or threads to take
    gradients.
    """

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
                device=torch.device("lazy", device.index),
            )
        tensor.held, tensor.allocation, tensor.gpu = held, allocation, device
        return tensor

    @property
    def device(self) -> torch.device:
        return self.gpu

    @property
    def is_cuda(self) -> bool:
        return True

    def get_device(self) -> int:
        return self.gpu.index

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
        if function in WHOLE and not any(getattr(x, "requires_grad", False) for x in args):
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


def _run(function: Any, args: tuple, kwargs: dict) -> Any:
    """Run an operator of PyTorch, which tells by its schema whether it is given a device."""
    given = dict(zip((a.name for a in function._schema.arguments), args, strict=False)) | kwargs
    if function.overloadpacket in COPY:
        return _copy(function, given)
    return _compute(function, args, kwargs, given.get("device"))


def _compute(function: Any, args: tuple, kwargs: dict, asked: Any = None) -> Any:
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    device = _device_of(function, args, tensors)
    where = device if asked is None else _said(asked)
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
    target = source.device if asked is None else _said(asked)
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
        gpus[source.device.index].to_host += size
    if target.type == "cuda":
        gpus[target.index].to_device += size


def _said(asked: Any) -> torch.device:
    """The device that is meant."""
    device = torch.device(asked)
    return torch.device("cuda", device.index or 0) if device.type in ("cuda", "lazy") else device


def _held(values: Any, device: torch.device | None = None) -> Any:
    """Replace tensors of the device by what they hold, and the device by the CPU."""

    def held(x: Any) -> Any:
        if isinstance(x, torch.device):
            return torch.device("cpu") if x.type in ("cuda", "lazy") else x
        return x.held if isinstance(x, CudaTensor) else x

    values = tree_map(held, values)
    if isinstance(values, dict) and values.get("pin_memory"):
        values["pin_memory"] = False
    return values


def _wrapped(found: Any, tensors: list[torch.Tensor], device: torch.device) -> Any:
    """Put results on the device: the tensors that they are, views of them, or new memory."""
    if device.type != "cuda":
        return found
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
            memory[storage._cdata] = Allocation(gpus[device.index], storage.nbytes())
        return CudaTensor(x, device, memory[storage._cdata])

    return tree_map(wrapped, found)
