"""A function's name is a verb or a formula, a value's a noun; a class name stands once in the library."""

import ast
import re
from collections import Counter
from collections.abc import Iterator

from plans import REPOSITORY

PREPOSITIONS = re.compile(
    "(after|among|as|at|before|beside|between|beyond|by|for|from|if|in|into|of|on|over|per|through|to|under|unless|"
    "until|with|without)"
)
PARTICIPLES = re.compile(
    "(built|chosen|done|drawn|found|given|held|kept|known|left|made|meant|said|seen|shown|sought|taken|thrown|told|"
    "written|[a-z]{3,}ed)"
)
NOUNS = {"feed", "hundred", "need", "seed", "speed"}
EMPTY_WORDS = {"besides", "each", "how", "others", "own"}
# Methods whose names Snakemake, rich and transformers decide, and an argument of TwoNN that users pass.
NAMES_OF_OTHERS = {"on_broken_pipe", "on_save", "on_step_end", "on_train_begin", "kept"}


def is_participle(word: str) -> bool:
    return PARTICIPLES.fullmatch(word) is not None and word not in NOUNS


def is_refused(name: str) -> bool:
    """Whether a name is a bare participle or an empty word, or begins with a preposition."""
    words = name.strip("_").split("_")
    is_empty = len(words) == 1 and (is_participle(words[0]) or words[0] in EMPTY_WORDS)
    return name not in NAMES_OF_OTHERS and (
        is_empty or PREPOSITIONS.fullmatch(words[0]) is not None
    )


def list_values(function: ast.FunctionDef) -> Iterator[str]:
    """The arguments and local variables of a function."""
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            yield node.arg
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def test_functions_are_verbs_values_are_nouns_and_class_names_differ():
    classes: Counter[str] = Counter()
    refused_names = set()
    for file in sorted((REPOSITORY / "workflow").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                classes[node.name] += 1
            if isinstance(node, ast.FunctionDef):
                refused_names |= {
                    f"{file.name} {node.name}: {name}"
                    for name in (node.name, *list_values(node))
                    if is_refused(name)
                }
    assert classes
    assert sorted(refused_names) == []
    assert [name for name, number in classes.items() if number > 1] == []


def test_the_check_knows_what_it_refuses():
    assert all(map(is_refused, ("found", "_of_text", "own", "with_main", "measured")))
    assert not any(map(is_refused, ("two_nn", "kept_rows", "seed", "shuffled_tokens", "form")))
