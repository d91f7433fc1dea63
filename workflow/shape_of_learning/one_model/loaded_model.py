"""Handle a model that the user has loaded, with its wrappers and adapters, and leave no trace in it."""

import inspect
import sys
import threading
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
from shape_of_learning.embeddings.model import find_base
from shape_of_learning.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

PATIENCE = 30  # seconds that a rank waits for the other ranks, which measure at the same step
_MEETINGS: Counter[str] = Counter()  # the number of meetings of this process, by occasion


@dataclass(frozen=True)
class LoadedModel:
    """A model, perhaps with an adapter or sharded over several processes.

    Attributes
    ----------
    whole : torch.nn.Module
        The module that the user calls, without wrappers that distribute or compile it.
    inner : transformers.PreTrainedModel
        The model of transformers inside, which has the configuration.
    adapters : dict of str to str
        Names and kinds of the active adapters.
    virtual_tokens : int
        Number of tokens that an adapter puts before a text.
    """

    whole: torch.nn.Module
    inner: "PreTrainedModel"
    adapters: dict[str, str] = field(default_factory=dict)
    virtual_tokens: int = 0

    @staticmethod
    def inspect_model(model: torch.nn.Module) -> "LoadedModel":
        """Find the model of transformers in a module; InputError if the module has none, or a partitioned one."""
        from transformers import PreTrainedModel

        whole = inner = _unwrap_model(model)
        while not isinstance(inner, PreTrainedModel):
            if is_instance(inner, "torch.distributed.fsdp", "FullyShardedDataParallel"):
                inner = inner.module
            elif callable(getattr(inner, "get_base_model", None)):
                inner = inner.get_base_model()
            elif hasattr(inner, "peft_config"):  # a model of peft with several kinds of adapters
                inner = inner.base_model.model
            else:
                raise InputError(
                    f"`model` is a {type(inner).__name__} without a model of transformers; give `measure` or a "
                    "`ShapeProbe` a model of transformers, or `measure` hidden states"
                )
        if any(hasattr(weight, "ds_id") and not weight.numel() for weight in inner.parameters()):
            raise InputError(
                "`model` is partitioned by DeepSpeed ZeRO-3, so that each process holds a part of each weight; "
                "measure saved checkpoints (`shape-of-learning measure FOLDER`), or train with ZeRO-2 or FSDP"
            )
        is_empty = {weight.is_meta for weight in inner.parameters()} == {True}
        if is_empty and not hasattr(inner, "hf_device_map"):
            raise InputError(
                "`model` has no weights, since it was made on the device `meta`; load them (`from_pretrained`)"
            )
        adapters = {}
        virtual_tokens = 0
        for name, config in _find_adapters(whole, inner).items():
            kind = getattr(config, "peft_type", "adapter")
            adapters[name] = str(getattr(kind, "value", kind))
            virtual_tokens += getattr(config, "num_virtual_tokens", None) or 0
        return LoadedModel(whole, inner, adapters, virtual_tokens)

    @property
    def base(self) -> "PreTrainedModel":
        """The model without a head, whose hidden states are measured."""
        return find_base(self.inner)

    @cached_property
    def is_sharded(self) -> bool:
        """Whether a forward pass gathers weights from other processes, which must take part in the pass."""
        wrappers = ("FullyShardedDataParallel", "FSDPModule")
        if any(
            is_instance(module, "torch.distributed.fsdp", *wrappers)
            for module in self.whole.modules()
        ):
            return True
        weights = self.whole.parameters()
        return any(is_instance(weight, "torch.distributed.tensor", "DTensor") for weight in weights)

    @property
    def is_wrapped(self) -> bool:
        """Whether a wrapper gives the model its adapter or its weights."""
        return self.whole is not self.inner or self.is_sharded

    def choose_callable(self) -> Any:
        """Return the base model, called through its wrapper if it has one."""
        if not self.is_wrapped:
            return self.base
        return _WrappedModel(self.base, self.whole, self.inner)

    def require_all_ranks(self, occasion: str) -> None:
        """Raise InputError if the model is sharded and not all ranks call this for the same occasion."""
        if self.is_sharded and not meet_ranks(occasion):
            raise InputError(
                f"`model` is sharded, but not all {torch.distributed.get_world_size()} processes came to measure it "
                f"within {PATIENCE} s of each other; call this at the same step on every rank"
            )


def _unwrap_model(model: Any) -> Any:
    """Return the model in DistributedDataParallel, DataParallel, an engine or a compiled module."""
    from transformers import PreTrainedModel

    while not isinstance(model, PreTrainedModel):
        modules = getattr(model, "_modules", {})
        if "_orig_mod" in modules:
            model = modules["_orig_mod"]
        elif "module" in modules and not hasattr(model, "peft_config"):
            if is_instance(model, "torch.distributed.fsdp", "FullyShardedDataParallel"):
                break
            model = modules["module"]
        else:
            break
    return model


def is_instance(thing: Any, module: str, *classes: str) -> bool:
    """Return whether a thing is an instance of one of these classes, without importing their module."""
    imported_module = sys.modules.get(module)
    kinds = [getattr(imported_module, name, None) for name in classes]
    return isinstance(thing, tuple(kind for kind in kinds if kind is not None))


def _find_adapters(whole: Any, inner: Any) -> dict[str, Any]:
    """Return the configurations of active adapters by `peft` or by the library's ``add_adapter``."""
    holder = whole if hasattr(whole, "peft_config") else inner
    configs = getattr(holder, "peft_config", None) or {}
    if any(getattr(module, "disable_adapters", False) is True for module in inner.modules()):
        return {}
    active = getattr(holder, "active_adapters", ()) if configs else ()
    try:
        names = active() if callable(active) else active
    except ValueError:  # peft put the adapters into this model for its own wrapper
        names = list(configs)
    return {name: configs[name] for name in names if name in configs}


class _WrappedModel:
    """A base model that is called through its wrapper, and returns its own output."""

    def __init__(self, base: "PreTrainedModel", whole: torch.nn.Module, inner: torch.nn.Module):
        self._base, self._whole = base, whole
        # No measure needs logits, so the head computes as few as it allows.
        parameters = inspect.signature(inner.forward).parameters
        self._options = {"logits_to_keep": 1} if "logits_to_keep" in parameters else {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._base, name)

    @property
    def device(self) -> torch.device:
        """The device that runs the model; the weights of a sharded model may wait on the CPU."""
        weight: Any = next(self._whole.parameters())
        kind = getattr(getattr(weight, "device_mesh", None), "device_type", weight.device.type)
        if kind == weight.device.type:
            return weight.device
        return torch.device(kind, torch.get_device_module(kind).current_device())

    @property
    def dtype(self) -> torch.dtype:
        """The type of the weights, which FSDP may have taken out of the base model."""
        return next(
            weight.dtype for weight in self._whole.parameters() if weight.is_floating_point()
        )

    def __call__(self, *, input_ids: torch.Tensor, **inputs: Any) -> Any:
        outputs: list[Any] = []
        with hook_modules([self._base], lambda *call: outputs.append(call[-1])):
            try:
                self._whole(input_ids=input_ids, **inputs, **self._options)
            except Exception:
                # A head may raise an error after the base model has run: a classifier needs a token for padding.
                if not outputs:
                    raise
        if not outputs:
            raise ValueError(f"{type(self._whole).__name__} does not call its base model")
        # Virtual tokens come before the tokens of the text; in hidden states of BigBird, padding comes after them.
        output, length = outputs[-1], input_ids.shape[1]
        last = output.get("last_hidden_state")
        start = 0 if last is None else last.shape[1] - length
        for key in ("last_hidden_state", "hidden_states"):
            state = output.get(key)
            if isinstance(state, torch.Tensor):
                output[key] = state[:, start : start + length]
            elif state is not None:
                output[key] = tuple(layer[:, start : start + length] for layer in state)
        return output


def meet_ranks(occasion: str) -> bool:
    """Return whether all ranks of a distributed training meet for the same occasion; all ranks get the same answer.

    A rank that gathers weights alone would wait for ever, or mistake other messages for weights. So the ranks meet in
    the store through which the processes found each other, and the first rank that has waited too long decides for
    all. Occasions are counted, since a second training repeats them.
    """
    dist = torch.distributed
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return True
    from torch.distributed import distributed_c10d

    store = distributed_c10d._get_default_store()
    _MEETINGS[occasion] += 1
    key = f"shape_of_learning/{occasion}/{_MEETINGS[occasion]}"

    def decide(decision: str) -> None:
        if store.add(f"{key}/decided", 1) == 1:  # the first decision counts
            store.set(f"{key}/decision", decision)

    if store.add(f"{key}/came", 1) == dist.get_world_size():
        decide("all")
    end = monotonic() + PATIENCE
    while not store.check([f"{key}/decision"]):
        if monotonic() > end:
            decide("some")
        sleep(0.02)
    return bool(store.get(f"{key}/decision") == b"all")


# Mappings in which a module keeps its parts and hooks.
PARTS = (
    "_modules",
    "_buffers",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
)
# Without it, two threads that measure would undo each other's changes to a model, PyTorch and transformers.
LOCK = threading.RLock()


@contextmanager
def quiet_library() -> Iterator[None]:
    """Silence warnings and progress bars of transformers inside the block, since the user did not ask for these."""
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars
    from transformers.utils import logging

    level, has_bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    has_no_bar_of_downloads = are_progress_bars_disabled()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if has_bar and not logging.is_progress_bar_enabled():
            logging.enable_progress_bar()  # this also enables the bar of downloads
            if has_no_bar_of_downloads:
                disable_progress_bars()


@contextmanager
def preserve_model(loaded_model: LoadedModel) -> Iterator[None]:
    """Put a model into evaluation mode inside the block, and restore everything that a forward pass changes."""
    whole, matmul = loaded_model.whole, torch.backends.cuda.matmul
    with LOCK, quiet_library():
        modules: list[Any] = list(whole.modules())
        mappings = [mapping for module in modules for mapping in _list_mappings(module)]
        training = [module for module in modules if module.training]
        wrapper = vars(whole).get("forward")  # accelerate's, which rounds to bfloat16
        if loaded_model.is_sharded:  # FSDP restores its modules itself
            mappings = [mapping for module in modules for mapping in _list_settings(module)]
        copies = [(mapping, dict(mapping)) for mapping in mappings]
        threads = torch.get_num_threads()
        rounding = {path: find_rounding_settings(path).fp32_precision for path in ROUNDING}
        reductions = [f"allow_{kind}_reduced_precision_reduction" for kind in ("bf16", "fp16")]
        reduction_settings = {key: getattr(matmul, key) for key in reductions}
        gpus = {weight.device for weight in whole.parameters() if weight.device.type == "cuda"}
        try:
            # The random state of any other GPU would cost a context there.
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
            for module in modules:
                if is_instance(module, "torch.distributed.fsdp", "FSDPModule"):
                    module.reshard()
            for mapping, copy in copies:
                _restore_mapping(mapping, copy)
            torch.set_num_threads(threads)
            for path, value in rounding.items():  # each part after the one that contains it
                part = find_rounding_settings(path)
                part.fp32_precision = "none"  # follows that one
                if part.fp32_precision != value:
                    part.fp32_precision = value
            for key, value in reduction_settings.items():
                setattr(matmul, key, value)


def _list_mappings(module: Any) -> list[dict[Any, Any]]:
    """List the mappings of a module that a forward pass may change: its attributes, parts, hooks and settings."""
    attributes = vars(module)
    return [attributes, *(attributes[name] for name in PARTS), *_list_settings(module)]


def _list_settings(module: Any) -> list[dict[Any, Any]]:
    """List the settings of a module, which it may share with other modules."""
    config = getattr(module, "config", None)
    return [vars(config)] if hasattr(config, "__dict__") else []


def _restore_mapping(mapping: dict[Any, Any], copy: dict[Any, Any]) -> None:
    for key in mapping.keys() - copy.keys():
        del mapping[key]
    mapping.update(copy)
