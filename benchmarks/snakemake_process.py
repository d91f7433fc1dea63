"""Run Snakemake and say what its own process took, without the jobs."""

import json
import resource
import sys

from snakemake.cli import main
from snakemake.executors import touch

if __name__ == "__main__":
    # `--touch` waits 0.1 s for each job, so that times differ where a file system keeps whole seconds.
    touch.Executor.SLEEPING_TIME = 0
    status = 0
    try:
        main()
    except SystemExit as end:
        status = end.code or 0
    own = resource.getrusage(resource.RUSAGE_SELF)
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss
    said = {"cpu_seconds": own.ru_utime + own.ru_stime, "peak_gb": own.ru_maxrss * unit / 1e9}
    print("\n" + json.dumps(said))
    sys.exit(status)
