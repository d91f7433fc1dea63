// Select the lines, or the cells of heat maps, that a state chooses.

function chosenSeries(results, state) {
  return results.series.filter(
    ({ model, measure, selection }) =>
      state.model.includes(model) && state.measure.includes(measure) && state.rows.includes(selection),
  );
}

const ascending = (numbers) => [...new Set(numbers)].sort((a, b) => a - b);

// If a chosen model has steps of a pretraining, the range restricts these and leaves the steps of fine-tunings.
function isInRange(results, state, { phase, [state.by]: place }) {
  if (state.from === null && state.to === null) return true;
  if (phase && hasPretraining(results, state)) return true;
  return place !== null && place >= (state.from ?? -Infinity) && place <= (state.to ?? Infinity);
}

function hasPretraining(results, state) {
  return results.checkpoints.some((checkpoint) => state.model.includes(checkpoint.model) && !checkpoint.phase && checkpoint[state.by] !== null);
}

// The points of a series in the chosen range, without points that verdicts leave out unless the state includes them.
function shownPoints(results, state, series) {
  return series.points.filter(({ checkpoint }) => isInRange(results, state, checkpoint) && (state.left_out || checkpoint.shown !== "no"));
}

// The chosen checkpoints with a step (or tokens), in any range.
function steppedCheckpoints(results, state) {
  const whole = { ...state, from: null, to: null };
  const points = chosenSeries(results, state).flatMap((series) => shownPoints(results, whole, series));
  return points.map(({ checkpoint }) => checkpoint).filter((checkpoint) => checkpoint[state.by] !== null);
}

// The steps (or tokens) at which a range can begin and end.
function allPlaces(results, state) {
  const checkpoints = steppedCheckpoints(results, state);
  const rangeCheckpoints = hasPretraining(results, state) ? checkpoints.filter((checkpoint) => !checkpoint.phase) : checkpoints;
  return ascending(rangeCheckpoints.map((checkpoint) => checkpoint[state.by]));
}

// The stop of a checkpoint: its step (or tokens), after the phase if it belongs to a fine-tuning.
function checkpointStop(state, { phase, [state.by]: place }) {
  return phase && place !== null ? `${phase} ${place}` : place;
}

// The number in a stop; stops of fine-tunings come last.
const stopPlace = (stop) => (typeof stop === "number" ? stop : Number(stop.split(" ")[1]));
const isFineTuning = (stop) => FINE_TUNING_STOP.test(stop);
const byPhaseAndPlace = (a, b) => isFineTuning(a) - isFineTuning(b) || stopPlace(a) - stopPlace(b);

// The stops of the slider.
function stops(results, state) {
  if (state.view === "layer") {
    const checkpoints = steppedCheckpoints(results, state).filter((checkpoint) => isInRange(results, state, checkpoint));
    return [...[...new Set(checkpoints.map((checkpoint) => checkpointStop(state, checkpoint)))].sort(byPhaseAndPlace), LAST];
  }
  const series = chosenSeries(results, state);
  if (series.length && series.every(({ isWhole }) => isWhole)) return [WHOLE];
  const rows = series.flatMap(({ isWhole, points }) => (isWhole ? [] : points.at(-1).rows));
  const places = rows.filter((row) => row.layer !== null).map((row) => row[state.across]);
  return [...(rows.some((row) => row.layer === null) ? [MEAN] : []), ...ascending(places)];
}

// The stop of the slider: the stop of the state, or the nearest stop that exists.
function sliderStop(list, state) {
  const stateStop = state.view === "layer" ? state.at : state.layer;
  const numbers = list.filter((stop) => typeof stop === "number");
  if (list.includes(stateStop)) return stateStop;
  if (typeof stateStop === "number" && numbers.length) return nearest(numbers, stateStop, (stop) => stop);
  return list.at(-1);
}

function nearest(list, target, place) {
  const distance = (stop) => Math.abs(place(stop) - target);
  return list.reduce((best, stop) => (distance(stop) < distance(best) ? stop : best));
}

// The stops of lines: words, then numbers in order, then the last checkpoint.
function drawnStops(results, state) {
  if (state.view === "heat") return [null];
  const keptStops = state.view === "layer" ? state.keep : state.keep_layer;
  const currentStop = sliderStop(stops(results, state), state);
  const lineStops = [...new Set(currentStop === undefined ? keptStops : [...keptStops, currentStop])];
  const isWord = (stop) => [MEAN, WHOLE, LAST].includes(stop);
  const places = lineStops.filter((stop) => !isWord(stop)).sort(byPhaseAndPlace);
  return [...lineStops.filter((stop) => isWord(stop) && stop !== LAST), ...places, ...lineStops.filter((stop) => stop === LAST)];
}

function placeWords(state, place, phase = "") {
  const words = state.by === "tokens" ? `${shortCount(place)} tokens` : `step ${place.toLocaleString("en")}`;
  return phase ? `${words} of ${phase}` : words;
}

function stopWords(results, state, stop) {
  if (stop === LAST) return lastWords(results, state);
  const word = { [MEAN]: "average over layers", [WHOLE]: "the whole model" }[stop];
  if (word) return word;
  if (state.view === "layer") return placeStop(state, stop);
  return state.across === "depth" ? `depth ${shortNumber(stop)}` : `layer ${stop}`;
}

// Words for the last checkpoint: its step if all models have the same; none if each model has one checkpoint without a step.
function lastWords(results, state) {
  const points = chosenSeries(results, state).map((series) => shownPoints(results, state, series));
  const last = [...new Set(points.flatMap((seriesPoints) => (seriesPoints.length ? [checkpointStop(state, seriesPoints.at(-1).checkpoint)] : [])))];
  if (last.length === 1 && last[0] !== null) return `${placeStop(state, last[0])} (last checkpoint)`;
  return points.some((seriesPoints) => seriesPoints.length > 1) ? "last checkpoint" : "";
}

const placeStop = (state, stop) => placeWords(state, stopPlace(stop), isFineTuning(stop) ? FINE_TUNING : "");

// The point at a stop; undefined for a model without a checkpoint there, which the summary names.
function pointAt(points, state, stop) {
  if (stop === LAST) return points.at(-1);
  return points.find(({ checkpoint }) => checkpointStop(state, checkpoint) === stop);
}

// The row of a layer, of the layer nearest to a depth, or of the average; the only row of a series without layers.
function rowAt(state, series, { rows }, stop) {
  if (series.isWhole) return rows[0];
  if (stop === MEAN) return rows.find((row) => row.layer === null);
  if (state.across === "layer") return rows.find((row) => row.layer === stop);
  const layers = layersOf({ rows });
  return layers.length ? nearest(layers, stop, (layer) => layer.depth) : undefined;
}

const layersOf = ({ rows }) => rows.filter((row) => row.layer !== null);

// Lines {series, stop, checkpoint, rows} with rows in order of x, and the lines that have no rows.
function drawnLines(results, state) {
  const lines = [];
  const emptyLines = [];
  for (const series of chosenSeries(results, state)) {
    const points = shownPoints(results, state, series);
    const steppedPoints = points.filter(({ checkpoint }) => checkpoint[state.by] !== null);
    for (const stop of drawnStops(results, state)) {
      const line = { series, stop, checkpoint: null, rows: [] };
      if (state.view === "layer") {
        const point = pointAt(points, state, stop);
        if (point) Object.assign(line, { checkpoint: point.checkpoint, rows: layersOf(point) });
      } else if (state.view === "step") {
        line.rows = steppedPoints.map((point) => rowAt(state, series, point, stop)).filter(Boolean);
      } else {
        line.rows = steppedPoints.flatMap(layersOf);
      }
      (line.rows.length ? lines : emptyLines).push(line);
    }
  }
  return { lines, emptyLines };
}

// Descriptions of the chart, for captions and for readers who cannot see it.

const labelsOf = (byName, names) => [...new Set(names)].map((name) => byName.get(name).label).join(", ");

// Names that distinguish lines: by model, by step or layer, and by selection.
function namesOfLines(results, state, lines) {
  const severalModels = new Set(lines.map((line) => line.series.model)).size > 1;
  const severalStops = new Set(lines.map((line) => line.stop)).size > 1;
  const keys = lines.map(({ series }) => `${series.measure} ${series.selection}`);
  const severalSelections = !state.together && new Set(keys).size > new Set(lines.map((line) => line.series.measure)).size;
  return lines.map(({ series, stop }) => {
    const model = results.modelsByName.get(series.model).label;
    const isByStop = severalStops && !severalModels;
    const second = [
      severalStops && severalModels && stopWords(results, state, stop),
      severalSelections && selectionLabel(series.selection),
      state.together && results.measuresByName.get(series.measure).label,
    ];
    return { colour: isByStop ? stopWords(results, state, stop) : model, second: second.filter(Boolean).join(", "), isByStop };
  });
}

function summaryOf(results, state, { lines, emptyLines }) {
  if (!lines.length) return [explainEmptyChart(results, state, emptyLines)];
  const measures = lines.map((line) => line.series.measure);
  const across = state.across === "depth" ? "relative depth" : "layer";
  const phases = [...new Set(lines.map((line) => phaseOf(results, line)))];
  const by = phases.length > 1 ? { step: "step", tokens: "tokens" }[state.by] : stepTitle(state, phases[0]).toLowerCase();
  const isHeat = state.view === "heat";
  const axes = { layer: `by ${across}`, step: `by ${by}`, heat: `by ${across} and ${by}` }[state.view];
  const stopLabels = isHeat ? [] : [...new Set(lines.map((line) => stopWords(results, state, line.stop)))].filter(Boolean);
  const rows = lines.flatMap((line) => line.rows);
  const blankCount = rows.filter((row) => !Number.isFinite(row.value)).length;
  const countMarks = (mark) => rows.filter((row) => row.mark === mark).length;
  const measureNames = new Set(chosenSeries(results, state).map((series) => series.measure));
  const missingLabels = labelsOf(results.measuresByName, state.measure.filter((name) => !measureNames.has(name)));
  const wholeLabels = state.view === "step" ? "" : wholeMeasures(results, emptyLines);
  const isExplained = state.view === "step" ? isStepless : (line) => line.series.isWhole;
  const modelsOf = (someLines) => labelsOf(results.modelsByName, someLines.map((line) => line.series.model));
  const stepless = state.view === "step" && modelsOf(emptyLines.filter(isStepless));
  const emptyModels = modelsOf(emptyLines.filter((line) => !isExplained(line)));
  return [
    `${labelsOf(results.measuresByName, measures)} ${[axes, stopLabels.join(" and ")].filter(Boolean).join(", ")}: ${count(lines.length, isHeat ? "heat map" : "line")} of ${count(rows.length, "value")}.`,
    blankCount > 0 && `${count(blankCount, "value")} undefined or infinite.`,
    countMarks(NOT_OK) && `${count(countMarks(NOT_OK), "value")} of checkpoints that are not ok: open diamonds${isHeat ? " above their columns" : ""}.`,
    countMarks(SUSPECT) && `${count(countMarks(SUSPECT), "suspect value")} (${reasonsOf(rows)}): open rings.`,
    missingLabels && `Chosen but not measured: ${missingLabels}.`,
    wholeLabels && `By step only: ${wholeLabels}.`,
    stepless && `Without steps, so without a line: ${stepless}. The download of all values has theirs.`,
    isBackwards(state) && "From is after To, so the range has no checkpoint.",
    emptyModels && `${state.view === "layer" ? "No checkpoint there" : "Nothing to draw here"}: ${emptyModels}.`,
  ].filter(Boolean);
}

// A series without steps or tokens, such as that of a model that was not trained here.
const isStepless = ({ series }) => series.points.every(({ checkpoint: { step, tokens } }) => step === null && tokens === null);

const isBackwards = ({ from, to }) => from !== null && to !== null && from > to;

const reasonsOf = (rows) => [...new Set(rows.flatMap((row) => (row.reason ? row.reason.split("; ") : [])))].join(", ");

// The measures of lines that are not drawn because they have no layers.
function wholeMeasures(results, emptyLines) {
  return labelsOf(results.measuresByName, emptyLines.filter((line) => line.series.isWhole).map((line) => line.series.measure));
}

// The reason why the chart is empty.
function explainEmptyChart(results, state, emptyLines) {
  const models = labelsOf(results.modelsByName, emptyLines.map((line) => line.series.model));
  const reasons = [
    [!results.measured.length, "the table of estimates is empty"],
    [!offered(results, state).measure.length, "the chosen papers draw other tables, which their figures show"],
    [!state.model.length, "choose a model"],
    [!state.measure.length, "choose a measure"],
    [!chosenSeries(results, state).length, "the chosen models have none of the chosen measures with this selection of tokens"],
    [isBackwards(state), "From is after To"],
    [state.view === "step" && emptyLines.every(isStepless), `${models} has no steps; the download of all values has what was measured`],
    [true, `no checkpoint here of ${models}`],
  ];
  return `Nothing is drawn: ${reasons.find(([holds]) => holds)[1]}.`;
}

// Words for the text, windows and vectors of values, as in figures; for each measure if the vectors differ.
function sampleWords(results, rows) {
  const names = [...new Set(rows.map((row) => row.series.measure))];
  const isOfText = (name) => results.measuresByName.get(name).family !== "weights";
  const textNames = names.filter(isOfText);
  const labelsByNumber = new Map();
  for (const name of textNames) {
    const numbers = rows.filter((row) => row.series.measure === name).map((row) => row.n).filter(Number.isFinite);
    if (!numbers.length) continue;
    const ends = [Math.min(...numbers), Math.max(...numbers)].map((end) => Math.round(end).toLocaleString("en"));
    const { label, in_batches } = results.measuresByName.get(name);
    const words = `${[...new Set(ends)].join(" to ")} vectors${in_batches ? " a batch" : ""}`;
    labelsByNumber.set(words, [...(labelsByNumber.get(words) ?? []), label]);
  }
  const vectors = [...labelsByNumber].map(([words, labels]) => (labelsByNumber.size > 1 ? `${words} (${labels.join(", ")})` : words));
  const weightNames = names.filter((name) => !isOfText(name));
  const weights = textNames.length ? `of weights alone: ${labelsOf(results.measuresByName, weightNames)}` : "Of weights alone: no text is read";
  return [(textNames.length || !names.length) && results.sample, ...vectors, weightNames.length && weights].filter(Boolean).join("; ");
}

// Whether the y axis of a measure begins at 0, as in figures; not for a dimension, a loss, or values that are all near 1.
function beginsAtZero(results, measure, rows) {
  const { axis } = results.measuresByName.get(measure);
  const values = rows.map((row) => row.value).filter(Number.isFinite);
  const isNearOne = Math.min(...values) > NEAR_ONE && Math.max(...values) <= 1;
  return !FREE_AXES.includes(axis) && !isNearOne;
}

// The definitions of the measures of the chart, as in captions.
function definitionsOf(results, { lines }) {
  const names = [...new Set(lines.map((line) => line.series.measure))];
  const words = names.map((name) => results.measuresByName.get(name).description).filter(Boolean);
  return words.map((word) => `${word[0].toUpperCase()}${word.slice(1)}.`).join(" ");
}

// The description of a value for the pointer and the keyboard, as pairs [term, text].
function wordsOf(results, { series, checkpoint, ...row }) {
  const { revision, step, tokens, verdict } = checkpoint;
  const noLayer = series.isWhole ? "the whole model" : "average over layers";
  const share = shortNumber(100 * row.nearDuplicates, 2);
  return [
    [results.measuresByName.get(series.measure).label, shortNumber(row.value)],
    ["95 % interval", Number.isNaN(row.low) ? "none" : `${shortNumber(row.low)} to ${shortNumber(row.high)}`],
    ["model", results.modelsByName.get(series.model).label],
    ["checkpoint", `${step === null ? revision : `step ${step.toLocaleString("en")}`}${tokens ? `, ${shortCount(tokens)} tokens` : ""}`],
    ["verdict", verdict || "not judged"],
    ["where", row.layer === null ? noLayer : `layer ${row.layer}, depth ${shortNumber(row.depth)}`],
    ["n", Number.isNaN(row.n) ? "unknown" : row.n.toLocaleString("en")],
    series.selection !== "all" && ["tokens", selectionLabel(series.selection)],
    row.reason && ["suspect", row.reason],
    row.nearDuplicates > 0 && ["near-duplicates", `${share} % of vectors`],
  ].filter(Boolean);
}
