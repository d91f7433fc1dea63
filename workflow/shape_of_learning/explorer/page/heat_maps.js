// Heat maps: of each line a picture of one pixel for each value, which Vega-Lite stretches and puts axes to.

const TALLEST = 300; // pixels
const LABEL_WIDTH = 56;
const WIDE_RANGE = 10; // times the least value, from which on colours are on a log scale
const LIGHT = 0.6; // share of the colours from which on marks are dark

// The rows of a line as a grid: `cells[column + columns * (layers.length - 1 - place)]`, -1 where there is none.
function gridOf(results, state, { rows }) {
  const { checkpoint, layer, depth } = results.columns;
  const checkpoints = [...new Set(rows.map((row) => checkpoint[row]))];
  const column = new Map(checkpoints.map((each, at) => [each, at]));
  const layers = ascending(rows.map((row) => layer[row]));
  const place = new Map(layers.map((each, at) => [each, at]));
  const cells = new Int32Array(checkpoints.length * layers.length).fill(-1);
  for (const row of rows) {
    cells[column.get(checkpoint[row]) + checkpoints.length * (layers.length - 1 - place.get(layer[row]))] = row;
  }
  const depths = ascending(rows.map((row) => depth[row]));
  return {
    cells, layers,
    columns: checkpoints.length,
    places: checkpoints.map((each) => results.checkpoints[each][state.by]),
    depths: [depths[0], depths.at(-1)],
  };
}

const COLOURS = Array.from({ length: 256 }, (_, at) => {
  const colour = viridis(at / 255);
  return [1, 3, 5].map((from) => parseInt(colour.slice(from, from + 2), 16));
});

// Where a value lies on the scale of colours, from 0 to 1.
const isLogarithmic = ([low, high]) => low > 0 && high > WIDE_RANGE * low;

function shareOf(value, [low, high]) {
  if (!(high > low)) return 0.5;
  const share = isLogarithmic([low, high]) ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  return Math.max(0, Math.min(1, share));
}

function picture(results, { cells, columns, layers }, extent) {
  const canvas = Object.assign(document.createElement("canvas"), { width: columns, height: layers.length });
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, layers.length);
  cells.forEach((row, at) => {
    const value = row < 0 ? NaN : results.columns.value[row];
    if (!Number.isFinite(value)) return; // the ground shows
    image.data.set([...COLOURS[Math.round(255 * shareOf(value, extent))], 255], 4 * at);
  });
  context.putImageData(image, 0, 0);
  return canvas.toDataURL();
}

// What is hollow in lines: a circle above the column of a checkpoint that is not ok, a diamond in a suspect cell.
function marksOfMap(results, { series }, { cells, columns }, extent, look, [width, height]) {
  const bad = new Map();
  const marks = [];
  cells.forEach((number, at) => {
    if (number < 0) return;
    const x = ((at % columns) + 0.5) * width;
    if (results.isBad(number)) bad.set(at % columns, { x, y: -6, size: 26, mark: NOT_OK, ink: look.ink });
    if (!results.isSuspect(series, number)) return;
    const y = (Math.floor(at / columns) + 0.5) * height;
    const size = Math.max(4, Math.min(40, 0.4 * Math.min(width, height) ** 2));
    const isLight = shareOf(results.columns.value[number], extent) > LIGHT;
    marks.push({ x, y, size, mark: SUSPECT, ink: isLight ? "#000000" : "#ffffff" });
  });
  return [...bad.values(), ...marks];
}

// The least and the greatest finite value of each measure: all its maps have one scale of colours.
function extents(results, lines) {
  const found = new Map();
  for (const { series, rows } of lines) {
    const extent = found.get(series.measure) ?? [Infinity, -Infinity];
    for (const row of rows) {
      const value = results.columns.value[row];
      if (!Number.isFinite(value)) continue;
      if (value < extent[0]) extent[0] = value;
      if (value > extent[1]) extent[1] = value;
    }
    found.set(series.measure, extent);
  }
  return found;
}

function heatSpecification(results, state, drawn, look, width) {
  const names = namesOfLines(results, state, drawn.lines);
  const ofMeasure = extents(results, drawn.lines);
  const { columns, panelWidth } = columnsAndWidth(width, drawn.lines.length, 380);
  drawn.grids = drawn.lines.map((line) => gridOf(results, state, line));
  const maps = drawn.lines.map((line, s) => {
    const extent = ofMeasure.get(line.series.measure);
    const title = [panelOf(results, line.series.measure), names[s].colour, names[s].second].filter(Boolean);
    return oneMap(results, state, drawn.grids[s], { s, line, extent, title, look, panelWidth });
  });
  return { params: [{ name: "cursor", value: { s: -1, column: 0, row: 0 } }], concat: maps, columns, spacing: GAP };
}

function oneMap(results, state, grid, { s, line, extent, title, look, panelWidth }) {
  const { columns, layers, depths, places } = grid;
  const step = Math.max(3, Math.min(28, Math.floor((layers.length < 16 ? TALLEST / 2 : TALLEST) / layers.length)));
  const height = step * layers.length;
  const isDepth = state.across === "depth";
  const half = isDepth ? (depths[1] - depths[0]) / Math.max(1, layers.length - 1) / 2 || 0.5 : 0.5;
  const [lowest, highest] = isDepth ? depths : [layers[0], layers.at(-1)];
  const every = Math.ceil(columns / Math.max(1, Math.floor(panelWidth / LABEL_WIDTH)));
  const labels = places.map((each) => shortCount(each));
  const [low, high] = Number.isFinite(extent[0]) ? extent : [0, 0];
  const isLog = isLogarithmic([low, high]);
  const stops = VIRIDIS.map((_, at) => {
    const share = at / (VIRIDIS.length - 1);
    return isLog ? low * (high / low) ** share : low + (high - low) * share;
  });
  const marks = marksOfMap(results, line, grid, [low, high], look, [panelWidth / columns, step]);
  return {
    title: { text: title[0], subtitle: title.slice(1).join(", "), anchor: "start", offset: 12, limit: panelWidth },
    width: panelWidth,
    height,
    data: { values: [{ url: picture(results, grid, [low, high]), s, low }] },
    layer: [
      {
        mark: { type: "image", x: 0, y: 0, width: panelWidth, height, align: "left", baseline: "top", aspect: false, smooth: false, tooltip: { content: "data" } },
        encoding: { url: { field: "url" } },
      },
      {
        mark: { type: "rect", opacity: 0, tooltip: null, x: 0, y: 0, width: 0, height: 0 },
        encoding: {
          x: {
            datum: 0, type: "quantitative",
            scale: { domain: [-0.5, columns - 0.5], nice: false, zero: false },
            axis: { title: `Training ${state.by === "tokens" ? "tokens" : "step"} of each checkpoint`, values: places.map((_, at) => at).filter((at) => at % every === 0), labelExpr: `${JSON.stringify(labels)}[datum.value]`, tickSize: 3 },
          },
          y: {
            datum: lowest, type: "quantitative",
            scale: { domain: [lowest - half, highest + half], nice: false, zero: false },
            axis: { title: isDepth ? "Relative depth" : "Layer", grid: false, ...(layers.length === 1 && { values: [lowest] }), minExtent: AXIS_WIDTH - 22, titlePadding: 4, tickMinStep: isDepth ? 0.1 : 1, format: isDepth ? "~g" : "d" },
          },
          color: {
            field: "low", type: "quantitative", scale: { type: isLog ? "log" : "linear", domain: stops, range: VIRIDIS, interpolate: "rgb" },
            legend: high <= low ? null : { labelExpr: SHORT_LABEL, title: isLog ? "log scale" : null, titleFontWeight: 400, titleColor: look.quiet, titleFont: FONT, orient: "bottom", direction: "horizontal", gradientLength: Math.min(220, panelWidth), gradientThickness: 8, tickCount: 4, gradientOpacity: 1 },
          },
        },
      },
      marks.length > 0 && {
        data: { values: marks },
        mark: {
          type: "point", filled: false, strokeWidth: 1.2, opacity: 1, tooltip: null, clip: false,
          x: { expr: "datum.x" }, y: { expr: "datum.y" }, size: { expr: "datum.size" },
        },
        encoding: {
          shape: { field: "mark", type: "nominal", scale: SHAPES, legend: null },
          stroke: { field: "ink", type: "nominal", scale: null },
        },
      },
      {
        mark: {
          type: "rect", fill: null, stroke: look.ink, strokeWidth: 2, tooltip: null,
          opacity: { expr: `cursor.s === ${s} ? 1 : 0` },
          x: { expr: `cursor.column * ${panelWidth / columns}` }, x2: { expr: `(cursor.column + 1) * ${panelWidth / columns}` },
          y: { expr: `cursor.row * ${step}` }, y2: { expr: `(cursor.row + 1) * ${step}` },
        },
      },
    ].filter(Boolean),
    resolve: { scale: { color: "independent" } },
  };
}

// What is under the pointer, {s, i}: the line and the row, if there is one; `item` is a picture.
function cellAt(drawn, item, event, view) {
  const canvas = event.target.getBoundingClientRect();
  const [left, top] = view.origin();
  let x = event.clientX - canvas.left - left;
  let y = event.clientY - canvas.top - top;
  for (let group = item.mark.group; group; group = group.mark?.group) {
    x -= group.x ?? 0;
    y -= group.y ?? 0;
  }
  const { s } = item.datum;
  const { cells, columns, layers } = drawn.grids[s];
  const column = Math.floor((x / item.width) * columns);
  const row = Math.floor((y / item.height) * layers.length);
  const isInside = column >= 0 && column < columns && row >= 0 && row < layers.length;
  const i = isInside ? cells[column + columns * row] : -1;
  return i < 0 ? null : { s, i };
}

// Where the frame of the keyboard's cursor stands.
function cursorOf(drawn, s, i) {
  const { cells, columns } = drawn.grids[s];
  const at = cells.indexOf(i);
  return { s, column: at % columns, row: Math.floor(at / columns) };
}
