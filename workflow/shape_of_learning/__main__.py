"""The command ``shape-of-learning``, also as ``python -m shape_of_learning``."""

import sys


def main() -> None:
    """Run the command, or say what is missing of what it needs."""
    try:
        from shape_of_learning.command_line import app
    except ModuleNotFoundError as error:
        sys.exit(
            f"ERROR: the package `{error.name}` is missing; install what the command needs: "
            "`pip install '.[models]'` in a clone of the repository"
        )
    app(prog_name="shape-of-learning")


if __name__ == "__main__":
    main()
