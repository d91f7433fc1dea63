"""What the rules of the checkpoints ask of a model."""

from types import SimpleNamespace

from shape_of_learning.plan.model import Places


def models_from(*kinds):
    """Names of the models that come from there."""
    return [name for name, model in MODELS.items() if model.kind in kinds]


def pretrained_on(device):
    """Names of the models that are pretrained there."""
    return [name for name in models_from("pretraining") if MODELS[name].source.device == device]


# Below this many weights a forward pass is over before several threads would pay.
WEIGHTS_WORTH_THREADS = 50_000_000
# Why the Hub cannot be asked, once one model has found out.
UNREACHABLE = []
# What has been resolved since the workflow was read, by model: written as the run starts.
NEW_LOCKS = {}


def lock_file(name):
    """Where the revisions of a model are pinned: beside the configuration of this working directory."""
    return f"config/locks/{name}.yaml"


@cache
def curve(name):
    """The checkpoints of a model, resolved at the first need: a figure asks only about its own models."""
    known = UNREACHABLE[0] if UNREACHABLE else ""
    try:
        resolved = curve_of(MODELS[name], Path(lock_file(name)), unreachable=known, say=say)
    except InputError as error:
        fail(error)
    if resolved.unresolved and not known:
        UNREACHABLE.append(resolved.unresolved)
        warn([f"{resolved.unresolved}; revisions are planned as their entries say, unchecked"])
    if resolved.uncompared and not known:
        UNREACHABLE.append(resolved.uncompared)
        warn([f"{resolved.uncompared}; copies of a main branch that no lock lists are not found"])
    if resolved.is_new:
        NEW_LOCKS[name] = resolved.lock
        pins = f"`snakemake resolve`, or any run as it starts, writes {lock_file(name)}"
        warn([f"model `{name}` is not pinned yet; {pins}, a dry run does not"])
    return resolved


def write_new_locks():
    """Pin what this run has resolved, before its first job."""
    from shape_of_learning.checkpoints.lock import write_lock

    while NEW_LOCKS:
        name, lock = NEW_LOCKS.popitem()
        write_lock(Path(lock_file(name)), lock)
        say(f"{lock_file(name)} is written: commit it with your results")


def all_pins(wildcards):
    """Resolve all models of the configuration; nothing has to be made for it."""
    for name in models_from("repository"):
        if curve(name).unresolved:
            fail(curve(name).unresolved)
    return []


def with_whole_shape(name):
    """A model with what its entry does not say of it: its lock does, the Hub, or the model that it begins with."""
    origin = MODELS[name].source.origin
    if origin is None:
        return curve(name).model
    return at_the_door(MODELS[name].with_shape, with_whole_shape(origin.name).shape)


MODELS.update({n: with_whole_shape(n) for n, model in MODELS.items() if not model.shape.is_whole()})


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
        warn([f"model `{name}`: {left_out}; bad ones are {said}"])
    return measured


def last_checkpoint(name):
    """The last checkpoint of a model that is what it should be; a flagged one if there is no other."""
    bad = curve(name).bad()
    measured = checkpoints(name)
    return ([each for each in measured if each.name not in bad] or measured)[-1]


def judgement(wildcards):
    """What judge_checkpoints.py knows of each checkpoint before it is measured, and what it does with bad ones."""
    return {
        "checkpoints": [dict(vars(each)) for each in curve(wildcards.model).judged.values()],
        "measured": [each.name for each in checkpoints(wildcards.model)],
        "policy": CONFIGURATION.settings["bad_checkpoints"],
    }


def checkpoint_losses(wildcards):
    return expand(
        "<results>/losses/{model}/{revision}.csv",
        model=wildcards.model,
        revision=[each.name for each in checkpoints(wildcards.model)],
    )


def checkpoint_tensors(wildcards):
    return expand(
        "<results>/checkpoints/{model}/{revision}.tensors.csv",
        model=wildcards.model,
        revision=[each.name for each in checkpoints(wildcards.model)],
    )


def integrity_rows(wildcards):
    """What the table of a model's revisions says of each."""
    return curve(wildcards.model).rows()


def pinned_revision(wildcards):
    """What a lock says of a revision that is to be fetched; None if the Hub could not be asked."""
    resolved, name = curve(wildcards.model), wildcards.revision
    if name not in {each.name for each in checkpoints(wildcards.model)}:
        verdict = resolved.verdicts.get(name, "it is not in the model's entry")
        fail(f"model `{wildcards.model}`: `{name}` is not fetched: {verdict}")
    locked = resolved.lock.revisions.get(name)
    return locked.model_dump() if locked else None


def pinned_tokenizer(wildcards):
    """What a lock says of a tokenizer in another repository."""
    tokenizer = curve(wildcards.model).lock.tokenizer
    return tokenizer.model_dump() if tokenizer else None


def pinned_bytes(wildcards):
    """What decides the weights: the commit and the hashes that are pinned, wherever they are and whatever else is."""
    lock, name = curve(wildcards.model).lock, wildcards.revision
    if name not in lock.revisions:
        return ["", ""]
    locked = lock.revisions[name]
    hashes = [file.hash for file in locked.files.values()]
    commit = lock.tokenizer.commit if lock.tokenizer else ""
    return [" ".join([locked.commit, locked.subfolder, *hashes]), commit]


def entry_shape(wildcards):
    """What a checkpoint is compared with before its weights are downloaded."""
    return dict(vars(MODELS[wildcards.model].shape))


def model_shape(wildcards):
    """What a checkpoint is checked against before it is downloaded, and before it is run."""
    return json.dumps(vars(MODELS[wildcards.model].shape))


all_integrity_tables = expand("<results>/checkpoints/{model}.csv", model=models_from("repository"))


def downloads():
    """Where checkpoints of the Hub go. Those that are removed after use lie apart: another run may keep its own."""
    if CONFIGURATION.settings["keep_checkpoints"]:
        return "<resources>/checkpoints"
    run = CONFIGURATION.settings["run"]
    return f"<resources>/unkept_checkpoints@{run}" if run else "<resources>/unkept_checkpoints"


PLACES = Places(downloads(), CONFIGURATION.settings["keep_checkpoints"], own_path)


def checkpoint_folder(wildcards):
    """The checkpoint's folder itself; that of a local one is no part of what is computed from it."""
    return MODELS[wildcards.model].source.folder(wildcards.revision, PLACES)


def download():
    """The folder of a download, which is removed after use unless it is kept."""
    folder = directory(f"{PLACES.downloads}/{{model}}/{{revision}}")
    return folder if CONFIGURATION.settings["keep_checkpoints"] else temp(folder)


def forward_threads(wildcards):
    """Cores for a forward pass; the numbers do not depend on it."""
    shape = MODELS[wildcards.model].shape
    weights = 12 * shape.layers * shape.hidden_size**2
    return setting("forward", "threads") if weights > WEIGHTS_WORTH_THREADS else 1


def folder_on_this_machine(wildcards):
    """Where the files of a checkpoint are, also those of a folder of the user's."""
    here = MODELS[wildcards.model].source.local_folders
    return here.get(wildcards.revision) or checkpoint_folder(wildcards)


def receipt_path(wildcards):
    """What says what a download was as it came; empty for what was none."""
    return MODELS[wildcards.model].source.receipt(wildcards.revision, PLACES) or ""


def origin(wildcards):
    """The model and the revision that a fine-tuning begins with, as wildcards of its checkpoint."""
    source = MODELS[wildcards.model].source
    revision = source.origin_revision or last_checkpoint(source.origin.name).name
    return SimpleNamespace(model=source.origin.name, revision=revision)


def origin_inputs(wildcards):
    return checkpoint_inputs(origin(wildcards))


def origin_folder(wildcards):
    return folder_on_this_machine(origin(wildcards))


def origin_receipt(wildcards):
    return receipt_path(origin(wildcards))


def origin_weights(wildcards):
    return weights(origin(wildcards))


def origin_names(wildcards):
    return vars(origin(wildcards))


def task_of(wildcards):
    """Where the examples of a fine-tuning's task are."""
    return f"<results>/tasks/{MODELS[wildcards.model].source.recipe['task']}"


def task_table(wildcards):
    return f"{task_of(wildcards)}.csv"


def task_description(wildcards):
    return f"{task_of(wildcards)}.json"


def task_examples(wildcards):
    """Numbers of examples of a fine-tuning's task, as far as they are known yet."""
    task = MODELS[wildcards.model].source.recipe["task"]
    entry = CONFIGURATION.settings["tasks"][task]
    return task_needs.examples_of(Path(own_path(task_description(wildcards))), entry)


def pretraining_recipe(wildcards):
    return {
        **MODELS[wildcards.model].source.arguments,
        "seed": CONFIGURATION.settings["seed"],
    }


def finetuning_recipe(wildcards):
    return MODELS[wildcards.model].source.arguments


def model_shape_fields(wildcards):
    return vars(MODELS[wildcards.model].shape)


def trained_weights(wildcards):
    """The folder that a training of one's own has saved a model in; none for other models."""
    model = MODELS[wildcards.model]
    return model.inputs("", PLACES) if model.saved_steps else []


def training_threads(wildcards):
    """Cores of a training, which are part of its recipe."""
    return MODELS[wildcards.model].source.recipe["threads"]
