"""Pretrain and fine-tune small models, and measure any model while it trains."""

from typing import Any

from shape_of_learning import import_named

_HOME = {
    "BandAlert": "training.alerts",
    "ShapeCallback": "training.callback",
    "ShapeProbe": "training.callback",
    "alert_trackio": "training.alerts",
    "alert_wandb": "training.alerts",
    "write_manifest": "checkpoints.manifest",
}
__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    # Imported on first use, since the Snakefile reads recipes at each start and needs no PyTorch.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_named(name, _HOME[name])
