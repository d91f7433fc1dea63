"""Which measurements belong to a table."""


def selected_checkpoints(wildcards):
    """All checkpoints of a model, or just its last good one."""
    if wildcards.which == "last_checkpoint":
        return [last_checkpoint(wildcards.model)]
    return checkpoints(wildcards.model)


def checkpoint_measurements(wildcards):
    """What one estimator says of each checkpoint."""
    return [
        f"<results>/measurements/{wildcards.model}/{checkpoint.name}/{wildcards.estimator}.csv"
        for checkpoint in selected_checkpoints(wildcards)
    ]


def gathered_checkpoints(wildcards):
    """What gather_checkpoints.py is told of each checkpoint, as JSON: revision, step, tokens."""
    return json.dumps([(c.name, c.step, c.tokens) for c in selected_checkpoints(wildcards)])


def model_role(wildcards):
    return MODELS[wildcards.model].role


def table_1_entries(wildcards):
    """Rows of Table 1, as JSON for write_table_1.py."""
    rows = []
    for name in CONFIGURATION.table_1:
        model = MODELS[name]
        shape = {"model": model.label, "layers": model.layers, "hidden_size": model.hidden_size}
        rows.append({**shape, **model.table_1})
    return json.dumps(rows)


def all_table_1(wildcards):
    if not CONFIGURATION.table_1:
        return []
    return ["<results>/tables/table_1.csv", "<results>/tables/table_1.md"]
