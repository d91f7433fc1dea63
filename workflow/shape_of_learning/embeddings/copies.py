"""Copies of tensors to where they are stored; from a GPU to host memory they go on while it computes."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


class Copy:
    """A tensor on its way.

    Parameters
    ----------
    tensor : tensor
        Where it goes to.
    arrived : torch.cuda.Event, optional
        Until this has happened the content is undefined; None if it is there.
    """

    def __init__(self, tensor: "torch.Tensor", arrived: "torch.cuda.Event | None" = None):
        self._tensor = tensor
        self._arrived = arrived

    @property
    def width(self) -> int:
        """Size of the last dimension."""
        return self._tensor.shape[-1]

    def values(self) -> "np.ndarray | torch.Tensor":
        """Wait for it and return it, without another copy: an array, or a tensor that is on a GPU."""
        if self._arrived is not None:
            self._arrived.synchronize()
        return self._tensor.numpy() if self._tensor.device.type == "cpu" else self._tensor


class Copies:
    """Start copies that need not be waited for.

    Notes
    -----
    A copy from a GPU runs beside its computations only if it is queued in another stream than
    theirs, and if the host memory is pinned: other memory is copied through a buffer of the driver,
    for which the calling thread waits. Each GPU has one side stream here. Pinned memory is slow to
    get; PyTorch keeps what is given back and hands it out again once the copies into it are done.
    """

    def __init__(self) -> None:
        self._streams: dict[torch.device, torch.cuda.Stream] = {}

    def start(
        self, tensor: "torch.Tensor", dtype: "torch.dtype", destination: "torch.device"
    ) -> Copy:
        """Queue a copy as `dtype` to `destination`; the caller may drop the tensor at once.

        What has been queued before on the tensor's device is computed first. A tensor that is there already
        is converted, if it has another type, and else taken as it is.
        """
        import torch

        if tensor.device.type == "cpu" or destination.type != "cpu":
            return Copy(tensor.to(destination, dtype))
        stream = self._streams.get(tensor.device)
        if stream is None:
            stream = self._streams[tensor.device] = torch.cuda.Stream(tensor.device)
        host = torch.empty(tensor.shape, dtype=dtype, pin_memory=True)
        stream.wait_stream(torch.cuda.current_stream(tensor.device))
        with torch.cuda.stream(stream):
            # Converted there: the GPU is faster at it, and holds but one layer in two types.
            host.copy_(tensor.to(dtype), non_blocking=True)
        # Else its memory, which belongs to the other stream, would be given to the next tensor.
        tensor.record_stream(stream)
        # Waiting threads sleep: there may be one core for computing and writing.
        arrived = torch.cuda.Event(blocking=True)
        arrived.record(stream)
        return Copy(host, arrived)
