"""A claim of a paper: its sentence, the statistic that decides it, and the rule, written beforehand.

The Snakefile reads claims at every start, so that nothing slow is imported here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# What a claim may name: functions, by the modules of this package that they are in.
_STATISTICS = {
    "layer_statistics": (
        *("mean_over_layers", "middle_over_ends", "flatter", "difference_of_estimators"),
        *("encoders_less_decoders", "norms_beside_linearity", "isotropic_matrices"),
        *("isotropy_beside_others", "weights_beside"),
    ),
    "training_statistics": (
        *("change_over_training", "growth_then_settling", "rise_then_fall", "concordance"),
        *("peak_beside_warm_up", "higher_at_peak_and_end", "correlation_with_loss"),
    ),
    "table_statistics": (
        *("cost_of_edits", "twins_less_originals", "twins_loss_less_originals"),
        *("isotropy_after_less_before", "change_of_local_structure"),
        *("task_in_elongated_directions",),
    ),
}
STATISTICS = {name: module for module, names in _STATISTICS.items() for name in names}


@dataclass(frozen=True)
class Claim:
    """An entry of ``claims.yaml``.

    Attributes
    ----------
    name, sentence, where : str
        Its key; what is claimed, in our words; where in the paper.
    statistic : str
        One of `STATISTICS`.
    arguments : mapping
        Of that function, besides `estimators`.
    estimators : sequence of str
        What it is a statistic of; none where it is of other tables.
    reads : sequence of str
        Other tables that it reads, by the names that paper.yaml `reads`.
    rule : mapping
        ``supported`` and ``contradicted``, a condition each, see :mod:`shape_of_learning.claims.rules`.
    models : str or sequence of str
        Names of entries, all of which it needs, or those of the run that are
        ``decoders``, ``encoders``, ``all`` (of both), ``fine_tunings`` or ``twins``.
    checkpoints : {"last", "training"}
        At which of them it is judged: the last sound one, or sound ones with a step.
    needs : int
        How many of the models must be measured; 0 for all that are named, or one of a group.
    average_over : {"block_outputs", "all_layers"}
        Which layers count.
    """

    name: str
    sentence: str
    where: str
    statistic: str
    rule: Mapping[str, Any]
    models: str | Sequence[str]
    estimators: Sequence[str] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    reads: Sequence[str] = ()
    checkpoints: str = "last"
    needs: int = 0
    average_over: str = "block_outputs"

    @property
    def needed(self) -> int:
        """How many models must be measured."""
        return self.needs or (1 if isinstance(self.models, str) else len(self.models))

    def is_on(self, kind: str, role: str) -> bool:
        """Whether a group of models that it is on has those of a kind and a role."""
        if self.models in ("fine_tunings", "twins"):
            return f"{kind}s" == self.models
        return kind == "pretrained" and self.models in ("all", f"{role}s")
