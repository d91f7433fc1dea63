// From what is chosen to what is drawn: lines, or the cells of heat maps, of rows of the tables.

function chosenSeries(results, state) {
  return results.series.filter(
    ({ model, measure, selection }) =>
      state.model.includes(model) && state.measure.includes(measure) && state.rows.includes(selection),
  );
}

const ascending = (numbers) => [...new Set(numbers)].sort((a, b) => a - b);
const isWithin = (state, place) => place >= (state.from ?? -Infinity) && place <= (state.to ?? Infinity);

// The points of a series in the chosen range; those that verdicts leave out only if they are asked for.
function shownPoints(state, series) {
  const isBounded = state.from !== null || state.to !== null;
  return series.points.filter(({ checkpoint }) => {
    const place = checkpoint[state.by];
    const isInRange = place === null ? !isBounded : isWithin(state, place);
    return isInRange && (state.left_out || checkpoint.shown !== "no");
  });
}

// Steps (or tokens) of all checkpoints that are chosen, whatever the range.
function allPlaces(results, state) {
  const whole = { ...state, from: null, to: null };
  const points = chosenSeries(results, state).flatMap((each) => shownPoints(whole, each));
  return ascending(points.map((each) => each.checkpoint[state.by]).filter((each) => each !== null));
}

// What the slider goes through.
function stops(results, state) {
  if (state.view === "layer") {
    return [...allPlaces(results, state).filter((each) => isWithin(state, each)), LAST];
  }
  const chosen = chosenSeries(results, state);
  if (chosen.length && chosen.every((each) => each.isWhole)) return [WHOLE];
  const rows = chosen.flatMap((each) => (each.isWhole ? [] : each.points.at(-1).rows));
  const places = rows.filter((each) => each.layer !== null).map((each) => each[state.across]);
  return [...(rows.some((each) => each.layer === null) ? [MEAN] : []), ...ascending(places)];
}

// The stop at which the slider stands: that of the state, or the nearest one.
function standing(list, state) {
  const wanted = state.view === "layer" ? state.at : state.layer;
  const numbers = list.filter((each) => typeof each === "number");
  if (list.includes(wanted)) return wanted;
  if (typeof wanted === "number" && numbers.length) return nearest(numbers, wanted, (each) => each);
  return list.at(-1);
}

function nearest(list, wanted, place) {
  const distance = (each) => Math.abs(place(each) - wanted);
  return list.reduce((best, each) => (distance(each) < distance(best) ? each : best));
}

// The stops that are drawn: those that are kept, then the one of the slider.
function drawnStops(results, state) {
  if (state.view === "heat") return [null];
  const kept = state.view === "layer" ? state.keep : state.keep_layer;
  const now = standing(stops(results, state), state);
  const place = (stop) => (stop === LAST ? Infinity : stop === MEAN ? -Infinity : stop);
  return [...new Set(now === undefined ? kept : [...kept, now])].sort((a, b) => place(a) - place(b));
}

function placeWords(state, place) {
  return state.by === "tokens" ? `${shortCount(place)} tokens` : `step ${place.toLocaleString("en")}`;
}

function stopWords(state, stop) {
  const word = { [LAST]: "last checkpoint", [MEAN]: "average over layers", [WHOLE]: "the whole model" }[stop];
  if (word) return word;
  if (state.view === "layer") return placeWords(state, stop);
  return state.across === "depth" ? `depth ${shortNumber(stop)}` : `layer ${stop}`;
}

// The last point that is not beyond a step (or a number of tokens).
function pointAt(points, state, stop) {
  if (stop === LAST) return points.at(-1);
  return points.findLast(({ checkpoint }) => checkpoint[state.by] !== null && checkpoint[state.by] <= stop);
}

// The row of a layer, of the nearest one to a depth, or of the average; the only one of what has no layers.
function rowAt(state, series, { rows }, stop) {
  if (series.isWhole) return rows[0];
  if (stop === MEAN) return rows.find((each) => each.layer === null);
  if (state.across === "layer") return rows.find((each) => each.layer === stop);
  const layers = layersOf({ rows });
  return layers.length ? nearest(layers, stop, (each) => each.depth) : undefined;
}

const layersOf = ({ rows }) => rows.filter((each) => each.layer !== null);

// Lines: {series, stop, checkpoint, rows}, rows in order of x; and those that have none.
function drawnLines(results, state) {
  const lines = [];
  const lacking = [];
  for (const series of chosenSeries(results, state)) {
    const points = shownPoints(state, series);
    const named = points.filter(({ checkpoint }) => checkpoint[state.by] !== null);
    for (const stop of drawnStops(results, state)) {
      const line = { series, stop, checkpoint: null, rows: [] };
      if (state.view === "layer") {
        const point = pointAt(points, state, stop);
        if (point) Object.assign(line, { checkpoint: point.checkpoint, rows: layersOf(point) });
      } else if (state.view === "step") {
        line.rows = named.map((each) => rowAt(state, series, each, stop)).filter(Boolean);
      } else {
        line.rows = named.flatMap(layersOf);
      }
      (line.rows.length ? lines : lacking).push(line);
    }
  }
  return { lines, lacking };
}
