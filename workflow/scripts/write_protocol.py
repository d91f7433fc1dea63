"""Write the configuration of this run as YAML, beside the numbers that it led to."""

import argparse
import json
from pathlib import Path

import yaml

from shape_of_learning.script_arguments.running import run
from shape_of_learning.script_arguments.settings import with_plumbing
from shape_of_learning.storage.files import atomic_write


def main(settings: str, output: Path) -> None:
    """Turn JSON `settings`, with what no number depends on, into YAML that ``--configfile`` takes again."""
    whole = with_plumbing(json.loads(settings))
    with atomic_write(output) as partial:
        partial.write_text(yaml.safe_dump(whole, sort_keys=False), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True)
    parser.add_argument("--output", type=Path, required=True)
    run(main, parser)
