"""Run rocrate-validator without a network; ``uv`` runs this file in an environment that has it.

    python offline_validator.py CRATE CONTEXT CACHE

validates a crate with the file CONTEXT as its JSON-LD context, which the validator finds in its HTTP cache.
"""

import subprocess
import sys
from pathlib import Path

import requests
from requests_cache import CachedResponse, CachedSession

URL = "https://w3id.org/ro/crate/1.1/context"


def main(crate: str, context: str, cache: str) -> int:
    """Fill the cache, validate, and return the exit status of the validator."""
    headers = {"Accept": "application/ld+json, application/json, */*;q=0.1"}
    with CachedSession(cache, backend="sqlite", expire_after=-1) as session:
        request = session.prepare_request(requests.Request("GET", URL, headers=headers))
        answer = CachedResponse(status_code=200, url=URL, content=Path(context).read_bytes())
        answer.headers["Content-Type"] = "application/ld+json"
        session.cache.save_response(answer, session.cache.create_key(request))
    # By default only severity REQUIRED counts: the MUSTs of the specification.
    options = ("--offline", "--cache-path", cache, "--no-paging", "--verbose")
    command = ("rocrate-validator", "--no-interactive", "validate", *options, crate)
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
