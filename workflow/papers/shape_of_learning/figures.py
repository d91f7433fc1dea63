"""The figures of "The Shape of Learning" and its table 1, whose content paper.yaml describes."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator, ScalarFormatter

from shape_of_learning.figures import captions, marks, scales
from shape_of_learning.figures.controls import draw_line_panels
from shape_of_learning.figures.inputs import FigureInputs
from shape_of_learning.figures.output import Drawing, make_drawing
from shape_of_learning.figures.style import COLOURS, INK, TEXT_WIDTH, LineStyle
from shape_of_learning.figures.tables import CHECKPOINT, add_labels, require_rows, select_layers
from shape_of_learning.words import enumerate_items

ROLES = {"decoder": "Decoders", "encoder": "Encoders"}
LOSS_TITLES = {"decoder": "Decoders: next token", "encoder": "Encoders: masked tokens"}
LOSS_COLUMNS = [
    "model",
    "label",
    "revision",
    "step",
    "tokens",
    "verdict",
    "loss",
    "perplexity",
    "predicted_tokens",
    "vocabulary",
]
# Section 2.3 of the paper compares these measures.
PANELS = {
    "anisotropy_uncentered": "Anisotropy, not centred",
    "average_cosine": "Average cosine, not centred",
    "anisotropy": "Anisotropy, centred",
    "average_cosine_centered": "Average cosine, centred",
}
EDGE = 0.03  # the room on an axis below share 0 and above share 1
SMALL = 0.02  # a share of the largest value in any panel
FREQUENT = 0.1  # a share of the massive tokens; a rarer string does not characterise them
# The words and the look of each line of shares of the variance, and of anisotropy.
SHARES = {
    "largest_token_share": (
        "token with the largest share",
        LineStyle(COLOURS[1], (0, (4, 1.2)), "s"),
    ),
    "massive_share": ("all massive tokens", LineStyle(COLOURS[2], "-", "^")),
    # Black dots stay visible on the line of massive tokens, whose shares are often the same.
    "largest_coordinate_share": (
        "coordinate with the largest share",
        LineStyle(INK, (0, (1, 1.5)), "D"),
    ),
}
ANISOTROPIES = {
    "anisotropy": ("all tokens", LineStyle(INK, "-", "o")),
    "anisotropy_without_massive_tokens": (
        "without massive tokens",
        LineStyle(COLOURS[0], (0, (4, 1, 1, 1)), "v"),
    ),
}
# The title of each panel -> the number of its block in a model of L blocks.
PLACES = {
    "First block": lambda L: 1,
    "Middle block": lambda L: (L + 1) // 2,
    "Last block": lambda L: L,
}


def profiles_by_role(inputs: FigureInputs) -> Drawing:
    """Draw figure 1: a measure by relative depth, decoders beside encoders, one checkpoint of each model."""
    table = select_layers(inputs)
    tables_by_role = _split_by_role(table)
    titled_tables = [(ROLES[role], rows) for role, rows in tables_by_role.items()]
    notes = captions.format_footnote(inputs, table)
    figure, (panels,), lines = marks.make_model_panels(
        inputs,
        "depth",
        [titled_tables],
        *notes,
        labels=_count_models(tables_by_role),
        width=TEXT_WIDTH,
        sharey=True,
    )
    panels[0].set_ylabel(inputs.measures[0].label)
    for axes in panels:
        scales.begin_at_zero(axes, inputs.measures)
    marks.name_lines(panels, lines)
    return make_drawing(inputs, figure, table, captions.describe_estimates(table))


def measures_by_depth(inputs: FigureInputs) -> Drawing:
    """Draw measures of one quantity by relative depth, each in its own panel, at the last checkpoints."""
    table = select_layers(inputs)
    titled_tables = [
        (measure.label, table[table["estimator"] == measure.name]) for measure in inputs.measures
    ]
    notes = captions.format_footnote(inputs, table)
    notes.append(captions.SCALES_DIFFER if len(titled_tables) > 1 else "")
    # Four panels beside each other would have no room for the labels of their x axes.
    rows = [titled_tables[:2], titled_tables[2:]] if len(titled_tables) == 4 else [titled_tables]
    figure, grid, lines = marks.make_model_panels(
        inputs, "depth", rows, *notes, sharex=len(rows) > 1
    )
    for axes in grid[:, 0]:
        axes.set_ylabel(inputs.measures[0].axis)
    for axes, measure in zip(grid.flat, inputs.measures, strict=True):
        scales.begin_at_zero(axes, [measure])
    marks.name_lines(grid[0, -1:], lines)
    return make_drawing(inputs, figure, table, captions.describe_estimates(table))


def _split_by_role(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {role: table[table["role"] == role] for role in ROLES if role in set(table["role"])}


def _count_models(tables: Mapping[str, pd.DataFrame]) -> int:
    return max(rows["model"].nunique() for rows in tables.values())


def anisotropy_measures(inputs: FigureInputs) -> Drawing:
    """Draw anisotropy beside average cosine, centred and not, one checkpoint of each model (section 2.3)."""
    table = select_layers(inputs)
    tables = {estimator: table[table["estimator"] == estimator] for estimator in PANELS}
    titled_tables = [(title, tables[estimator]) for estimator, title in PANELS.items()]
    rows = [titled_tables[:2], titled_tables[2:]]
    notes = captions.format_footnote(inputs, table)
    figure, grid, lines = marks.make_model_panels(
        inputs, "depth", rows, *notes, sharex=True, sharey=True
    )
    quantities = {measure.name: measure.axis for measure in inputs.measures}
    for axes, estimator in zip(grid.flat, PANELS, strict=True):
        axes.set_ylabel(quantities[estimator])
        _name_small_values(axes, tables[estimator], table)
    for axes in grid.flat:
        scales.begin_at_zero(axes, inputs.measures)
    marks.name_lines(grid[0, 1:], lines)
    return make_drawing(inputs, figure, table, captions.describe_estimates(table))


def _name_small_values(axes: Axes, rows: pd.DataFrame, table: pd.DataFrame) -> None:
    """Write the range of the values into a panel if they look like zero on the shared y axis."""
    lowest = rows["value"].min()
    highest = rows["value"].max()
    if max(-lowest, highest) < SMALL * table["value"].abs().max():
        words = f"all between {lowest:.2g} and {highest:.2g}"
        axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", color=INK)


def dimension_by_scale(inputs: FigureInputs, parameter: str) -> Drawing:
    """Draw measures of the first, middle and last block that differ in one parameter, a line per model.

    Parameters
    ----------
    inputs : FigureInputs
        The measures must be sorted by `parameter`.
    parameter : str
        The x axis: an argument of the function of the measures, which doubles from one measure to the next.

    Returns
    -------
    Drawing
        The table of the drawing has a column for the parameter, and ``block``, the title of the panel.
    """
    table = _select_blocks(select_layers(inputs))
    values = {measure.name: int(measure.parameters[parameter]) for measure in inputs.measures}
    place = int(table.columns.get_loc("layer"))
    table.insert(place, parameter, table["estimator"].map(values))
    titled_tables = list(table.groupby("block", sort=False))
    notes = captions.format_footnote(inputs, table)
    notes.insert(
        0, "Gride compares the distances to the n1-th and to the 2 n1-th nearest neighbour."
    )
    figure, (panels,), lines = marks.make_model_panels(
        inputs, parameter, [titled_tables], *notes, frame=0.4, sharey=True
    )
    for axes in panels:
        axes.set_xlabel("Nearer neighbour (n1)")
        axes.set_xscale("log", base=2)
        axes.set_xticks(sorted(values.values()))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(ScalarFormatter())
    panels[0].set_ylabel(f"{inputs.measures[0].axis}\nby Gride")
    for axes in panels:
        scales.begin_at_zero(axes, inputs.measures)
    marks.name_lines(panels[-1:], lines)
    return make_drawing(inputs, figure, table, captions.describe_estimates(table))


def _select_blocks(table: pd.DataFrame) -> pd.DataFrame:
    """Select the block of each panel; a model with only one block is in every panel."""
    last = table.groupby("model")["layer"].transform("max")
    is_block = {block: table["layer"] == last.map(choose) for block, choose in PLACES.items()}
    block_tables = [table[rows].assign(block=block) for block, rows in is_block.items()]
    return pd.concat(block_tables, ignore_index=True)


def massive_tokens(inputs: FigureInputs) -> Drawing:
    """Draw the shares of the variance in massive tokens and in a coordinate, and anisotropy without these tokens."""
    layer_rows = select_layers(inputs)
    massive_rows = inputs.tables["massive"].merge(
        layer_rows[CHECKPOINT].drop_duplicates(), on=CHECKPOINT
    )
    shares = massive_rows.melt([*CHECKPOINT, "step", "tokens", "layer"], [*SHARES], "quantity")
    shares = add_labels(shares, inputs).assign(row="share")
    shares = shares.assign(hollow=False, marked=False, bare=False)
    drawn_rows = pd.concat(
        [shares, layer_rows.assign(row="anisotropy", quantity=layer_rows["estimator"])]
    )
    columns = [
        "model",
        "label",
        "revision",
        "step",
        "layer",
        "quantity",
        "value",
        "low",
        "high",
        "batch_sd",
    ]
    kinds = SHARES | ANISOTROPIES
    words = {name: word for name, (word, _) in kinds.items()}
    looks = {name: look for name, (_, look) in kinds.items()}
    rows = {"share": "Share of the variance", "anisotropy": "Anisotropy"}
    lines = drawn_rows.assign(kind=drawn_rows["quantity"])
    notes = captions.format_footnote(inputs, layer_rows)
    notes.append("Massive tokens are longer than five times the median of their layer.")
    notes += _describe_massive_tokens(inputs, massive_rows)
    figure, grid = draw_line_panels(inputs, lines, "layer", rows, (looks, words), *notes)
    for axes in grid.flat:
        axes.set_ylim(-EDGE, 1 + EDGE)  # else half of a line at 0 would be hidden
    table = drawn_rows[columns].reset_index(drop=True)
    return make_drawing(inputs, figure, table, captions.describe_estimates(layer_rows))


def _describe_massive_tokens(inputs: FigureInputs, massive_rows: pd.DataFrame) -> list[str]:
    """Count the massive tokens of each model, and describe them in the layer of their largest share of the variance."""
    sentences = []
    for model in inputs.models:
        model_rows = massive_rows[massive_rows["model"] == model.name]
        number, n = model_rows[["massive_in_any_layer", "n"]].max()
        if not number:
            sentences.append(f"{model.label} has no massive token.")
            continue
        portion = f"{number:,} of {n:,} tokens ({100 * number / n:.2g} %)"
        sentences.append(
            f"{model.label}: {portion} {'is' if number == 1 else 'are'} massive in some layer, and left out of every "
            "layer."
        )
        model_rows = model_rows[model_rows["massive"] > 0]
        if model_rows.empty:  # the tokens are massive only before the final norm
            continue
        top_row = model_rows.loc[model_rows["massive_share"].idxmax()]
        share = f"{100 * top_row['massive_share']:.3g} % of the variance"
        description = _describe_most_frequent_tokens(top_row)
        verb = "holds" if top_row["massive"] == 1 else "hold"
        sentences.append(
            f"In layer {top_row['layer']}, {top_row['massive']:,} {verb} {share}; {description}."
        )
    return sentences


def _describe_most_frequent_tokens(row: pd.Series) -> str:
    """Count the massive tokens at the beginning of a window, and name the most frequent string if it is frequent."""
    pairs = re.findall(r"(\d+) \((\d+)\)", row["positions"])
    counts = {int(position): int(count) for position, count in pairs}
    position = 0 if 0 in counts else next(iter(counts))
    where = f"at position {position:,}" if position else "the first token of a window"
    _, end = json.JSONDecoder().raw_decode(row["tokens_found"])
    text = row["tokens_found"][:end]
    text_count = row["tokens_found"][end:].split(")")[0].strip(" (")
    number = counts[position]
    massive = row["massive"]
    clauses = [f"{number:,} of {massive:,} {'is' if number == 1 else 'are'} {where}"]
    if int(text_count) >= FREQUENT * massive:
        clauses.append(f"their most frequent string is {text} ({text_count})")
    return enumerate_items(clauses)


def loss_by_step(inputs: FigureInputs) -> Drawing:
    """Draw the cross-entropy by training step, decoders beside encoders.

    The table also has ``perplexity``, the exponential of the loss. A line has a gap where the loss is infinite.
    """
    points = _select_losses(inputs)
    progress = scales.choose_progress_column(points)
    tables_by_role = _split_by_role(points)
    titled_tables = [(LOSS_TITLES[role], rows) for role, rows in tables_by_role.items()]
    notes = [*captions.describe_omissions(inputs), scales.describe_progress(points, progress)]
    token_counts = captions.format_counts(points["predicted_tokens"])
    notes.append(captions.describe_sample(inputs, f"{token_counts} tokens are predicted"))
    figure, (panels,), lines = marks.make_model_panels(
        inputs, progress, [titled_tables], *notes, frame=0.4, labels=_count_models(tables_by_role)
    )
    for axes in panels:
        axes.set_ylabel(marks.X_LABELS["loss"])
    marks.name_lines(panels, lines)
    sentences = [
        *_describe_token_counts(points),
        "Gaps: not measured, or infinite." if points["value"].isna().any() else "",
    ]
    return make_drawing(inputs, figure, points[LOSS_COLUMNS], *sentences)


def _select_losses(inputs: FigureInputs) -> pd.DataFrame:
    """Select the shown checkpoints, and add the columns ``role``, ``hollow``, and ``value``, the finite loss."""
    roles = {model.name: model.role for model in inputs.models}
    rows = inputs.tables["verdicts"]
    rows = rows[rows["model"].isin(roles) & (rows["shown"] != "no")]
    with np.errstate(over="ignore"):  # a perplexity beyond 1e308 is infinite
        perplexity = np.exp(rows["loss"])
    rows = rows.assign(
        perplexity=perplexity,
        role=rows["model"].map(roles),
        hollow=rows["shown"] == "hollow",
        value=rows["loss"].where(np.isfinite(rows["loss"])),
    )
    return add_labels(require_rows(rows, inputs, "the verdicts leave out every checkpoint"), inputs)


def _describe_token_counts(points: pd.DataFrame) -> list[str]:
    """State the number of predicted tokens, and the sizes of the vocabularies if they differ."""
    measured_points = points[points["loss"].notna()]
    sentences = [f"Mean over {captions.format_counts(measured_points['predicted_tokens'])} tokens."]
    sizes = sorted(measured_points["vocabulary"].dropna().unique())
    if len(sizes) > 1:
        entries = enumerate_items([f"{size:,}" for size in sizes])
        explanation = "Losses of models with different vocabularies do not compare"
        sentences.append(f"{explanation} ({entries} entries).")
    return sentences


def _format_scientific(number: float) -> str:
    mantissa, exponent = f"{number:.3e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"


# The rows of Table 1: the head of each row, and the function that formats its values.
RECIPE: dict[str, tuple[str, Callable]] = {
    "layers": ("Layers", "{:,}".format),
    "hidden_size": ("Hidden size", "{:,}".format),
    "attention_heads": ("Attention heads", "{:,}".format),
    "activation": ("Activation", captions.escape_markup),
    "vocabulary": ("Vocabulary", "{:,}".format),
    "context": ("Context length", "{:,}".format),
    "position_embedding": ("Position embedding", captions.escape_markup),
    "tied_embeddings": ("Tied embeddings", lambda is_tied: "yes" if is_tied else "no"),
    "batch_size": ("Global batch size (sequences)", "{:,}".format),
    "learning_rate": ("Learning rate", _format_scientific),
    "minimum_learning_rate": ("Minimum learning rate", _format_scientific),
    "training_tokens": ("Training tokens", captions.format_short),
    "warmup_tokens": ("Warm-up tokens", captions.format_short),
}


def training_recipes(entries: Sequence[Mapping[str, Any]]) -> tuple[pd.DataFrame, str]:
    """Write table 1: the training of each model; in Markdown with a column per model, as in the paper.

    If the paper states another value, which the entry of the model lists under ``published``, this value follows ours.
    """
    table = pd.DataFrame(entries, columns=["model", *RECIPE]).convert_dtypes()
    table["published"] = [
        "; ".join(f"{key} {value}" for key, value in (entry.get("published") or {}).items())
        for entry in entries
    ]
    models = [captions.escape_markup(entry["model"]) for entry in entries]
    lines = [
        [head, *(_format_recipe(entry, key) for entry in entries)]
        for key, (head, _) in RECIPE.items()
    ]
    return table, captions.format_markdown_table(["", *models], lines, words=1)


def _format_recipe(entry: Mapping[str, Any], key: str) -> str:
    _, format_value = RECIPE[key]
    value = entry.get(key)
    if value is None:
        return "unknown"
    words = format_value(value)
    published_value = (entry.get("published") or {}).get(key)
    if published_value is None:
        return words
    # The paper may have text in a row of numbers, such as "about 1k".
    if isinstance(published_value, str):
        return f"{words} (the paper: {captions.escape_markup(published_value)})"
    return f"{words} (the paper: {format_value(published_value)})"
