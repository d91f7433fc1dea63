"""A function's name is a verb or a formula, a value's a noun; a class name stands once in the library."""

import ast
import re
from collections import Counter

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
# Snakemake, rich and transformers decide these names.
LIBRARY_METHODS = {"on_broken_pipe", "on_save", "on_step_end", "on_train_begin"}


def is_participle(word: str) -> bool:
    return PARTICIPLES.fullmatch(word) is not None and word not in NOUNS


def test_functions_are_no_participles_and_begin_with_no_preposition():
    classes = Counter()
    for file in sorted((REPOSITORY / "workflow").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                classes[node.name] += 1
            if isinstance(node, ast.FunctionDef) and node.name not in LIBRARY_METHODS:
                words = node.name.strip("_").split("_")
                assert not PREPOSITIONS.fullmatch(words[0]), f"{file}:{node.lineno} {node.name}"
                assert len(words) > 1 or not is_participle(words[0]), (
                    f"{file}:{node.lineno} {node.name}"
                )
    assert classes
    assert [name for name, number in classes.items() if number > 1] == []
