"""Make the labelled texts of a task: from the cleaned corpus, an archive or the Hub.

Where an archive can be had is no argument, but in the settings of the workflow: its hash says which it is.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from shape_of_learning.script_arguments.running import run
from shape_of_learning.script_arguments.settings import plumbing_settings
from shape_of_learning.tasks.examples import write_task
from shape_of_learning.tasks.sources import make_task


def main(
    task: str, entry: dict[str, Any], seed: int, text: Path | None, archive: Path, output: Path
) -> None:
    """Write the table of examples to `output`, and what it holds beside it as JSON."""
    urls = plumbing_settings().get("task_urls", {}).get(task)
    complete = entry if urls is None else {**entry, "urls": urls}
    write_task(output, make_task(task, complete, text=text, archive=archive, seed=seed))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", required=True, help="key in section tasks")
    parser.add_argument("--entry", type=json.loads, required=True, metavar="JSON", help="its entry")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--text", type=Path, help="cleaned corpus, for a builtin task")
    parser.add_argument("--archive", type=Path, required=True, help="written: what is downloaded")
    parser.add_argument("--output", type=Path, required=True, metavar="CSV")
    run(main, parser)
