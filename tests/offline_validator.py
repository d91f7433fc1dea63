"""rocrate-validator without a network; run by ``uv``, in an environment that has it.

    python offline_validator.py CRATE CONTEXT CACHE

validates a crate, with what the file CONTEXT says in the place of its JSON-LD context: the validator finds it
in its HTTP cache.
"""

import io
import subprocess
import sys
from pathlib import Path

import requests
from requests.adapters import BaseAdapter
from requests_cache import CachedSession
from urllib3 import HTTPResponse

URL = "https://w3id.org/ro/crate/1.1/context"


class OneFile(BaseAdapter):
    """Answers every request with one file."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.content = content

    def send(self, request: requests.PreparedRequest, **options: object) -> requests.Response:
        response = requests.Response()
        response.status_code, response.url, response.request = 200, request.url, request
        response.headers["Content-Type"] = "application/ld+json"
        response.raw = HTTPResponse(
            io.BytesIO(self.content),
            headers=response.headers,
            status=200,
            preload_content=False,
            request_method="GET",
            request_url=request.url,
        )
        return response

    def close(self) -> None:
        pass


def main(crate: str, context: str, cache: str) -> int:
    """Fill the cache, validate, and return the exit status of the validator."""
    with CachedSession(cache, backend="sqlite", expire_after=-1) as session:
        session.mount("https://", OneFile(Path(context).read_bytes()))
        session.get(URL, headers={"Accept": "application/ld+json, application/json, */*;q=0.1"})
    # The least severity that counts is REQUIRED: what the specification says MUST be.
    options = ("--offline", "--cache-path", cache, "--no-paging", "--verbose")
    command = ("rocrate-validator", "--no-interactive", "validate", *options, crate)
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
