"""Where a checkpoint is on this machine: a folder, a file of an installed package, an unpacked GGUF file."""

import logging
import re
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from shape_of_learning.checkpoints.shapes import CONFIGURATION, WEIGHTS, tokenizer_paths
from shape_of_learning.errors import InputError, shortened
from shape_of_learning.files import atomic_write, fingerprint

logger = logging.getLogger(__name__)

PACKAGE, GGUF = "package:", ".gguf"


def local_checkpoint(path: str) -> Path:
    """Find the folder of a checkpoint.

    Parameters
    ----------
    path : str
        Of a folder, where ``~`` is the user's home; or of a GGUF file, which is unpacked once into the cache of
        the Hub's client. ``package:NAME/PATH`` is what an installed package has there.

    Raises
    ------
    InputError
        If there is no such package, or the file cannot be unpacked.
    """
    found = Path(path).expanduser()
    if path.startswith(PACKAGE):
        name, _, inside = path.removeprefix(PACKAGE).partition("/")
        package = find_spec(name) if name.isidentifier() else None
        if package is None or not package.submodule_search_locations:
            raise InputError(
                f"{path}: there is no package `{name}`; install it where this runs, or correct the name"
            )
        found = Path(package.submodule_search_locations[0], inside)
    return unpacked(found) if found.suffix.lower() == GGUF else found


def unpacked(file: Path) -> Path:
    """Write the weights of a GGUF file, of which quantised ones are multiplied out, and its tokenizer as a folder.

    Returns
    -------
    Path
        The same for the same file.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    if not file.is_file():
        raise InputError(f"{file} is missing; correct the path")
    from huggingface_hub import cached_assets_path

    folder = cached_assets_path("shape-of-learning", namespace="gguf") / fingerprint(file)
    if folder.exists():
        return folder
    try:
        import gguf  # noqa: F401 (which transformers needs, and does not say so at once)
    except ImportError:
        raise InputError(f"{file} needs the package gguf; install it: `pip install gguf`") from None
    import transformers

    logger.info("unpacking %s, once", file)
    try:
        given = {"gguf_file": file.name, "local_files_only": True}
        model = transformers.AutoModelForCausalLM.from_pretrained(
            file.parent, dtype="float32", **given
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(file.parent, **given)
    except MemoryError:
        raise
    except Exception as error:  # whatever a file holds goes into the code of all architectures
        raise InputError(
            f"{file} cannot be unpacked ({shortened(error)}); take a file of an architecture that "
            "transformers reads from GGUF, or the folder of the weights that it was made of"
        ) from error
    whole = type(model)(_plain(model.config))
    whole.load_state_dict(model.state_dict())
    with atomic_write(folder) as unfinished:
        whole.save_pretrained(unfinished)
        tokenizer.save_pretrained(unfinished)
    return folder


def _plain(config: "transformers.PretrainedConfig") -> "transformers.PretrainedConfig":  # type: ignore[name-defined] # noqa: F821
    """The configuration without a word on how the file was quantised."""
    stated = config.to_dict()
    stated.pop("quantization_config", None)
    return type(config).from_dict(stated)


def named_checkpoint(model: str, revision: str) -> tuple[str, Path]:
    """Find a checkpoint on this machine or on the Hub: its name, and the folder that it is in.

    Raises
    ------
    InputError
        If there is none.
    """
    path = Path(model).expanduser()
    if model.startswith(PACKAGE) or path.exists() or path.suffix.lower() == GGUF:
        return path.stem if path.suffix.lower() == GGUF else path.name, local_checkpoint(model)
    from huggingface_hub import snapshot_download

    from shape_of_learning.checkpoints import hub

    where = f"model `{model}`"
    files = hub.files_at(model, revision, revision, where=where)
    for whole, index in WEIGHTS:
        if whole in files or index in files:
            stem, suffix = whole.split(".")
            weights = [n for n in files if re.fullmatch(rf"{stem}.*\.{suffix}(\.index\.json)?", n)]
            break
    else:
        raise InputError(f"{where}: revision `{revision}` has no weights; choose another revision")
    wanted = [CONFIGURATION, *tokenizer_paths(files, ""), *weights]
    bring = partial(snapshot_download, model, revision=revision, allow_patterns=wanted)
    return path.name, Path(hub.asked(bring, model, revision, where=where))
