"""Check the files of ``--configfile`` before Snakemake reads them.

Snakemake would expand nested aliases without a limit, overflow on deep levels, and end with a traceback if a file is
missing. It reads the files before it runs the first line of the workflow, but after it starts the logger, so the logger
checks them.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path


def check_configfiles(arguments: Sequence[str]) -> None:
    """End with one sentence if a configuration file on the command line cannot be read."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--configfile", "--configfiles", nargs="+", type=Path, default=[])
    options, _ = parser.parse_known_args(arguments)
    if not options.configfile:
        return
    modules = {*sys.modules}
    try:
        refuse_unreadable(options.configfile)
    finally:  # the run may use the workflow and the library of another clone
        for name in {*sys.modules} - modules:
            if name.partition(".")[0] == "shape_of_learning":
                del sys.modules[name]


def refuse_unreadable(files: Sequence[Path]) -> None:
    """End with one sentence if a YAML or JSON file cannot be read."""
    from shape_of_learning.errors import InputError
    from shape_of_learning.files import read_yaml

    try:
        for file in files:
            read_yaml(file)
    except InputError as error:
        sentence = str(error).replace("is not valid YAML", "is not valid JSON or YAML")
        raise SystemExit(f"ERROR: {sentence}") from None
