"""Tables on the texts of a task, and the axes of the figures, for tests/unit/test_figures_hold_their_numbers.py."""

from functools import partial
from itertools import product

import numpy as np

from figure_tables import BY_LAYER
from papers.finetuning.columns import TASK_COLUMNS

NUMBERS = np.random.default_rng(0)
AXES = {
    "isotropy_by_layer": BY_LAYER,
    **dict.fromkeys(("spectra", "probe_scores", "local_structure"), ((), ("value",))),
}
SOURCES = dict.fromkeys(AXES, "held-out texts of the task")
AT_EDGE = ("spectra",)  # eigenvalues that are 0
TASK_LAYERS = 12
ADJUSTMENTS = [
    ("none", np.nan, np.nan, "nothing"),
    *(("without_directions", 1, k, "training") for k in (0, 1, 8, 32)),
    *(("only_directions", 1, k, "training") for k in (1, 8, 32)),
    *(("cluster_based", 27, k, "training") for k in (0, 12)),
]


def make_task_rows(kind, model, _):
    names = ("log_partition_isotropy", "average_cosine", "top_1_share", "top_10_share")
    shares = ("share_between_token_types", "share_between_frequency_bands")
    layers, random = range(TASK_LAYERS + 1), NUMBERS.random
    for step in (0, 16, 656):
        checkpoint = (model.name, f"step{step}", step, f"{model.name.rsplit('-', 2)[1]}/held_out")
        if kind == "finetuning_layers":
            rows = [(layer, name, 21_000, random()) for layer, name in product(layers, names)]
        elif kind == "finetuning_spectra":
            places = product(layers, range(1, 65))
            rows = [(layer, 21_000, 0.02, 30.0, k, 9 / (k + random())) for layer, k in places]
        elif kind == "finetuning_structure":
            layer_rows = product(layers, shares, [np.nan])
            cluster_rows = product([TASK_LAYERS], names[:1], (1, 3, 9, 27))
            rows = [(*keys, 21_000, random()) for keys in (*layer_rows, *cluster_rows)]
        else:
            numbers = (21_000, 0, -3.0, 0.1, "accuracy", 500)
            rows = [(TASK_LAYERS, *keys, *numbers, random(), 0.5) for keys in ADJUSTMENTS]
        yield from ((*checkpoint, *row) for row in rows)


TABLES = {kind: (TASK_COLUMNS[kind], partial(make_task_rows, kind)) for kind in TASK_COLUMNS}
