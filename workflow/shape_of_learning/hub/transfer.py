"""The bytes of one file, over a network that may cut them off.

The client's own `hf_hub_download` starts a torn file anew after a kill, and its `http_get` holds up to
10 MB back from the disk; here each block is written as it arrives.
"""

import threading

import httpx2
from huggingface_hub import constants, get_session
from huggingface_hub.utils import build_hf_headers, hf_raise_for_status

from shape_of_learning.hub.part import Part
from shape_of_learning.hub.retries import with_retries

PARTIAL_CONTENT, RANGE_NOT_SATISFIABLE = 206, 416


class Stopped(Exception):
    """The transfer was given up because another one failed."""


def transfer(url: str, part: Part, *, first_pause: float, stopping: threading.Event) -> None:
    """Download what a part lacks, with as many requests as it takes.

    Parameters
    ----------
    url : str
        Address of the file on the Hub, which may send on to another host; the client does not show
        the token there.
    part : Part
        Open. Afterwards it has at least the listed size; what it holds is not looked at.
    first_pause : float
        Seconds before the second try, as :func:`.with_retries` takes it. Bytes are progress.
    stopping : threading.Event
        Ends the transfer at the next block.

    Raises
    ------
    Stopped
        If `stopping` was set.
    httpx2.HTTPError
        What was still in the way after all tries, or at once if it will not pass, such as a gate.
    OSError
        If the part cannot be written.
    """
    with_retries(
        lambda: _ask_for_the_rest(url, part, stopping),
        first_pause=first_pause,
        progress=lambda: part.bytes,
        stopping=stopping,
    )


def _ask_for_the_rest(url: str, part: Part, stopping: threading.Event) -> None:
    if part.bytes > part.listed.bytes:
        part.clear()
    if part.bytes == part.listed.bytes:
        return
    # A compressed answer could not be gone on with at a byte of the file.
    headers = build_hf_headers() | {"Accept-Encoding": "identity"}
    if part.bytes:
        headers["Range"] = f"bytes={part.bytes}-"
    timeout = constants.HF_HUB_DOWNLOAD_TIMEOUT
    with get_session().stream("GET", url, headers=headers, timeout=timeout) as answer:
        if answer.status_code == RANGE_NOT_SATISFIABLE:
            part.clear()
            raise httpx2.RemoteProtocolError("the server has no such range of the file")
        hf_raise_for_status(answer)
        if answer.status_code != PARTIAL_CONTENT:  # the server sends the whole file
            part.clear()
        for block in answer.iter_bytes():
            if stopping.is_set():
                raise Stopped
            part.append(block)
            if part.bytes > part.listed.bytes:
                return
    if part.bytes < part.listed.bytes:
        missing = part.listed.bytes - part.bytes
        raise httpx2.RemoteProtocolError(f"the answer ended {missing} bytes early")
