"""Print all rules as the Python that Snakemake makes of them, so that mypy can read them.

Names that a run defines in one file and reads in the next are in one module here. What Snakemake gives to rules has
no types.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from snakemake.parser import parse
from snakemake.sourcecache import LocalSourceFile

WORKFLOW = Path(__file__).parents[2] / "workflow"
GIVEN = "checkpoints config directory expand logger output report rules script subpath temp unpack workflow"


def read_source(file: LocalSourceFile, mode: str = "r") -> Any:
    """Open a file of rules as Snakemake's cache of sources does."""
    return Path(file.get_path_or_uri(secret_free=True)).open(mode)


def main() -> None:
    """Print the rules of the stages in the order in which they are included, then those of the papers."""
    print("from pathlib import PosixPath\nfrom typing import Any\n")
    print(*(f"{name}: Any" for name in GIVEN.split()), sep="\n")
    included = [
        WORKFLOW / line.split('"')[1]
        for line in (WORKFLOW / "Snakefile").read_text().splitlines()
        if line.startswith('include: "')
    ]
    workflow: Any = SimpleNamespace(sourcecache=SimpleNamespace(open=read_source), modifier=None)
    count = 0
    for file in [*included, *sorted(WORKFLOW.glob("papers/*/rules.smk"))]:
        compiled, count = parse(LocalSourceFile(file), workflow, {}, rulecount=count)
        print(f"# {file.relative_to(WORKFLOW)}\n{compiled}")


if __name__ == "__main__":
    main()
