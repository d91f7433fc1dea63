"""What the rules of the checkpoints ask of a model."""

MODELS_BY_SOURCE = {
    source: [name for name, model in MODELS.items() if model.source == source]
    for source in ("hub", "path", "pretraining")
}
# Below this many weights a forward pass is over before several threads would pay.
WEIGHTS_WORTH_THREADS = 50_000_000


# Why the Hub cannot be asked, once one model has found out.
UNREACHABLE = []


@cache
def curve(name):
    """The checkpoints of a model, resolved at the first need: a figure asks only about its own models."""
    lock, table = Path(f"config/locks/{name}.yaml"), Path(f"results/checkpoints/{name}.csv")
    known = UNREACHABLE[0] if UNREACHABLE else ""
    try:
        resolved = curve_of(MODELS[name], lock, table, unreachable=known)
    except InputError as error:
        fail(error)
    if resolved.unresolved and not known:
        UNREACHABLE.append(resolved.unresolved)
        warn(
            [f"{resolved.unresolved}; revisions are planned as config/models lists them, unchecked"]
        )
    return resolved


def lock_file(wildcards):
    """Where the revisions of a model are pinned: beside the configuration of this working directory."""
    curve(wildcards.model)  # writes it
    return f"config/locks/{wildcards.model}.yaml"


@cache
def checkpoints(name):
    """The checkpoints of a model that are measured."""
    resolved, policy = curve(name), CONFIGURATION.settings["bad_checkpoints"]
    measured = resolved.measured(flagged=policy == "flag")
    said = ", ".join(f"`{n}` ({verdict})" for n, verdict in resolved.bad().items())
    total = len(resolved.checkpoints)
    if said and policy == "fail":
        fail(
            f"model `{name}`: {len(resolved.bad())} of {total} revisions are not what they should be: "
            f"{said}; correct the entry, or set key `bad_checkpoints` to `skip` or `flag`"
        )
    if not measured:
        fail(
            f"model `{name}` has no checkpoint that can be used: {said}; correct its entry, or remove it "
            "from key `models`"
        )
    if len(measured) < total:
        left_out = f"{total - len(measured)} of {total} revisions are left out"
        warn(
            [f"model `{name}`: {left_out}, as config/locks/{name}.yaml has it; bad ones are {said}"]
        )
    return measured


def last_checkpoint(name):
    """The last checkpoint of a model that is what it should be; a flagged one if there is no other."""
    bad = curve(name).bad()
    measured = checkpoints(name)
    return ([each for each in measured if each.name not in bad] or measured)[-1]


def judged_checkpoints(wildcards):
    """What judge_checkpoints.py is told of each checkpoint, as JSON: revision, step, tokens, verdict."""
    resolved = curve(wildcards.model)
    return json.dumps(
        [(c.name, c.step, c.tokens, resolved.verdicts[c.name]) for c in resolved.checkpoints]
    )


def checkpoint_losses(wildcards):
    return expand(
        f"{MEASURED}/losses/{{model}}/{{revision}}.csv",
        model=wildcards.model,
        revision=[each.name for each in checkpoints(wildcards.model)],
    )


def losses_folder(wildcards, input):
    return str(Path(input.losses[0]).parent)


def hub_arguments(wildcards):
    """What fetch_checkpoint.py is told of a checkpoint."""
    model, resolved = MODELS[wildcards.model], curve(wildcards.model)
    measured = {each.name: each for each in checkpoints(wildcards.model)}
    if wildcards.revision not in measured:
        verdict = resolved.verdicts.get(wildcards.revision, "it is not in the model's entry")
        fail(f"model `{model.name}`: `{wildcards.revision}` is not fetched: {verdict}")
    entry = measured[wildcards.revision]
    arguments = {
        "repository": entry.repository,
        "revision": entry.revision,
        "commit": entry.commit,
        "subfolder": entry.subfolder,
        "tokenizer-repository": model.tokenizer,
        "tokenizer-commit": resolved.tokenizer_commit,
        "layers": model.layers,
        "hidden-size": model.hidden_size,
        "last-hidden-size": model.last_hidden_size,
        "role": model.role,
        "unresolved": resolved.unresolved,
    }
    return [f"--{name}={value}" for name, value in arguments.items() if value != ""]


def downloaded_folder(wildcards):
    """Where a checkpoint of the Hub is."""
    return own_path(f"<resources>/checkpoints/{wildcards.model}/{wildcards.revision}")


def download(folder, receipt):
    """What stands for a download: the folder, which is removed after use, or a receipt where it is kept."""
    return receipt if CONFIGURATION.settings["keep_checkpoints"] else temp(directory(folder))


def receipt_option(wildcards, output):
    """The option by which fetch_checkpoint.py leaves a receipt."""
    return ["--receipt", output[0]] if CONFIGURATION.settings["keep_checkpoints"] else []


def forward_threads(wildcards):
    """Cores for a forward pass; the numbers do not depend on it."""
    model = MODELS[wildcards.model]
    weights = 12 * model.layers * model.hidden_size**2
    return setting("forward", "threads") if weights > WEIGHTS_WORTH_THREADS else 1


def pretraining_arguments(wildcards):
    """The recipe that pretrain_model.py follows."""
    model = MODELS[wildcards.model]
    recipe = {"layers": model.layers, "hidden_size": model.hidden_size, **model.pretraining}
    return [f"--{name.replace('_', '-')}={value}" for name, value in recipe.items()]


def pretraining_threads(wildcards):
    return MODELS[wildcards.model].pretraining["threads"]
