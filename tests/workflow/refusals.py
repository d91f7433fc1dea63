"""What several of the bad inputs share: words of refusals, and files."""

NAME = "must be up to 100 letters, digits"
TWICE = "occurs twice; remove one"
NO_TEXT = "is no text; put it in quotes"
GROWS = "has more values than any configuration needs"

# `mine`, and it alone in figures.
WANTED = {"models": ["mine"], "figures": {"figure_2": [], "figure_3": []}}


def bomb() -> bytes:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    for before, name in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]")
    return "\n".join([*lines, "models: *i\n"]).encode()
