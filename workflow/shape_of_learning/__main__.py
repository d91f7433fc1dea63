"""The command ``shape-of-learning``, also as ``python -m shape_of_learning``."""

import sys


def main() -> None:
    """Run the command; exit with the name of the package if a package is missing."""
    try:
        from shape_of_learning.command_line import app
    except ModuleNotFoundError as error:
        if sys.argv[1:2] == ["where"] and len(sys.argv) == 4:
            sys.exit(print_where(*sys.argv[2:]))
        sys.exit(
            f"ERROR: the package `{error.name}` is missing; install the packages of the command: "
            "`pip install '.[models]'` in a clone of the repository"
        )
    app(prog_name="shape-of-learning")


def print_where(model: str, step: str) -> int:
    """Run ``where`` without the packages of the other commands, and return its exit code."""
    from shape_of_learning.checkpoints import find
    from shape_of_learning.errors import InputError

    try:
        checkpoint = find(model, int(step))
    except InputError as error:
        print(f"ERROR: {error}", file=sys.stderr)
        return 2
    except ValueError:
        print(f"ERROR: the step `{step}` is not a whole number; correct it", file=sys.stderr)
        return 2
    print(checkpoint)
    return checkpoint.exit_code


if __name__ == "__main__":
    main()
