"""Write the configuration of this run beside the numbers that it led to, as YAML that ``--configfile`` takes."""

from pathlib import Path

import yaml

from shape_of_learning.files import atomic_write
from shape_of_learning.job import job

if __name__ == "__main__":
    with job(snakemake.log[0]), atomic_write(Path(snakemake.output[0])) as partial:
        whole = yaml.safe_dump(dict(snakemake.params.settings), sort_keys=False)
        partial.write_text(whole, encoding="utf-8")
