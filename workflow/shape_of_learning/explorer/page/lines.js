// From what is chosen to what is drawn: lines, or the cells of heat maps, of rows of the tables.

function chosenSeries(results, state) {
  return results.series.filter(
    ({ model, measure, selection }) =>
      state.model.includes(model) && state.measure.includes(measure) && state.rows.includes(selection),
  );
}

const ascending = (numbers) => [...new Set(numbers)].sort((a, b) => a - b);

// The chosen range counts steps of pretrainings, if a chosen model has any; those of fine-tunings then stay.
function isInRange(results, state, { phase, [state.by]: place }) {
  if (state.from === null && state.to === null) return true;
  if (phase && hasPretraining(results, state)) return true;
  return place !== null && place >= (state.from ?? -Infinity) && place <= (state.to ?? Infinity);
}

function hasPretraining(results, state) {
  return results.checkpoints.some((checkpoint) => state.model.includes(checkpoint.model) && !checkpoint.phase && checkpoint[state.by] !== null);
}

// The points of a series in the chosen range; those that verdicts leave out only if they are asked for.
function shownPoints(results, state, series) {
  return series.points.filter(({ checkpoint }) => isInRange(results, state, checkpoint) && (state.left_out || checkpoint.shown !== "no"));
}

// Checkpoints that are chosen and have a step (or tokens), whatever the range.
function steppedCheckpoints(results, state) {
  const whole = { ...state, from: null, to: null };
  const points = chosenSeries(results, state).flatMap((series) => shownPoints(results, whole, series));
  return points.map((each) => each.checkpoint).filter((each) => each[state.by] !== null);
}

// Places that a range can begin and end at.
function allPlaces(results, state) {
  const checkpoints = steppedCheckpoints(results, state);
  const ranged = hasPretraining(results, state) ? checkpoints.filter((checkpoint) => !checkpoint.phase) : checkpoints;
  return ascending(ranged.map((checkpoint) => checkpoint[state.by]));
}

// The stop of a checkpoint: its step (or tokens), and for a fine-tuning also the word, since it counts anew.
function checkpointStop(state, { phase, [state.by]: place }) {
  return phase && place !== null ? `${phase} ${place}` : place;
}

// The number in a stop; stops of fine-tunings come after all others.
const stopPlace = (stop) => (typeof stop === "number" ? stop : Number(stop.split(" ")[1]));
const isFineTuning = (stop) => FINE_TUNING_STOP.test(stop);
const byPhaseAndPlace = (a, b) => isFineTuning(a) - isFineTuning(b) || stopPlace(a) - stopPlace(b);

// What the slider goes through.
function stops(results, state) {
  if (state.view === "layer") {
    const checkpoints = steppedCheckpoints(results, state).filter((checkpoint) => isInRange(results, state, checkpoint));
    return [...[...new Set(checkpoints.map((checkpoint) => checkpointStop(state, checkpoint)))].sort(byPhaseAndPlace), LAST];
  }
  const chosen = chosenSeries(results, state);
  if (chosen.length && chosen.every((series) => series.isWhole)) return [WHOLE];
  const rows = chosen.flatMap((series) => (series.isWhole ? [] : series.points.at(-1).rows));
  const places = rows.filter((row) => row.layer !== null).map((row) => row[state.across]);
  return [...(rows.some((row) => row.layer === null) ? [MEAN] : []), ...ascending(places)];
}

// The stop at which the slider stands: that of the state, or the nearest one.
function standing(list, state) {
  const wanted = state.view === "layer" ? state.at : state.layer;
  const numbers = list.filter((stop) => typeof stop === "number");
  if (list.includes(wanted)) return wanted;
  if (typeof wanted === "number" && numbers.length) return nearest(numbers, wanted, (stop) => stop);
  return list.at(-1);
}

function nearest(list, wanted, place) {
  const distance = (stop) => Math.abs(place(stop) - wanted);
  return list.reduce((best, stop) => (distance(stop) < distance(best) ? stop : best));
}

// The stops that are drawn: those that are kept, then the one of the slider.
function drawnStops(results, state) {
  if (state.view === "heat") return [null];
  const kept = state.view === "layer" ? state.keep : state.keep_layer;
  const now = standing(stops(results, state), state);
  const drawn = [...new Set(now === undefined ? kept : [...kept, now])];
  const isWord = (stop) => [MEAN, WHOLE, LAST].includes(stop);
  const places = drawn.filter((stop) => !isWord(stop)).sort(byPhaseAndPlace);
  return [...drawn.filter((stop) => isWord(stop) && stop !== LAST), ...places, ...drawn.filter((stop) => stop === LAST)];
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

// The last checkpoint, by its step if all models have the same; nothing if each has only one, without a step.
function lastWords(results, state) {
  const points = chosenSeries(results, state).map((series) => shownPoints(results, state, series));
  const last = [...new Set(points.flatMap((some) => (some.length ? [checkpointStop(state, some.at(-1).checkpoint)] : [])))];
  if (last.length === 1 && last[0] !== null) return `${placeStop(state, last[0])} (last checkpoint)`;
  return points.some((some) => some.length > 1) ? "last checkpoint" : "";
}

const placeStop = (state, stop) => placeWords(state, stopPlace(stop), isFineTuning(stop) ? FINE_TUNING : "");

// The point at a stop: a model without a checkpoint there has none, and the summary names it.
function pointAt(points, state, stop) {
  if (stop === LAST) return points.at(-1);
  return points.find(({ checkpoint }) => checkpointStop(state, checkpoint) === stop);
}

// The row of a layer, of the nearest one to a depth, or of the average; the only one of what has no layers.
function rowAt(state, series, { rows }, stop) {
  if (series.isWhole) return rows[0];
  if (stop === MEAN) return rows.find((row) => row.layer === null);
  if (state.across === "layer") return rows.find((row) => row.layer === stop);
  const layers = layersOf({ rows });
  return layers.length ? nearest(layers, stop, (layer) => layer.depth) : undefined;
}

const layersOf = ({ rows }) => rows.filter((row) => row.layer !== null);

// Lines: {series, stop, checkpoint, rows}, rows in order of x; and those that have none.
function drawnLines(results, state) {
  const lines = [];
  const lacking = [];
  for (const series of chosenSeries(results, state)) {
    const points = shownPoints(results, state, series);
    const named = points.filter(({ checkpoint }) => checkpoint[state.by] !== null);
    for (const stop of drawnStops(results, state)) {
      const line = { series, stop, checkpoint: null, rows: [] };
      if (state.view === "layer") {
        const point = pointAt(points, state, stop);
        if (point) Object.assign(line, { checkpoint: point.checkpoint, rows: layersOf(point) });
      } else if (state.view === "step") {
        line.rows = named.map((member) => rowAt(state, series, member, stop)).filter(Boolean);
      } else {
        line.rows = named.flatMap(layersOf);
      }
      (line.rows.length ? lines : lacking).push(line);
    }
  }
  return { lines, lacking };
}

// What is drawn, in words: for those who do not see it, and for captions.

const labelsOf = (byName, names) => [...new Set(names)].map((name) => byName.get(name).label).join(", ");

// What tells lines apart: the model, the step or layer, the selection.
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

function summaryOf(results, state, { lines, lacking }) {
  if (!lines.length) return [nothing(results, state, lacking)];
  const measures = lines.map((line) => line.series.measure);
  const across = state.across === "depth" ? "relative depth" : "layer";
  const phases = [...new Set(lines.map((line) => phaseOf(results, line)))];
  const by = phases.length > 1 ? { step: "step", tokens: "tokens" }[state.by] : stepTitle(state, phases[0]).toLowerCase();
  const isHeat = state.view === "heat";
  const how = { layer: `by ${across}`, step: `by ${by}`, heat: `by ${across} and ${by}` }[state.view];
  const where = isHeat ? [] : [...new Set(lines.map((line) => stopWords(results, state, line.stop)))].filter(Boolean);
  const rows = lines.flatMap((line) => line.rows);
  const blank = rows.filter((row) => !Number.isFinite(row.value)).length;
  const marked = (mark) => rows.filter((row) => row.mark === mark).length;
  const found = new Set(chosenSeries(results, state).map((series) => series.measure));
  const missing = labelsOf(results.measuresByName, state.measure.filter((name) => !found.has(name)));
  const whole = state.view === "step" ? "" : wholeMeasures(results, lacking);
  const isExplained = state.view === "step" ? isStepless : (line) => line.series.isWhole;
  const modelsOf = (some) => labelsOf(results.modelsByName, some.map((line) => line.series.model));
  const stepless = state.view === "step" && modelsOf(lacking.filter(isStepless));
  const without = modelsOf(lacking.filter((line) => !isExplained(line)));
  return [
    `${labelsOf(results.measuresByName, measures)} ${[how, where.join(" and ")].filter(Boolean).join(", ")}: ${count(lines.length, isHeat ? "heat map" : "line")} of ${count(rows.length, "value")}.`,
    blank > 0 && `${count(blank, "value")} undefined or infinite.`,
    marked(NOT_OK) && `${count(marked(NOT_OK), "value")} of checkpoints that are not ok: open diamonds${isHeat ? " above their columns" : ""}.`,
    marked(SUSPECT) && `${count(marked(SUSPECT), "suspect value")} (${reasonsOf(rows)}): open rings.`,
    missing && `Not measured of what is chosen: ${missing}.`,
    whole && `By step only: ${whole}.`,
    stepless && `Without steps, so without a line: ${stepless}. The download of all values has theirs.`,
    isBackwards(state) && "From is after To, so the range has no checkpoint.",
    without && `${state.view === "layer" ? "No checkpoint there" : "Nothing to draw here"}: ${without}.`,
  ].filter(Boolean);
}

// Of a model that was not trained here, and of one whose checkpoints have no numbers of tokens.
const isStepless = ({ series }) => series.points.every(({ checkpoint: { step, tokens } }) => step === null && tokens === null);

const isBackwards = ({ from, to }) => from !== null && to !== null && from > to;

const reasonsOf = (rows) => [...new Set(rows.flatMap((row) => (row.reason ? row.reason.split("; ") : [])))].join(", ");

// Measures of lines that are not drawn because they have no layers.
function wholeMeasures(results, lacking) {
  return labelsOf(results.measuresByName, lacking.filter((line) => line.series.isWhole).map((line) => line.series.measure));
}

function nothing(results, state, lacking) {
  const models = labelsOf(results.modelsByName, lacking.map((line) => line.series.model));
  const reasons = [
    [!results.measured.length, "the table of estimates is empty"],
    [!offered(results, state).measure.length, "the chosen papers draw other tables, which their figures show"],
    [!state.model.length, "choose a model"],
    [!state.measure.length, "choose a measure"],
    [!chosenSeries(results, state).length, "the chosen models have none of the chosen measures with this selection of tokens"],
    [isBackwards(state), "From is after To"],
    [state.view === "step" && lacking.every(isStepless), `${models} has no steps; the download of all values has what was measured`],
    [true, `no checkpoint here of ${models}`],
  ];
  return `Nothing is drawn: ${reasons.find(([holds]) => holds)[1]}.`;
}

// Of which text, in how many windows and vectors, values are; of each measure where these differ, as in figures.
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

// Whether the y axis of a measure begins at 0, as in figures: not that of a dimension or a loss, nor of what is all near 1.
function beginsAtZero(results, measure, rows) {
  const { axis } = results.measuresByName.get(measure);
  const values = rows.map((row) => row.value).filter(Number.isFinite);
  const isNearOne = Math.min(...values) > NEAR_ONE && Math.max(...values) <= 1;
  return !FREE_AXES.includes(axis) && !isNearOne;
}

// How the measures that are drawn are defined, as captions say it.
function definitionsOf(results, { lines }) {
  const names = [...new Set(lines.map((line) => line.series.measure))];
  const words = names.map((name) => results.measuresByName.get(name).description).filter(Boolean);
  return words.map((word) => `${word[0].toUpperCase()}${word.slice(1)}.`).join(" ");
}

// One value for the pointer and the keyboard, as [term, text].
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
