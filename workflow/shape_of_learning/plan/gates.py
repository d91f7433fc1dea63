"""Whether the Hub shows a gated model to the token that there is."""

import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from shape_of_learning.checkpoints.checkpoint_files import CONFIGURATION
from shape_of_learning.errors import InputError, UnreachableError
from shape_of_learning.plan.models import Model
from shape_of_learning.plan.pinning import ASKING_SECONDS, said_while_waiting


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


class Gates:
    """Asks of each gated model whether the token may have it; of no other after the Hub was not to be had.

    Parameters
    ----------
    say : callable
        Shows a line on the terminal while the Hub is asked.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._is_silent = say, False

    def is_closed(self, model: Model) -> bool:
        """Whether the Hub refuses a model to the token; False where it cannot be asked."""
        # Imported here, since most plans have no gated model, and need not wait for the Hub's client.
        from huggingface_hub import constants

        from shape_of_learning.hub.hub_errors import GatedError, shown_endpoint
        from shape_of_learning.hub.listing import inside, read_json
        from shape_of_learning.hub.remote_revision import RemoteRevision
        from shape_of_learning.hub.retries import ending_in

        if self._is_silent or constants.is_offline_mode():
            return False
        place = model.checkpoints[-1] if model.checkpoints else model.offered
        assert place is not None
        revision = model.checkpoints[-1].revision if model.checkpoints else "main"
        source = RemoteRevision(place.repository, revision, revision, {})
        where = f"model `{model.name}`"
        try:
            with said_while_waiting(where, shown_endpoint(), self._say), ending_in(ASKING_SECONDS):
                read_json(source, inside(place.subfolder, CONFIGURATION), where=where)
        except GatedError:
            return True
        except UnreachableError:
            self._is_silent = True
        except InputError:
            pass  # what is wrong with it is said when its revisions are resolved
        return False
