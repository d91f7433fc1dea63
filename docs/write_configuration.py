"""Write the tables of the reference that come from the code, and the schemas for editors: `make reference`.

Types, defaults, bounds and words stand in plan/settings.py, plan/entries.py, tasks/entry.py, training/recipe.py and
checkpoints/verdicts.py; those of a paper's sections stand in its settings.py.
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
    if name in (*FAMILIES, WEIGHTS):
        of_family = [m.configure(key, {}) for key, m in MEASURES.items() if m.family == name]
        heads = ["measure", "settings and their defaults", "what it is", "do not", "95 % interval"]
        return f"{table(heads, [measure_row(each) for each in of_family])}\n\n{functions(name)}"
    if name == "others":
        others = shape_of_learning.__all__
        return documented(sorted({public(each) for each in others} - {*map(function, MEASURES)}))
    if name == "Settings":
        return table(["key", "meaning", "default"], rows(SETTINGS))
    said = descriptions(model_named(name))
    for source in entries.SOURCES.values() if name == "Entry" else ():
        said |= descriptions(source)
    return table(["key", "meaning"], [(f"`{name}`", words) for name, words in said.items()])


def measure_row(measure: Measure) -> tuple[str, ...]:
    """What the registry says of a measure."""
    what = measure.description or measure.label
    if measure.rows:
        what += "; " + ", ".join(f"`{key}: {chosen}`" for key, chosen in measure.rows.items())
    warnings = []
    if measure.depends_on_n:
        warnings.append("compare batches of different sizes")
    if measure.suspect_above is not None:
        share = f"{100 * measure.suspect_above:g} %"
        warnings.append(f"trust it where more than {share} of the vectors have a near-duplicate")
    where_few = "unless few windows decide" if measure.moments else "yes"
    interval = where_few if measure.has_interval and measure.family != WEIGHTS else "none"
    settings = settings_of(measure.parameters)
    return f"`{measure.name}`", settings, what, "; ".join(warnings), interval


def function(name: str) -> str:
    """Where the function of a measure is imported from."""
    where, _, attribute = MEASURES[name].function.partition(":")
    is_public = attribute in shape_of_learning.__all__
    return public(attribute) if is_public else f"{where}.{attribute}"


def public(name: str) -> str:
    """Where users import a function from."""
    return f"{shape_of_learning.__name__}.{name}"


def functions(family: str) -> str:
    """The docstrings of a family's functions that no earlier family has, each once."""
    families = [*FAMILIES, WEIGHTS]
    found: dict[str, int] = {}
    for name, measure in MEASURES.items():
        place = families.index(measure.family)
        found[function(name)] = min(place, found.get(function(name), place))
    return documented([each for each, place in found.items() if families[place] == family])


def documented(names: list[str]) -> str:
    """Directives that Sphinx replaces by docstrings."""
    return "\n".join(["```{eval-rst}", *(f".. autofunction:: {name}" for name in names), "```"])


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
    known = [vars(module) for module in (settings, entries, task_entry)]
    known.append({section.__name__: section for section in SECTIONS.values()})
    return next(models[name] for models in known if name in models)


def files() -> dict[Path, str]:
    """All that is written: file -> content."""
    pages = {
        page: TABLE.sub(
            lambda found: f"{found[1]}{table_of(found[2])}{found[3]}", page.read_text("utf-8")
        )
        for page in PAGES
    }
    entry = schema(entries.Entry)
    for source in map(schema, entries.SOURCES.values()):
        entry["properties"] = source["properties"] | entry["properties"]
        entry["$defs"] |= source["$defs"]
    of_models = {"$defs": entry.pop("$defs"), "type": "object", "additionalProperties": entry}
    return {
        **pages,
        CONFIG / "schema.json": f"{json.dumps(schema(SETTINGS), indent=1)}\n",
        CONFIG / "models/schema.json": f"{json.dumps(of_models, indent=1)}\n",
        CONFIG.parent / "atlas/schema.json": f"{json.dumps(atlas.schema(), indent=1)}\n",
    }


if __name__ == "__main__":
    for file, content in files().items():
        if "--check" in sys.argv and (not file.exists() or file.read_text() != content):
            sys.exit(f"{file} is out of date: run `make reference`")
        file.write_text(content, encoding="utf-8")
