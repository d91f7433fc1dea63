"""The rules of the workflow, as Snakemake itself reads them.

It is asked in a process of its own, since to read a workflow changes `sys.path` and more.
"""

import json
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

SNAKEFILE = Path(__file__).parents[1] / "workflow" / "Snakefile"
SCRIPTS = SNAKEFILE.parent / "scripts"


@dataclass(frozen=True)
class Rule:
    """A rule that does something; one that only names a target is none."""

    name: str
    script_name: str  # empty where it has another directive than `script`
    environment: str  # path, relative to the folder of the rules

    @property
    def script(self) -> Path:
        """The file that it runs."""
        return SCRIPTS / self.script_name


def workflow_rules() -> list[Rule]:
    """Ask Snakemake, with the configuration of the paper, with and without a dump."""
    with tempfile.TemporaryDirectory() as folder:
        without = Path(folder, "without.yaml")
        without.write_text("embeddings: {dump: false}")
        said = subprocess.run(
            [sys.executable, __file__, without],
            cwd=folder,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
    return [Rule(**rule) for rule in json.loads(said)]


def _read(*more: Path) -> list[Rule]:
    from snakemake.api import SnakemakeApi
    from snakemake.settings.enums import Quietness
    from snakemake.settings.types import ConfigSettings, OutputSettings, ResourceSettings

    with SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
        workflow = api.workflow(
            resource_settings=ResourceSettings(),
            config_settings=ConfigSettings(configfiles=list(more)),
            snakefile=SNAKEFILE,
        )
        return [_rule(rule) for rule in workflow._workflow.rules if not rule.norun]


def _rule(rule) -> Rule:
    return Rule(
        name=rule.name,
        script_name=Path(str(rule.script or "")).name,
        environment=str(rule.conda_env or ""),
    )


if __name__ == "__main__":
    rules = {rule.name: asdict(rule) for rule in (*_read(), *_read(Path(sys.argv[1])))}
    print(json.dumps(list(rules.values())))
