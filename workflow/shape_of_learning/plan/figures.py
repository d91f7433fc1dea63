"""What the job of a figure is told: models, measures, options, and how its caption begins."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shape_of_learning.errors import InputError
from shape_of_learning.metrics.measure_entry import Measure
from shape_of_learning.plan.model import Model
from shape_of_learning.plan.paper_models import by_family_and_size
from shape_of_learning.plan.papers import CAPTION_SECTIONS, FigureSpecification

KEPT_WORDS = ("name", "label", "axis", "interval", "suspect_above")
LEFT_OUT = {"special_tokens": "special tokens", "first_token": "the first token of each window"}


def drawn_models(models: Iterable[Model], revisions: Mapping[str, str]) -> list[dict[str, Any]]:
    """Describe models in the order in which they are drawn, with the one checkpoint that is, if it is one."""
    return [
        {
            **{"name": model.name, "label": model.label, "family": model.family},
            **{"role": model.shape.role, "revision": revisions.get(model.name)},
        }
        for model in by_family_and_size(models)
    ]


def drawn_measures(measures: Iterable[Measure]) -> list[dict[str, Any]]:
    """Describe measures in the order of panels; axes of dimensions need not begin at 0."""
    return [
        {
            **{key: getattr(measure, key) for key in KEPT_WORDS},
            "from_zero": not (measure.depends_on_n and measure.family == "dimension"),
            "parameters": dict(measure.arguments),
        }
        for measure in measures
    ]


def options_of(
    figure: FigureSpecification, models: Sequence[str], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Arguments of the function: of its paper, of the configuration, and what is published of `models`."""
    options: dict[str, Any] = dict(figure.options)
    options |= {key: settings["figures"][key] for key in figure.settings}
    if figure.published and isinstance(figure.published, list):
        options["published"] = [row for row in figure.published if row["model"] in models]
    return options


def opening_words(
    figure: FigureSpecification,
    models: Sequence[Model],
    measures: Sequence[Measure],
    settings: Mapping[str, Any],
    on_checkpoints: str = "",
) -> str:
    """Say what a caption can before the tables are read.

    Parameters
    ----------
    on_checkpoints : str
        Of a figure of last checkpoints, which of them are not the last.

    Raises
    ------
    InputError
        If the caption names a setting that the configuration does not have.
    """
    labels = {"measures": _listed(measures), "models": _listed(models)}
    try:
        words = figure.caption.format(**labels, **{key: settings[key] for key in CAPTION_SECTIONS})
    except KeyError as error:
        raise InputError(
            f"{figure.folder / 'paper.yaml'}: a caption names the key {error}, which the configuration does "
            "not have; correct it"
        ) from None
    details = "; ".join(measure.description for measure in measures if measure.description)
    details = f"{details[:1].upper()}{details[1:]}." if details else ""
    if figure.needs_training_steps:  # many models may have the same note
        on_checkpoints = " ".join(filter(None, dict.fromkeys(model.note for model in models)))
    return " ".join(
        filter(None, [words, details, on_checkpoints, *_protocol(figure, measures, settings)])
    )


def _listed(named: Sequence[Model] | Sequence[Measure]) -> str:
    """Labels in a row, which may have commas themselves."""
    labels = [each.label for each in named]
    return ("; " if any("," in label for label in labels) else ", ").join(labels)


def _protocol(
    figure: FigureSpecification, measures: Sequence[Measure], settings: Mapping[str, Any]
) -> list[str]:
    """Sentences on the protocol, which the tables do not tell."""
    if figure.reads and (not measures or all(measure.family == "weights" for measure in measures)):
        return []  # of whatever samples its tables are, or of no tokens at all
    sampling, measurement = settings["sampling"], settings["measurement"]
    sentences = [
        f"{sampling['windows']} windows of {sampling['window_characters']} characters of "
        f"{settings['corpus']['source']}."
    ]
    if not measures:
        return sentences  # nothing is drawn but the loss
    last_layer = settings["forward"]["last_layer"].replace("both", "after_final_norm")
    norm = last_layer.replace("_", " ").replace("final", "the model's final")
    sentences.append(f"The last layer is taken {norm}, where it has one.")
    left_out = [words for key, words in LEFT_OUT.items() if measurement[key] == "drop"]
    if left_out:
        sentences.append(f"Left out of the tokens: {' and '.join(left_out)}.")
    elif measurement["token_types"] == "all":
        sentences.append("All tokens are measured, special ones and first ones, too.")
    if measurement["token_types"] == "one":
        sentences.append("Of each token type one vector is measured, drawn at random.")
    return sentences
