"""Write the tables of config/README.md and the schemas for editors: `make config/README.md`.

Types, defaults, bounds and words are those of shape_of_learning/plan, settings.py, texts.py and entries.py, of
training/recipe.py and of checkpoints/verdicts.py.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from shape_of_learning.metrics.registry import MEASURES
from shape_of_learning.plan import entries, settings, texts

CONFIG = Path(__file__).resolve().parents[1] / "config"
TABLE = re.compile(r"(<!-- table: (\w+) -->\n).*?(\n<!-- end -->)", re.DOTALL)


def descriptions(model: type[BaseModel]) -> dict[str, str]:
    """What the docstring of a model says of each field."""
    _, _, attributes = (model.__doc__ or "").partition("Attributes\n    ----------\n")
    found = {}
    for names, words in re.findall(r"^    (\S.*)\n((?:        .*\n?)+)", attributes, re.MULTILINE):
        text = " ".join(words.split())
        found |= dict.fromkeys(names.split(", "), text)
    return found


def rows(model: type[BaseModel], prefix: str = "") -> list[tuple[str, str, str]]:
    """Key, meaning and default of each field; of a section, those of its fields."""
    found = []
    said = descriptions(model)
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            found += rows(field.annotation, f"{prefix}{name}.")
        else:
            found.append((f"`{prefix}{name}`", said.get(name, ""), shown(field.default)))
    return found


def shown(default: Any) -> str:
    """Say a default."""
    if default is PydanticUndefined:
        return "needed"
    if default in (None, [], {}):
        return "none"
    if isinstance(default, list):
        return ", ".join(f"{each:g}" if isinstance(each, float) else str(each) for each in default)
    return str(default).lower() if isinstance(default, bool) else f"{default}"


def table(heads: list[str], lines: list[tuple[str, ...]]) -> str:
    """Write a Markdown table."""
    cells = [heads, ["---"] * len(heads), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def table_of(name: str) -> str:
    """A table of the page."""
    if name == "measures":
        lines = [
            (f"`{name}`", each.family, settings_of(each.parameters), each.description or each.label)
            for name, each in ((name, each.chosen(name, {})) for name, each in MEASURES.items())
        ]
        return table(["measure", "family", "settings and their defaults", "what it is"], lines)
    model = model_named(name)
    if name == "Settings":
        return table(["key", "meaning", "default"], rows(model))
    said = descriptions(model)
    return table(["key", "meaning"], [(f"`{name}`", words) for name, words in said.items()])


def settings_of(parameters: dict[str, Any]) -> str:
    """Say the settings of a measure and their defaults."""
    return ", ".join(f"`{name}: {value}`" for name, value in parameters.items())


def schema(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a file that need not say all."""
    written = model.model_json_schema()
    inner = ((each, model_named(name)) for name, each in written["$defs"].items())
    for definition, said in ((written, model), *inner):
        for name, words in descriptions(said).items():
            definition["properties"][name]["description"] = words
    written.pop("required", None)
    return json.loads(json.dumps(written).replace("\\\\Z", "$"))


def model_named(name: str) -> type[BaseModel]:
    """Find a model by its name."""
    return next(m for m in (getattr(x, name, None) for x in (settings, texts, entries)) if m)


def files() -> dict[Path, str]:
    """All that is written: file -> content."""
    page = (CONFIG / "README.md").read_text(encoding="utf-8")
    page = TABLE.sub(lambda found: f"{found[1]}{table_of(found[2])}{found[3]}", page)
    entry = schema(entries.Entry)
    of_models = {"$defs": entry.pop("$defs"), "type": "object", "additionalProperties": entry}
    return {
        CONFIG / "README.md": page,
        CONFIG / "schema.json": f"{json.dumps(schema(settings.Settings), indent=1)}\n",
        CONFIG / "models/schema.json": f"{json.dumps(of_models, indent=1)}\n",
    }


if __name__ == "__main__":
    for file, content in files().items():
        if "--check" in sys.argv and (not file.exists() or file.read_text() != content):
            sys.exit(f"{file} is out of date: run `make config/README.md`")
        file.write_text(content, encoding="utf-8")
