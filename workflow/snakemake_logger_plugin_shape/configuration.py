"""The files of ``--configfile`` before Snakemake reads them.

Snakemake would expand aliases for as long as it takes, overflow on deep levels and answer a missing file with a
traceback. It does so before the first line of the workflow runs, but after loggers began.
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
    modules, library = {*sys.modules}, str(Path(__file__).resolve().parents[1])
    sys.path.insert(0, library)
    try:
        refuse_unreadable(options.configfile)
    finally:  # the workflow may be that of another clone, with a library of its own
        sys.path.remove(library)
        for name in {*sys.modules} - modules:
            if name.partition(".")[0] == "shape_of_learning":
                del sys.modules[name]


def refuse_unreadable(files: Sequence[Path]) -> None:
    """End with one sentence if one of these YAML or JSON files cannot be read."""
    from shape_of_learning.errors import InputError
    from shape_of_learning.files import read_yaml

    try:
        for file in files:
            read_yaml(file)
    except InputError as error:
        sentence = str(error).replace("is not valid YAML", "is not valid JSON or YAML")
        raise SystemExit(f"ERROR: {sentence}") from None
