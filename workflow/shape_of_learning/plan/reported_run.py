"""Which configuration a report is of, where the command line does not say it: that of the shown run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shape_of_learning.errors import InputError
from shape_of_learning.plan.merging import results_folder
from shape_of_learning.storage.yaml_file import read_yaml

PROTOCOL = Path("tables", "protocol.yaml")


def reported_configuration(given: Mapping[str, Any]) -> dict[str, Any]:
    """Complete what the user says by the protocol that the run has left among its results.

    Parameters
    ----------
    given : mapping
        The configuration of the command line. If it says more than which run, it is complete.

    Raises
    ------
    InputError
        If there is neither; it says what to pass.
    """
    if given.keys() - {"run"}:
        return dict(given)
    folder = Path(results_folder(given.get("run")))
    if (folder / PROTOCOL).is_file():
        return {**read_yaml(folder / PROTOCOL), **given}
    runs = [file.parts[1] for file in sorted(Path("results").glob(f"*/{PROTOCOL}"))]
    runs = [run for run in runs if run != "provenance"]  # it has a link to that of this folder
    named = f", or `--config run=NAME` with one of {', '.join(runs)}" if runs else ""
    raise InputError(
        f"{folder / PROTOCOL}, where a finished run keeps its configuration, is not there; give the report "
        f"the --configfile that the run had (config/config.yaml if it had none){named}"
    )
