"""A model of transformers that a user has loaded: what is around it, and what of it is measured."""

import inspect
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import torch

from shape_of_learning.embeddings.forward_pass import ROUNDING, find_rounding_settings
from shape_of_learning.embeddings.hooks import hook_modules
from shape_of_learning.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

PATIENCE = 30  # seconds that a rank waits for the others, which come here at the same step
_MEETINGS: Counter[str] = Counter()  # of this process, by their occasion


@dataclass(frozen=True)
class LoadedModel:
    """A model, perhaps with an adapter or sharded over several processes.

    Attributes
    ----------
    whole : torch.nn.Module
        What the user calls, without what only spreads or compiles it.
    inner : transformers.PreTrainedModel
        The model of the library in it, which has its configuration.
    adapters : dict of str to str
        By name the kinds of the adapters that are active, as of the package `peft`.
    virtual_tokens : int
        That an adapter puts before a text.
    """

    whole: torch.nn.Module
    inner: "PreTrainedModel"
    adapters: dict[str, str] = field(default_factory=dict)
    virtual_tokens: int = 0

    @staticmethod
    def inspect_model(given: torch.nn.Module) -> "LoadedModel":
        """Look into a model; InputError if there is none of transformers in it, or one that is not whole."""
        from transformers import PreTrainedModel

        whole = inner = _unwrap_model(given)
        while not isinstance(inner, PreTrainedModel):
            if _is_of(inner, "torch.distributed.fsdp", "FullyShardedDataParallel"):
                inner = inner.module
            elif callable(getattr(inner, "get_base_model", None)):
                inner = inner.get_base_model()
            elif hasattr(inner, "peft_config"):  # of several kinds of adapters
                inner = inner.base_model.model
            else:
                raise InputError(
                    f"`model` is a {type(inner).__name__}, and none of transformers; give the model of "
                    "transformers that is in it, or hidden states"
                )
        if any(hasattr(weight, "ds_id") and not weight.numel() for weight in inner.parameters()):
            raise InputError(
                "`model` is partitioned by DeepSpeed ZeRO-3, and each process holds a part of each weight alone; "
                "measure saved checkpoints (`shape-of-learning measure FOLDER`), or train with ZeRO-2 or FSDP"
            )
        configs = _find_adapters(whole, inner)
        kinds = {name: getattr(each, "peft_type", "adapter") for name, each in configs.items()}
        return LoadedModel(
            *(whole, inner),
            {name: str(getattr(kind, "value", kind)) for name, kind in kinds.items()},
            sum(getattr(config, "num_virtual_tokens", None) or 0 for config in configs.values()),
        )

    @property
    def base(self) -> "PreTrainedModel":
        """The model without a head, whose hidden states are measured."""
        return self.inner.base_model

    @cached_property
    def is_sharded(self) -> bool:
        """Whether a forward pass gathers weights from other processes, which then have to take part in it."""
        wrapped = ("torch.distributed.fsdp", "FullyShardedDataParallel", "FSDPModule")
        if any(_is_of(module, *wrapped) for module in self.whole.modules()):
            return True
        weights = self.whole.parameters()
        return any(_is_of(weight, "torch.distributed.tensor", "DTensor") for weight in weights)

    @property
    def is_wrapped(self) -> bool:
        """Whether it is called through what gives it its adapter or its weights."""
        return self.whole is not self.inner or self.is_sharded

    def choose_callable(self) -> Any:
        """The base model, which is called as :attr:`is_wrapped` says."""
        if not self.is_wrapped:
            return self.base
        return _WrappedModel(self.base, self.whole, self.inner)

    def require_all_ranks(self, occasion: str) -> None:
        """Raise InputError if the model is sharded, and not all processes come here for the same occasion."""
        if self.is_sharded and not do_all_ranks_meet(occasion):
            raise InputError(
                f"`model` is sharded, but not all {torch.distributed.get_world_size()} processes came to measure it "
                f"within {PATIENCE} s of each other; call this at the same step on every rank"
            )


def _unwrap_model(model: Any) -> Any:
    """The model in DistributedDataParallel, DataParallel, an engine or a compiled module."""
    from transformers import PreTrainedModel

    while not isinstance(model, PreTrainedModel):
        inside = getattr(model, "_modules", {})
        if "_orig_mod" in inside:
            model = inside["_orig_mod"]
        elif "module" in inside and not hasattr(model, "peft_config"):
            if _is_of(model, "torch.distributed.fsdp", "FullyShardedDataParallel"):
                break
            model = inside["module"]
        else:
            break
    return model


def _is_of(thing: Any, module: str, *classes: str) -> bool:
    """Whether it is of a class of a module; of none that nobody has imported."""
    known = sys.modules.get(module)
    kinds = tuple(getattr(known, name) for name in classes if hasattr(known, name))
    return isinstance(thing, kinds)


def _find_adapters(whole: Any, inner: Any) -> dict[str, Any]:
    """Active adapters and their settings, of `peft` and of the library's own ``add_adapter``."""
    holder = whole if hasattr(whole, "peft_config") else inner
    known = getattr(holder, "peft_config", None) or {}
    if any(getattr(module, "disable_adapters", False) is True for module in inner.modules()):
        return {}
    active = getattr(holder, "active_adapters", ()) if known else ()
    return {
        name: known[name] for name in (active() if callable(active) else active) if name in known
    }


class _WrappedModel:
    """A base model that is called through what is around it, and returns what it returns itself."""

    def __init__(self, base: "PreTrainedModel", whole: torch.nn.Module, inner: torch.nn.Module):
        self._base, self._whole = base, whole
        # Of logits, which nobody asks for, as few as the head can make.
        takes = inspect.signature(inner.forward).parameters
        self._options = {"logits_to_keep": 1} if "logits_to_keep" in takes else {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._base, name)

    @property
    def device(self) -> torch.device:
        """Where it runs; what is sharded may wait on the CPU for its turn."""
        weight: Any = next(self._whole.parameters())
        kind = getattr(getattr(weight, "device_mesh", None), "device_type", weight.device.type)
        if kind == weight.device.type:
            return weight.device
        return torch.device(kind, torch.get_device_module(kind).current_device())

    @property
    def dtype(self) -> torch.dtype:
        """Of its weights, which FSDP may have taken out of it."""
        return next(each.dtype for each in self._whole.parameters() if each.is_floating_point())

    def __call__(self, *, input_ids: torch.Tensor, **inputs: Any) -> Any:
        returned: list[Any] = []
        with hook_modules([self._base], lambda *call: returned.append(call[-1])):
            self._whole(input_ids=input_ids, **inputs, **self._options)
        if not returned:
            raise ValueError(f"{type(self._whole).__name__} does not call its base model")
        # Virtual tokens of a prompt are before those of the text, which see them.
        output, length = returned[-1], input_ids.shape[1]
        for key in ("last_hidden_state", "hidden_states"):
            state = output.get(key)
            if isinstance(state, torch.Tensor):
                output[key] = state[:, -length:]
            elif state is not None:
                output[key] = tuple(each[:, -length:] for each in state)
        return output


def do_all_ranks_meet(occasion: str) -> bool:
    """Whether all processes of a distributed training come here for an occasion, on which all of them agree.

    A process that gathered weights alone would wait for ever, or take what others send for something else. So they
    meet in the store by which the processes found each other, and who has waited for too long decides for all.
    A second training has the same occasions again, each with a key of its own.
    """
    distributed = torch.distributed
    if not distributed.is_initialized() or distributed.get_world_size() == 1:
        return True
    from torch.distributed import distributed_c10d

    store = distributed_c10d._get_default_store()
    _MEETINGS[occasion] += 1
    key = f"shape_of_learning/{occasion}/{_MEETINGS[occasion]}"

    def decide(decision: str) -> None:
        if store.add(f"{key}/decided", 1) == 1:  # of several the first
            store.set(f"{key}/decision", decision)

    if store.add(f"{key}/came", 1) == distributed.get_world_size():
        decide("all")
    end = monotonic() + PATIENCE
    while not store.check([f"{key}/decision"]):
        if monotonic() > end:
            decide("some")
        sleep(0.02)
    return bool(store.get(f"{key}/decision") == b"all")


# Where a module keeps what is called with it.
HOOKS = tuple(
    f"_forward{kind}_hooks{of}"
    for kind, ofs in (("", ("", "_with_kwargs", "_always_called")), ("_pre", ("", "_with_kwargs")))
    for of in ofs
)


@contextmanager
def preserve_model(loaded: LoadedModel) -> Iterator[None]:
    """Evaluate a model that may be in training, and leave no trace of it."""
    whole, matmul = loaded.whole, torch.backends.cuda.matmul
    modules: list[Any] = list(whole.modules())
    configs = {id(module.config): module.config for module in modules if hasattr(module, "config")}
    settings = [(c, dict(vars(c))) for c in configs.values() if hasattr(c, "__dict__")]
    kept = [(vars(module), _collect_caches(vars(module))) for module in modules]
    training = [module for module in modules if module.training]
    wrapper = vars(whole).get("forward")  # of accelerate, which rounds to bfloat16
    threads = torch.get_num_threads()
    rounding = {path: find_rounding_settings(path).fp32_precision for path in ROUNDING}
    reductions = [f"allow_{kind}_reduced_precision_reduction" for kind in ("bf16", "fp16")]
    reduced = {key: getattr(matmul, key) for key in reductions}
    gpus = {each.device for each in whole.parameters() if each.device.type == "cuda"}
    try:
        # Random numbers of other GPUs would cost each of them a context.
        with torch.random.fork_rng(devices=gpus), torch.compiler.set_stance("force_eager"):
            if wrapper is not None and hasattr(whole, "_original_forward"):
                vars(whole)["forward"] = whole._original_forward
            whole.eval()
            yield
    finally:
        for module in training:
            module.training = True
        if wrapper is not None:
            vars(whole)["forward"] = wrapper
        if loaded.is_sharded:  # which keeps books of its own
            for module in modules:
                if _is_of(module, "torch.distributed.fsdp", "FSDPModule"):
                    module.reshard()
        else:
            for current, before in kept:
                _restore(current, before)
        for config, values in settings:
            _reset(vars(config), values)
        torch.set_num_threads(threads)
        for path, value in rounding.items():
            find_rounding_settings(path).fp32_precision = value
        for key, value in reduced.items():
            setattr(matmul, key, value)


def _collect_caches(module: dict[str, Any]) -> dict[str, dict[Any, Any]]:
    """What a forward pass may change in a module: hooks of the library, and what is kept of the longest text."""
    return {
        "": _select_plain_values(module),
        **{key: dict(module[key]) for key in (*HOOKS, "_buffers")},
    }


def _select_plain_values(module: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in module.items() if isinstance(value, bool | int | float)}


def _restore(module: dict[str, Any], parts: dict[str, dict[Any, Any]]) -> None:
    for key in _select_plain_values(module).keys() - parts[""].keys():
        del module[key]
    module.update(parts[""])
    for key in (*HOOKS, "_buffers"):
        _reset(module[key], parts[key])


def _reset(now: dict[Any, Any], before: dict[Any, Any]) -> None:
    for key in now.keys() - before.keys():
        del now[key]
    now.update(before)
