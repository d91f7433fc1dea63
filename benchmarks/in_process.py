"""What runs in a contender's process: ``python -m benchmarks.in_process module:function JSON``."""

import json
import sys
import time
from importlib import import_module

# What is done sooner is done once before, so that memory that is touched for the first time does not count.
SOON_SECONDS = 2.0


def main(name: str, arguments: str) -> None:
    """Prepare, do the work and print its seconds and values."""
    module, function = name.split(":")
    work = getattr(import_module(module), function)(**json.loads(arguments))
    for _ in range(2):
        start = time.perf_counter()
        values = work() or {}
        seconds = time.perf_counter() - start
        if seconds > SOON_SECONDS:
            break
    # What has a reason to leave out more than the preparations times itself.
    seconds = values.pop("seconds", seconds)
    print(json.dumps({"seconds": seconds, "values": values}))


if __name__ == "__main__":
    main(*sys.argv[1:])
