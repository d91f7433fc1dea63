"""Whether the Hub shows a gated model to the token that there is."""

import os
from pathlib import Path
from urllib.parse import urlsplit

from shape_of_learning.errors import InputError
from shape_of_learning.plan.model import Model


def has_hub_token() -> bool:
    """Whether there is a token: in a variable, or of a login of the Hugging Face client."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    home = os.environ.get("HF_HOME") or Path(caches, "huggingface")
    file = Path(os.environ.get("HF_TOKEN_PATH") or Path(home, "token"))
    variables = (os.environ.get(name) for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"))
    try:
        return any(variables) or bool(file.read_bytes().strip())
    except OSError:
        return False


def check_endpoint() -> None:
    """Refuse a variable ``HF_ENDPOINT`` that is no address, with which the client cannot even be imported.

    Raises
    ------
    InputError
    """
    try:
        parts = urlsplit(os.environ.get("HF_ENDPOINT") or "https://huggingface.co")
        is_address = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise InputError(
            "the variable HF_ENDPOINT is no address of a server; unset it, or set it to one such as "
            "https://huggingface.co"
        )


def is_closed(model: Model) -> bool:
    """Whether the Hub refuses a gated model to the token that there is; False where it cannot be asked."""
    # Imported here, since most plans have no gated model, and need not wait for the Hub's client.
    from shape_of_learning.checkpoints import hub

    place = model.checkpoints[-1] if model.checkpoints else model.offered
    assert place is not None
    return hub.is_closed(place.repository, where=f"model `{model.name}`")
