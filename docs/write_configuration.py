"""Write the tables of the reference that come from the code, and the schemas for editors: `make reference`.

Types, defaults, bounds and words stand in plan/settings.py, plan/entries.py, tasks/entry.py, training/recipe.py and
checkpoints/verdict.py; for a paper's sections, they stand in its settings.py.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

import shape_of_learning
from shape_of_learning.checkpoints import atlas
from shape_of_learning.metrics.measure_entry import FAMILIES, WEIGHTS, Measure
from shape_of_learning.metrics.registry import MEASURES
from shape_of_learning.plan import entries, settings
from shape_of_learning.plan.papers import collect_sections, read_papers
from shape_of_learning.tasks import entry as task_entry

REFERENCE = Path(__file__).resolve().parent / "reference"
CONFIG = REFERENCE.parents[1] / "config"
PAGES = [REFERENCE / f"{name}.md" for name in ("configuration", "measures", "api")]
SECTIONS = collect_sections(read_papers(CONFIG.parent / "workflow/papers"))
SETTINGS = settings.add_sections(SECTIONS)
TABLE = re.compile(r"(<!-- table: (\w+) -->\n).*?(\n<!-- end -->)", re.DOTALL)


def read_descriptions(model: type[BaseModel]) -> dict[str, str]:
    """Read the descriptions of fields in the docstring of a model."""
    _, _, attributes = (model.__doc__ or "").partition("Attributes\n    ----------\n")
    descriptions: dict[str, str] = {}
    for names, words in re.findall(r"^    (\S.*)\n((?:        .*\n?)+)", attributes, re.MULTILINE):
        text = " ".join(words.split())
        descriptions |= dict.fromkeys(names.split(", "), text)
    return descriptions


def list_rows(model: type[BaseModel], prefix: str = "") -> list[tuple[str, str, str]]:
    """List key, meaning and default of all fields, and of the fields of sections."""
    rows = []
    descriptions = read_descriptions(model)
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            rows += list_rows(field.annotation, f"{prefix}{name}.")
        else:
            default = format_default(field.default)
            rows.append((f"`{prefix}{name}`", descriptions.get(name, ""), default))
    return rows


def format_default(default: Any) -> str:
    """Format a default value."""
    if default is PydanticUndefined:
        return "needed"
    if default in (None, [], {}):
        return "none"
    if isinstance(default, list):
        return ", ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in default)
    return str(default).lower() if isinstance(default, bool) else f"{default}"


def write_table(heads: list[str], lines: list[tuple[str, ...]]) -> str:
    """Write a Markdown table."""
    cells = [heads, ["---"] * len(heads), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def write_part(name: str) -> str:
    """Write a named part of a page: a table, or the table and the functions of a family of measures."""
    if name in (*FAMILIES, WEIGHTS):
        measures = [m.configure(key, {}) for key, m in MEASURES.items() if m.family == name]
        heads = ["measure", "settings and their defaults", "what it is", "do not", "95 % interval"]
        return f"{write_table(heads, list(map(describe_measure, measures)))}\n\n{write_functions(name)}"
    if name == "others":
        names = set(map(name_publicly, shape_of_learning.__all__))
        return write_directives(sorted(names - {*map(find_function, MEASURES)}))
    if name == "Settings":
        return write_table(["key", "meaning", "default"], list_rows(SETTINGS))
    descriptions = read_descriptions(find_model(name))
    for source in entries.SOURCES.values() if name == "Entry" else ():
        descriptions |= read_descriptions(source)
    rows = [(f"`{key}`", words) for key, words in descriptions.items()]
    return write_table(["key", "meaning"], rows)


def describe_measure(measure: Measure) -> tuple[str, ...]:
    """Return the cells of a measure: name, settings, description, warnings and interval."""
    description = measure.description or measure.label
    if measure.rows:
        description += "; " + ", ".join(
            f"`{key}: {option}`" for key, option in measure.rows.items()
        )
    warnings = []
    if measure.depends_on_n:
        warnings.append("compare batches of different sizes")
    if measure.near_duplicate_limit is not None:
        share = f"{100 * measure.near_duplicate_limit:g} %"
        warnings.append(f"trust it where more than {share} of the vectors have a near-duplicate")
    where_few = "unless few windows decide" if measure.moments else "yes"
    interval = where_few if measure.has_interval and measure.family != WEIGHTS else "none"
    settings = ", ".join(f"`{name}: {value}`" for name, value in measure.parameters.items())
    return f"`{measure.name}`", settings, description, "; ".join(warnings), interval


def find_function(name: str) -> str:
    """Return the name by which the function of a measure is imported."""
    module, _, attribute = MEASURES[name].function.partition(":")
    is_public = attribute in shape_of_learning.__all__
    return name_publicly(attribute) if is_public else f"{module}.{attribute}"


def name_publicly(name: str) -> str:
    """Return the name by which users import a function."""
    return f"{shape_of_learning.__name__}.{name}"


def write_functions(family: str) -> str:
    """Write the docstrings of the functions of a family that no earlier family has."""
    families = [*FAMILIES, WEIGHTS]
    places: dict[str, int] = {}
    for name, measure in MEASURES.items():
        place, function = families.index(measure.family), find_function(name)
        places[function] = min(place, places.get(function, place))
    return write_directives([name for name, place in places.items() if families[place] == family])


def write_directives(names: list[str]) -> str:
    """Write directives that Sphinx replaces by docstrings."""
    return "\n".join(["```{eval-rst}", *(f".. autofunction:: {name}" for name in names), "```"])


def make_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Make the JSON schema of a file, in which no key is required."""
    schema = model.model_json_schema()
    definitions = ((part, find_model(name)) for name, part in schema["$defs"].items())
    for definition, part_model in ((schema, model), *definitions):
        for name, words in read_descriptions(part_model).items():
            definition["properties"][name]["description"] = words
    schema.pop("required", None)
    return json.loads(json.dumps(schema).replace("\\\\Z", "$"))


def find_model(name: str) -> type[BaseModel]:
    """Find a model by its name."""
    places = [vars(module) for module in (settings, entries, task_entry)]
    places.append({section.__name__: section for section in SECTIONS.values()})
    return next(models[name] for models in places if name in models)


def make_files() -> dict[Path, str]:
    """Make the contents of all files that are written."""
    pages = {
        page: TABLE.sub(
            lambda match: f"{match[1]}{write_part(match[2])}{match[3]}", page.read_text("utf-8")
        )
        for page in PAGES
    }
    entry = make_schema(entries.Entry)
    for source in map(make_schema, entries.SOURCES.values()):
        entry["properties"] = source["properties"] | entry["properties"]
        entry["$defs"] |= source["$defs"]
    models = {"$defs": entry.pop("$defs"), "type": "object", "additionalProperties": entry}
    return {
        **pages,
        CONFIG / "schema.json": f"{json.dumps(make_schema(SETTINGS), indent=1)}\n",
        CONFIG / "models/schema.json": f"{json.dumps(models, indent=1)}\n",
        CONFIG.parent / "atlas/schema.json": f"{json.dumps(atlas.schema(), indent=1)}\n",
        CONFIG.parent / "atlas/atlas.json": atlas.join_tables(CONFIG.parent / "atlas"),
    }


if __name__ == "__main__":
    for file, content in make_files().items():
        if "--check" in sys.argv and (not file.exists() or file.read_text() != content):
            sys.exit(f"{file} is out of date: run `make reference`")
        file.write_text(content, encoding="utf-8")
