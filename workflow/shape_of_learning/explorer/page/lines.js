// From what is chosen to what is drawn: lines, or the cells of heat maps, of rows of the tables.

// The choices that the chosen papers leave, and of selections those that the chosen models and measures have.
function offered(results, state) {
  const papers = results.papers.filter((each) => state.papers.includes(each.name));
  const of = (key) => new Set(papers.flatMap((each) => each[key]));
  const [models, measures] = [of("models"), of("measures")];
  const present = new Set(results.series.map((each) => each.measure));
  const measured = results.measures.filter((each) => present.has(each.name));
  const having = chosenSeries(results, { ...state, selections: results.selections });
  const selections = new Set((having.length ? having : results.series).map((each) => each.selection));
  return {
    selections: results.selections.filter((each) => selections.has(each)),
    models: papers.length ? results.models.filter((each) => models.has(each.name)) : results.models,
    measures: papers.length ? measured.filter((each) => measures.has(each.name)) : measured,
  };
}

function chosenSeries(results, state) {
  const chosen = new Map(["models", "measures", "selections"].map((key) => [key, new Set(state[key])]));
  return results.series.filter(
    (each) =>
      chosen.get("models").has(each.model) &&
      chosen.get("measures").has(each.measure) &&
      chosen.get("selections").has(each.selection),
  );
}

// Checkpoints of a series in the chosen range; those that verdicts leave out only if they are asked for.
function shownCheckpoints(results, state, series) {
  const from = state.from ?? -Infinity;
  const to = state.to ?? Infinity;
  return results.checkpointsOf(series).filter((each) => {
    const place = each[state.by];
    const isWithin = place === null ? state.from === null && state.to === null : place >= from && place <= to;
    return isWithin && (state.leftOut || each.shown !== "no");
  });
}

const ascending = (numbers) => [...new Set(numbers)].sort((a, b) => a - b);

// Steps (or tokens) of all checkpoints of some series, whatever the range.
function allPlaces(results, state, chosen) {
  const whole = { ...state, from: null, to: null };
  const places = chosen.flatMap((each) => shownCheckpoints(results, whole, each).map((one) => one[state.by]));
  return ascending(places.filter((each) => each !== null));
}

// What the slider goes through.
function stops(results, state) {
  const chosen = chosenSeries(results, state);
  if (state.view === "layer") {
    const places = allPlaces(results, state, chosen);
    return [...places.filter((each) => each >= (state.from ?? -Infinity) && each <= (state.to ?? Infinity)), LAST];
  }
  if (chosen.length && chosen.every((each) => results.isWhole(each))) return [WHOLE];
  const { layer, depth } = results.columns;
  const places = new Set();
  let hasMean = false;
  for (const series of chosen) {
    const last = results.checkpointsOf(series).at(-1);
    for (let row = last.start; row < last.end; row++) {
      if (layer[row] === AVERAGE) hasMean = true;
      else places.add(state.across === "depth" ? Number(depth[row].toFixed(4)) : layer[row]);
    }
  }
  return [...(hasMean ? [MEAN] : []), ...ascending([...places])];
}

// The stop at which the slider stands: that of the state, or the nearest one.
function standing(list, wanted, word) {
  if (list.includes(wanted)) return wanted;
  if (wanted === word) return list.at(-1);
  const numbers = list.filter((each) => typeof each === "number");
  if (!numbers.length) return list[0];
  return numbers.reduce((best, each) => (Math.abs(each - wanted) < Math.abs(best - wanted) ? each : best));
}

function placeWords(state, place) {
  return `${state.by === "tokens" ? `${shortCount(place)} tokens` : `step ${place.toLocaleString("en")}`}`;
}

function stopWords(state, stop) {
  if (stop === LAST) return "last checkpoint";
  if (stop === MEAN) return "average over layers";
  if (stop === WHOLE) return "the whole model";
  if (state.view === "layer") return placeWords(state, stop);
  return state.across === "depth" ? `depth ${shortNumber(stop)}` : `layer ${stop}`;
}

// The last checkpoint that is not beyond a step (or a number of tokens).
function checkpointAt(checkpoints, state, stop) {
  if (stop === LAST) return checkpoints.at(-1);
  return checkpoints.findLast((each) => each[state.by] !== null && each[state.by] <= stop);
}

// The row of a layer, of the nearest one to a depth, or of the average; the only one of what has no layers.
function rowAt(results, state, { start, end }, stop) {
  const { layer, depth } = results.columns;
  if (layer[start] === AVERAGE) return start;
  let found = null;
  for (let row = start; row < end; row++) {
    if (layer[row] === AVERAGE ? stop === MEAN : layer[row] === stop && state.across === "layer") return row;
    if (layer[row] === AVERAGE || stop === MEAN || state.across === "layer") continue;
    if (found === null || Math.abs(depth[row] - stop) < Math.abs(depth[found] - stop)) found = row;
  }
  return found;
}

// The stops that are drawn: those that are kept, then the one of the slider.
function drawnStops(results, state) {
  const list = stops(results, state);
  const isLayer = state.view === "layer";
  const now = standing(list, isLayer ? state.at : state.layer, isLayer ? LAST : MEAN);
  const drawn = new Set([...(isLayer ? state.kept : state.keptLayers), now].filter((each) => each !== undefined));
  const place = (stop) => (stop === LAST ? Infinity : stop === MEAN ? -Infinity : stop);
  return [...drawn].sort((a, b) => place(a) - place(b));
}

// Lines: {series, stop, checkpoint, rows}, where `rows` are numbers of rows in order of x; and what has none.
function drawnLines(results, state) {
  const lines = [];
  const lacking = [];
  const chosen = chosenSeries(results, state);
  const list = state.view === "heat" ? [null] : drawnStops(results, state);
  for (const series of chosen) {
    const checkpoints = shownCheckpoints(results, state, series);
    const named = checkpoints.filter((each) => each[state.by] !== null);
    for (const stop of list) {
      const line = { series, stop, checkpoint: null, rows: [] };
      if (state.view === "layer") {
        line.checkpoint = checkpointAt(checkpoints, state, stop);
        if (line.checkpoint) line.rows = layersOf(results, line.checkpoint);
      } else if (state.view === "step") {
        line.rows = named.map((each) => rowAt(results, state, each, stop)).filter((row) => row !== null);
      } else {
        line.rows = named.flatMap((each) => layersOf(results, each));
      }
      (line.rows.length ? lines : lacking).push(line);
    }
  }
  return { lines, lacking };
}

function layersOf(results, { start, end }) {
  const rows = [];
  for (let row = start; row < end; row++) if (results.columns.layer[row] !== AVERAGE) rows.push(row);
  return rows;
}

// What tells lines apart, in words: the model, the step or layer, the selection.
function namesOfLines(results, state, lines) {
  const several = (key) => new Set(lines.map(key)).size > 1;
  const ofMeasure = new Map();
  for (const { series } of lines) {
    ofMeasure.set(series.measure, (ofMeasure.get(series.measure) ?? new Set()).add(series.selection));
  }
  const severalSelections = [...ofMeasure.values()].some((each) => each.size > 1);
  const severalModels = several((line) => line.series.model);
  const severalStops = several((line) => line.stop);
  return lines.map((line) => {
    const model = results.modelsByName.get(line.series.model).label;
    const stop = line.stop === null ? "" : stopWords(state, line.stop);
    const selection = severalSelections ? selectionLabel(line.series.selection) : "";
    const second = [severalModels && severalStops ? stop : "", selection].filter(Boolean).join(", ");
    return { colour: severalModels || !severalStops ? model : stop, second, isByStop: !severalModels && severalStops };
  });
}

// Sentences on what is drawn, for those who do not see it and for the caption.
const MOST_DESCRIBED = 6;

function summaryOf(results, state, { lines, lacking }) {
  const measures = [...new Set(lines.map((each) => each.series.measure))];
  const labels = measures.map((name) => results.measuresByName.get(name).label).join(", ");
  if (!lines.length) {
    return [nothing(results, state, lacking)];
  }
  const values = lines.reduce((sum, each) => sum + each.rows.length, 0);
  const across = state.across === "depth" ? "relative depth" : "layer";
  const by = state.by === "tokens" ? "training tokens" : "training step";
  const how = {
    layer: `by ${across}`,
    step: `by ${by}`,
    heat: `by ${across} and ${by}`,
  }[state.view];
  const drawn = state.view === "heat" ? count(lines.length, "heat map") : count(lines.length, "line");
  const where = state.view === "heat" ? "" : `, ${[...new Set(lines.map((l) => stopWords(state, l.stop)))].join(" and ")}`;
  const sentences = [`${labels} ${how}${where}: ${drawn} of ${count(values, "value")}.`];
  const names = namesOfLines(results, state, lines);
  lines.slice(0, MOST_DESCRIBED).forEach((line, place) => {
    sentences.push(describedLine(results, state, line, names[place], measures.length > 1));
  });
  if (lines.length > MOST_DESCRIBED) sentences.push(`${count(lines.length - MOST_DESCRIBED, "more line")} not described.`);
  sentences.push(...marksOf(results, state, lines));
  const found = new Set(chosenSeries(results, state).map((each) => each.measure));
  const missing = state.measures.filter((each) => !found.has(each)).map((each) => results.measuresByName.get(each).label);
  if (missing.length) sentences.push(`Not measured of what is chosen: ${missing.join(", ")}.`);
  const whole = wholeMeasures(results, lacking);
  if (whole.length) sentences.push(`By step only: ${whole.join(", ")}.`);
  const layered = lacking.filter(({ series }) => !results.isWhole(series));
  const without = [...new Set(layered.map(({ series }) => results.modelsByName.get(series.model).label))];
  if (without.length) sentences.push(`Nothing to draw here of ${without.join(", ")}.`);
  return sentences;
}

// How the measures that are drawn are defined, as captions say it.
function definitionsOf(results, { lines }) {
  const names = [...new Set(lines.map((each) => each.series.measure))];
  const words = names.map((name) => results.measuresByName.get(name).description).filter(Boolean);
  return words.map((each) => `${each[0].toUpperCase()}${each.slice(1)}.`).join(" ");
}

// Of how many values the points are hollow, and why; how heat maps mark them.
function marksOf(results, state, lines) {
  let [ofBad, suspect] = [0, 0];
  for (const { series, rows } of lines) {
    for (const row of rows) {
      if (results.isBad(row)) ofBad++;
      if (results.isSuspect(series, row)) suspect++;
    }
  }
  const [circles, diamonds] = state.view === "heat" ? [": circles above their columns", ": diamonds"] : ["", ""];
  return [
    ofBad && `${count(ofBad, "value")} of checkpoints that are not ok${circles}.`,
    suspect && `${count(suspect, "value")} with more near-duplicates than the measure allows${diamonds}.`,
  ].filter(Boolean);
}

function describedLine(results, state, line, name, withMeasure) {
  const { value } = results.columns;
  const defined = line.rows.filter((row) => Number.isFinite(value[row]));
  const undefinedValues = line.rows.filter((row) => Number.isNaN(value[row])).length;
  const infinite = line.rows.length - defined.length - undefinedValues;
  const label = withMeasure ? `, ${results.measuresByName.get(line.series.measure).label}` : "";
  const second = name.second ? `, ${name.second}` : "";
  const actual = line.checkpoint && line.stop !== LAST && line.checkpoint[state.by] !== line.stop;
  const at = actual ? ` (at ${placeWords(state, line.checkpoint[state.by])})` : "";
  const start = `${name.colour}${second}${at}${label}: `;
  if (!defined.length) return `${start}${infinite ? "nowhere finite" : "undefined throughout"}.`;
  const lowest = defined.reduce((best, row) => (value[row] < value[best] ? row : best));
  const highest = defined.reduce((best, row) => (value[row] > value[best] ? row : best));
  const where = (row) => pointWords(results, state, line.series, row);
  const blank = state.view === "heat" ? " (blank)" : "";
  const missing = [[undefinedValues, "undefined"], [infinite, "infinite"]]
    .filter(([number]) => number > 0)
    .map(([number, word]) => `, ${number} ${word}${blank}`)
    .join("");
  const [low, high] = [shortNumber(value[lowest]), shortNumber(value[highest])];
  if (defined.length === 1) return `${start}${low} at ${where(lowest)}${missing}.`;
  return `${start}lowest ${low} at ${where(lowest)}, highest ${high} at ${where(highest)}${missing}.`;
}

function pointWords(results, state, series, row) {
  const each = results.row(series, row);
  const layer = each.layer === null ? "average over layers" : `layer ${each.layer}`;
  const step = each[state.by] === null ? each.revision : placeWords(state, each[state.by]);
  return { layer, step, heat: `${layer}, ${step}` }[state.view];
}

// Measures of lines that are not drawn because they have no layers.
function wholeMeasures(results, lacking) {
  const names = lacking.filter(({ series }) => results.isWhole(series)).map(({ series }) => series.measure);
  return [...new Set(names)].map((name) => results.measuresByName.get(name).label);
}

function nothing(results, state, lacking) {
  if (!offered(results, state).measures.length) {
    return state.papers.length
      ? "Nothing is drawn: the chosen papers draw other tables than that of estimates; their figures show them."
      : "Nothing is drawn: the table of estimates is empty.";
  }
  if (!state.models.length) return "Nothing is drawn: choose a model.";
  if (!state.measures.length) return "Nothing is drawn: choose a measure.";
  if (!chosenSeries(results, state).length) {
    return "Nothing is drawn: the chosen models have none of the chosen measures with this selection of tokens.";
  }
  const whole = state.view === "step" ? [] : wholeMeasures(results, lacking);
  if (whole.length) return `Nothing is drawn: ${whole.join(", ")} has no layers; choose By step.`;
  const isBounded = state.from !== null || state.to !== null;
  const why = isBounded ? "no checkpoint between From and To" : state.view === "layer" ? "no checkpoint up to here" : `no ${state.by === "tokens" ? "tokens" : "training steps"}`;
  return `Nothing is drawn: ${why} of ${[...new Set(lacking.map((each) => results.modelsByName.get(each.series.model).label))].join(", ")}.`;
}
