"""Copy the tables of a finished run to docs/data/, and describe all tables there as a Data Package.

    uv tool run --from frictionless==5.21.0 python docs/write_data.py demo results

The package (https://datapackage.org) gives the meaning and the type of each column. The meanings come from
docs/reference/tables.md. Without arguments, the script describes the tables that are there.
"""

import re
import shutil
import sys
from pathlib import Path

from frictionless import Detector, Package, Resource, describe

DOCS = Path(__file__).parent
DATA = DOCS / "data"
TABLES = DOCS / "reference/tables.md"
RUNS = {
    "demo": "the decoder SmolLM2-135M-Instruct (four-bit weights) and the encoder MiniLM-L6, which others trained, "
    "and a small decoder that this run trained, on 40 windows of Python's documentation: `make demo`",
    "showcase": "three decoders and three encoders of one size, trained by this run, on the first 2.6 MB of enwik8, at "
    "all saved steps: `make showcase`",
}
COPIED = {
    "estimates": "each value with its interval, by model, checkpoint, layer and measure",
    "changes": "differences of checkpoints with their intervals",
    "massive": "how many tokens are massive, and the share of the variance that they hold",
}
ALL_ROWS = 1_000_000  # all rows decide the type of a column


def main(*arguments: str) -> None:
    """Copy the tables of a run if one is given, then describe all tables."""
    if arguments:
        name, results = arguments
        (DATA / name).mkdir(parents=True, exist_ok=True)
        for table in COPIED:
            shutil.copy(Path(results) / f"tables/{table}.csv", DATA / name)
    package = Package(
        name="shape-of-learning",
        title="Anisotropy and intrinsic dimension of transformers, by layer and by training step",
        description=(DATA / "README.md").read_text(encoding="utf-8"),
        licenses=[
            {"name": "CC0-1.0", "path": "https://creativecommons.org/publicdomain/zero/1.0/"}
        ],
        resources=[describe_table(path) for path in sorted(DATA.glob("*/*.csv"))],
    )
    package.to_json(str(DATA / "datapackage.json"))


def describe_table(path: Path) -> Resource:
    """Describe a table: its run, and the type and the meaning of each column."""
    run, table = path.parent.name, path.stem
    place = path.relative_to(DATA).as_posix()
    resource = describe(
        place,
        basepath=str(DATA),
        type="resource",
        detector=Detector(sample_size=ALL_ROWS),
        stats=True,
    )
    assert isinstance(resource, Resource)
    resource.name = f"{run}-{table}"
    resource.description = f"{COPIED[table]}; of {RUNS[run]}"
    meanings = read_meanings(table)
    for field in resource.schema.fields:
        field.description = meanings[field.name]
    return resource


def read_meanings(table: str) -> dict[str, str]:
    """Read the meanings of a table's columns, and of the columns of most tables, from the reference."""
    sections = re.split(r"^## ", TABLES.read_text(encoding="utf-8"), flags=re.MULTILINE)
    meanings: dict[str, str] = {}
    for section in sections:
        if section.startswith(("Columns of most tables", f"{table}.csv", f"{table}/")):
            for names, words in re.findall(r"^\| (`[^|]*) \| (.*) \|$", section, re.MULTILINE):
                meanings |= dict.fromkeys(re.findall(r"`(\w+)`", names), words)
    return meanings


if __name__ == "__main__":
    main(*sys.argv[1:])
