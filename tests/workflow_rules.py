"""The rules of the workflow, as Snakemake itself reads them.

It is asked in a process of its own, since to read a workflow changes `sys.path` and more.
"""

import json
import re
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

SNAKEFILE = Path(__file__).parents[1] / "workflow" / "Snakefile"
SCRIPTS = SNAKEFILE.parent / "scripts"
SCRIPT = re.compile(r'python "\$SCRIPTS/(\w+\.py)" ')


@dataclass(frozen=True)
class Rule:
    """A rule that does something; one that only names a target is none."""

    name: str
    action: str  # "shell", or another of Snakemake's directives
    command: str
    environment: str  # path, relative to the folder of the rules

    @property
    def script(self) -> Path:
        """The file that its command runs."""
        return SCRIPTS / SCRIPT.search(self.command)[1]


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
    others = ("script", "notebook", "wrapper", "template_engine", "cwl", "run")
    return Rule(
        name=rule.name,
        action=next((each for each in others if getattr(rule, f"is_{each}")), "shell"),
        command=rule.shellcmd or "",
        environment=str(rule.conda_env or ""),
    )


if __name__ == "__main__":
    rules = {rule.name: asdict(rule) for rule in (*_read(), *_read(Path(sys.argv[1])))}
    print(json.dumps(list(rules.values())))
