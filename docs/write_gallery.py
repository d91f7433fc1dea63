"""Write docs/gallery.md and docs/gallery/: every figure at full size, on made-up numbers; `make gallery`."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import PIL.Image
from synthetic_tables import estimates, further, judged, steps_of, verdicts

from shape_of_learning.claims.claim import Claim
from shape_of_learning.figures.captions import as_markup
from shape_of_learning.figures.inputs import DrawnMeasure, DrawnModel, FigureInputs
from shape_of_learning.figures.output import Drawing
from shape_of_learning.figures.specification_curve import specification_curve
from shape_of_learning.figures.style import theme
from shape_of_learning.metrics.measure_entry import Measure
from shape_of_learning.plan.choice_settings import read_choice_settings
from shape_of_learning.plan.configuration import read_configuration, with_defaults
from shape_of_learning.plan.figures import drawn_measures, drawn_models, opening_words, options_of
from shape_of_learning.plan.functions import named_function
from shape_of_learning.plan.measures import chosen_measures
from shape_of_learning.plan.models import Model
from shape_of_learning.plan.paper_models import with_chosen_measures
from shape_of_learning.plan.papers import FigureSpecification, read_papers
from shape_of_learning.storage.yaml_file import read_yaml

DOCS = Path(__file__).parent
CONFIG = DOCS.parent / "config"
FILES = {
    "shape_of_learning": "config",
    "linear": "linear",
    "inherent": "inherent",
    "finetuning": "finetuning",
}
SPECIFIED = "dimension_rises_then_falls"  # the claim whose specification curve is shown
DPI, COLOURS = 120, 128  # of the images, so that all are small
PAGE = """\
# Gallery

Every figure at the size of the papers, and of the specification curves one, to see how it reads with all
models, steps and layers. **The numbers are made up** (`docs/synthetic_tables.py`): smooth curves with noise,
some values undefined, some points beyond the conditions of TwoNN, some checkpoints left out or hollow. They
say nothing of any model; [those of the showcase](showcase.md) do. `make gallery` draws them
with the functions, models and captions of the workflow, coarser than a run does.
"""


def main() -> None:
    """Draw the figures of all papers, and write the page that shows them."""
    papers, page = read_papers(DOCS.parent / "workflow/papers"), [PAGE]
    for paper in papers:
        name = FILES[paper.name]
        given = {} if name == "config" else read_yaml(CONFIG / f"{name}.yaml")
        settings = with_defaults(given, CONFIG / "config.yaml")
        configuration = read_configuration(
            settings, CONFIG / "models", papers=papers, has_hub_token=True
        )
        specifications = with_chosen_measures(paper.figures, settings)
        page.append(f"## {paper.title}\n")
        for target in paper.figures:
            models = [configuration.models[each] for each in configuration.figures[target]]
            measures = [configuration.measures[each] for each in specifications[target].estimators]
            page.append(draw(target, specifications[target], models, measures, settings))
        if SPECIFIED in paper.claims:
            page.append(draw_specifications(paper.claims[SPECIFIED], settings))
    (DOCS / "gallery.md").write_text("\n".join(page), encoding="utf-8")


def draw(
    target: str,
    figure: FigureSpecification,
    models: Sequence[Model],
    measures: Sequence[Measure],
    settings: Mapping[str, Any],
) -> str:
    """Draw one figure; the Markdown that shows it."""
    last = not figure.needs_training_steps
    tables = {kind: further(kind, models, measures) for kind in figure.reads}
    tables |= {"estimates": estimates(models, measures, last)} if measures else {}
    tables |= {} if last else {"verdicts": verdicts(models)}
    revisions = {model.name: f"step{steps_of(model)[-1][0]}" for model in models if last}
    inputs = FigureInputs(
        [DrawnModel(**each) for each in drawn_models(models, revisions)],
        [DrawnMeasure(**each) for each in drawn_measures(measures)],
        opening_words(figure, models, measures, settings),
        tables,
    )
    named = named_function(figure.draw, figure.folder)
    function = getattr(import_module(named.module), named.name)
    with theme():
        options = options_of(figure, [model.name for model in models], settings)
        return shown(target, function(inputs, **options))


def draw_specifications(claim: Claim, settings: Mapping[str, Any]) -> str:
    """Draw a claim under the choices of the configuration; the Markdown that shows it."""
    measures = chosen_measures(settings["measurement"], claim.estimators, "both")
    of = read_choice_settings(settings).of_claim(claim, measures)
    protocol = {
        **settings["sampling"],
        "source": settings["corpus"]["source"],
        "checkpoints": settings["choices"]["checkpoints"],
    }
    with theme():
        drawing = specification_curve(of, judged(of), protocol)
        return shown(f"specification_{claim.name}", drawing)


def shown(target: str, drawing: Drawing) -> str:
    """Write the image of a figure; the Markdown that shows it with its caption."""
    content = BytesIO()
    drawing.figure.savefig(content, format="png", dpi=DPI)
    image = PIL.Image.open(content).convert("RGB").quantize(COLOURS)
    image.save(DOCS / "gallery" / f"{target}.png", optimize=True)
    caption = as_markup(drawing.caption)
    first_sentence, _, _ = caption.partition(". ")
    return f"![{first_sentence}](gallery/{target}.png)\n\n**{as_markup(target)}.** {caption}\n"


if __name__ == "__main__":
    main()
