"""Statistics of other tables: changed blocks, twins, fine-tunings. As in :mod:`.layer_statistics`.

These tables have no left-out values. What was repeated with other seeds has an interval from them, the
rest is compared as it is.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from shape_of_learning.claims.bounds import Bounded, known, replicated
from shape_of_learning.claims.evidence import EvidenceModel
from shape_of_learning.claims.reading import NotMeasured, Reading, of_common_layers
from shape_of_learning.claims.rules import Units

Row = Mapping[str, str]
CHANGES = ("dropped", "replaced")
ELONGATED = 10  # times the median eigenvalue of the layer at the first step


def cost_of_edits(reading: Reading, share: float) -> Units:
    """Perplexity with a share of the blocks changed.

    Returns
    -------
    Units
        Of each model ``dropped`` and ``replaced``: the perplexity over that of the unchanged model, by
        the order of linearity. And ``dropped_over_reverse`` and ``replaced_over_reverse``: this ratio
        less that by the reverse order.
    """
    units = {}
    layers = {model.name: model.layers for model in reading.models}
    for name, rows in reading.rows("edits").items():
        changed = max(1, round(share * layers[name]))
        perplexity = {(r["order"], r["kind"], int(r["k"])): float(r["perplexity"]) for r in rows}
        parts = {}
        for kind in CHANGES:
            ratio = {}
            for order in ("most_linear_first", "least_linear_first"):
                if (order, kind, changed) not in perplexity:
                    raise NotMeasured(
                        f"{changed} {kind} blocks of `{name}`, {order.replace('_', ' ')}, are not "
                        "measured (`most_blocks`, `orders` and `kinds` of `block_editing`)"
                    )
                at = perplexity[order, kind, changed]
                ratio[order] = at / perplexity[order, kind, 0]
            parts[kind] = known(ratio["most_linear_first"])
            difference = ratio["most_linear_first"] - ratio["least_linear_first"]
            parts[f"{kind}_over_reverse"] = known(difference)
        units[name] = parts
    return units


def twins_less_originals(
    reading: Reading, estimators: tuple[str], regulariser: str, pairs: int
) -> Units:
    """Mean over layers of a twin with a regulariser less that without, mean over pairs of one seed each."""
    originals = {model.name: model.origin for model in reading.models}
    found = reading.curves(*estimators)
    values = {}
    for name, (twin,) in found.items():
        curve = reading.beside(originals[name], estimators[0])
        if curve is not None and curve.steps[-1] == twin.steps[-1]:
            of_twin, of_original = of_common_layers([twin, curve])
            values[name] = (of_twin - of_original).mean(axis=-2)[..., 0]
    return _over_pairs(reading, values, regulariser, pairs, f"`{estimators[0]}`")


def twins_loss_less_originals(reading: Reading, regulariser: str, pairs: int) -> Units:
    """Held-out loss of a twin less that of its original, as :func:`twins_less_originals`."""
    originals = {model.name: model.origin for model in reading.models}
    values = {}
    for name, rows in reading.rows("training").items():
        other = reading.rows_beside(originals[name], "training")
        ends = [_at_last_step(each)[0] for each in (rows, other) if each]
        losses = [end["held_out_loss"] for end in ends]
        if len(losses) == 2 and all(losses) and ends[0]["step"] == ends[1]["step"]:
            values[name] = np.asarray(float(losses[0]) - float(losses[1]))
    return _over_pairs(reading, values, regulariser, pairs, "a held-out loss")


def isotropy_after_less_before(reading: Reading) -> Units:
    """Of each fine-tuning the change of ln I of the last layer, mean over its seeds."""
    changes = _of_seeds(
        reading,
        "finetuning_layers",
        lambda row: row["estimator"] == "log_partition_isotropy",
        lambda before, after: _value(after) - _value(before),
    )
    return {family: {"change": replicated(of)} for family, of in changes.items()}


def change_of_local_structure(reading: Reading) -> Units:
    """Of each fine-tuning the absolute relative change of two shares of variance, mean over seeds.

    The parts are ``share_between_token_types`` and ``share_between_frequency_bands``, of the last layer.
    """
    units: dict[str, dict[str, Bounded]] = {}
    for quantity in ("share_between_token_types", "share_between_frequency_bands"):
        changes = _of_seeds(
            reading,
            "finetuning_structure",
            partial(_is_of, quantity),
            lambda before, after: abs(_value(after) / (_value(before) or float("nan")) - 1),
        )
        for family, of in changes.items():
            units.setdefault(family, {})[quantity] = replicated(of)
    return units


def task_in_elongated_directions(reading: Reading, directions: Sequence[int]) -> Units:
    """Of each fine-tuning how many elongated directions it adds, and what their removal comes to cost.

    Returns
    -------
    Units
        Of each family, means over its seeds: ``directions``, the elongated ones of the last layer after less
        before; ``cost``, the probe score with no direction removed less the mean of those without so many
        `directions`, after less before.
    """

    def added(before: Sequence[Row], after: Sequence[Row]) -> float:
        bound = ELONGATED * float(before[0]["median"])
        counts = [sum(float(r["eigenvalue"]) > bound for r in rows) for rows in (before, after)]
        return counts[1] - counts[0]

    def grown(before: Sequence[Row], after: Sequence[Row]) -> float:
        return _cost(after, directions) - _cost(before, directions)

    more = _of_seeds(reading, "finetuning_spectra", lambda row: True, added)
    costs = _of_seeds(reading, "finetuning_probes", _is_probed, grown)
    return {
        family: {"directions": replicated(of), "cost": replicated(costs[family])}
        for family, of in more.items()
        if family in costs
    }


def _is_of(quantity: str, row: Row) -> bool:
    return row["quantity"] == quantity


def _is_probed(row: Row) -> bool:
    is_removal = row["adjustment"] == "without_directions" and row["fitted_on"] == "training"
    return row["adjustment"] == "none" or (is_removal and row["clusters"] in ("1", "1.0"))


def _cost(rows: Sequence[Row], directions: Sequence[int]) -> float:
    whole = next(float(row["score"] or "nan") for row in rows if row["adjustment"] == "none")
    left = {
        int(float(row["directions"])): float(row["score"] or "nan")
        for row in rows
        if row["adjustment"] != "none"
    }
    return whole - float(np.mean([left.get(number, float("nan")) for number in directions]))


def _of_seeds(
    reading: Reading,
    table: str,
    is_meant: Callable[[Row], bool],
    change: Callable[[Sequence[Row], Sequence[Row]], float],
) -> dict[str, list[float]]:
    """A change of the last layer from the first step to the last, by family; of those with several seeds."""
    models = {model.name: model for model in reading.models}
    changes: dict[str, list[float]] = {}
    for name, rows in reading.rows(table).items():
        last = max(int(row["layer"]) for row in rows)
        own = [row for row in rows if int(row["layer"]) == last and is_meant(row)]
        own = [row for row in own if row["sample"] == own[0]["sample"]]  # the first of its samples
        steps = sorted({int(row["step"]) for row in own})
        if len(steps) > 1:
            ends = [[row for row in own if int(row["step"]) == step] for step in steps]
            changes.setdefault(_fine_tuning(models[name]), []).append(change(ends[0], ends[-1]))
    several = {family: of for family, of in changes.items() if len(of) > 1}
    if not several:
        raise NotMeasured(
            f"no fine-tuning has tables/{table} at its first and its last step with two seeds or more, "
            "without which nothing tells a change from chance"
        )
    return several


def _fine_tuning(model: EvidenceModel) -> str:
    return f"{model.origin} on {model.treatment}"


def _value(rows: Sequence[Row]) -> float:
    return float(rows[0]["value"] or "nan")


def _at_last_step(rows: Sequence[Row]) -> list[Row]:
    last = max(int(row["step"]) for row in rows)
    return [row for row in rows if int(row["step"]) == last]


def _over_pairs(
    reading: Reading, values: Mapping[str, np.ndarray], regulariser: str, pairs: int, what: str
) -> Units:
    """Means over the pairs of each treatment by a regulariser, if there are enough of one."""
    treatments: dict[str, list[np.ndarray]] = {}
    for model in reading.models:
        if model.name in values and model.treatment.split()[0] == regulariser:
            treatments.setdefault(model.treatment, []).append(values[model.name])
    most = max(map(len, treatments.values()), default=0)
    if most < pairs:
        raise NotMeasured(
            f"the run has {most} of {pairs} needed pairs, of one seed each, of a twin with the term "
            f"`{regulariser}` and its original with {what} at the same last step"
        )
    return {
        treatment: {"difference": replicated(np.stack(of, axis=-1))}
        for treatment, of in treatments.items()
        if len(of) >= pairs
    }
