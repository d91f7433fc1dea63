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
    return MODELS[wildcards.model].shape.role
