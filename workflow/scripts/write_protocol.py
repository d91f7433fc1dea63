"""Write the configuration of this run as YAML, beside the numbers that it led to."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from shape_of_learning.files import atomic_write
from shape_of_learning.job import job


def main(settings: Mapping[str, Any], output: Path) -> None:
    """Write YAML that ``--configfile`` takes again."""
    with atomic_write(output) as partial:
        whole = yaml.safe_dump(dict(settings), sort_keys=False)
        partial.write_text(whole, encoding="utf-8")


if __name__ == "__main__":
    with job(snakemake.log[0]):
        main(snakemake.params.settings, Path(snakemake.output[0]))
