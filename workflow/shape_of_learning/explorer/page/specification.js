// What is drawn, in Vega-Lite's words.

const LOOKS = {
  light: {
    ink: "#1c1f23", quiet: "#5b626b", rule: "#e4e5e7", surface: "#ffffff",
    lines: ["#0173b2", "#c8660a", "#02835f", "#a64d9d", "#b3261e", "#3d8fc4", "#8a5f35", "#6b6b6b"],
    stops: [0.9, 0],
  },
  dark: {
    ink: "#e8eaed", quiet: "#a3abb5", rule: "#2d323a", surface: "#16191e",
    lines: ["#5db3ea", "#f0a24b", "#3fc9a0", "#dd98d6", "#f2857c", "#9bd2f5", "#d3a67a", "#b4b9c0"],
    stops: [0.2, 1],
  },
};
const VIRIDIS = ["#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725"];
const DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 3], [6, 2, 2, 2, 2, 2]];
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
const WIDE = 860; // pixels, from which on there are two panels beside each other
const AXIS_WIDTH = 38;
const GAP = 24;
const ENTRY_WIDTH = 190; // of a legend
const MOST_POINTS = 48; // of a line, whose points are drawn
// Of an axis or a legend: the place that there is does not suffice for all digits.
const SHORT_LABEL = "abs(datum.value) >= 1e5 || (datum.value !== 0 && abs(datum.value) < 1e-3) ? format(datum.value, '.3~e') : datum.label";
const GOOD = "as it should be";
const NOT_OK = "checkpoint is not ok";
const SUSPECT = "near-duplicates";
const SHAPES = { domain: [NOT_OK, SUSPECT], range: ["circle", "diamond"] };

// Of the same panel what has one measure; in heat maps each line has its own.
function panelOf(results, name) {
  const { label, axis } = results.measuresByName.get(name);
  return axis && !label.toLowerCase().startsWith(axis.toLowerCase()) ? `${label} · ${axis}` : label;
}

function mixed(one, other, share) {
  const parts = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  const [a, b] = [parts(one), parts(other)];
  return `#${a.map((each, at) => Math.round(each + share * (b[at] - each)).toString(16).padStart(2, "0")).join("")}`;
}

function viridis(share) {
  const place = share * (VIRIDIS.length - 1);
  const before = Math.min(Math.floor(place), VIRIDIS.length - 2);
  return mixed(VIRIDIS[before], VIRIDIS[before + 1], place - before);
}

function lineColours(look, number, isByStop) {
  if (isByStop) {
    const [first, last] = look.stops;
    return Array.from({ length: number }, (_, at) => viridis(first + ((last - first) * at) / Math.max(1, number - 1)));
  }
  return Array.from({ length: number }, (_, at) => {
    const colour = look.lines[at % look.lines.length];
    const round = Math.floor(at / look.lines.length);
    return round === 0 ? colour : mixed(colour, round % 2 ? look.ink : look.surface, round > 2 ? 0.6 : 0.4);
  });
}

// The rows of lines as the drawing reads them: `i` and `s` are the numbers of the row and of the line.
function drawnRows(results, state, lines, names) {
  const { depth, layer, value } = results.columns;
  return lines.flatMap((line, s) =>
    line.rows.map((i) => {
      const row = results.row(line.series, i);
      const x = state.view === "layer" ? (state.across === "depth" ? depth[i] : layer[i]) : row[state.by];
      const isBand = Number.isFinite(row.low) && Number.isFinite(row.high);
      const mark = row.isBad ? NOT_OK : row.isSuspect ? SUSPECT : GOOD;
      return {
        panel: panelOf(results, line.series.measure),
        s, i, x, mark,
        y: Number.isFinite(value[i]) ? value[i] : null,
        low: isBand ? row.low : null,
        high: isBand ? row.high : null,
        colour: names[s].colour,
        second: names[s].second,
      };
    }),
  );
}

function axisAcross(state, look, rows) {
  if (state.view === "layer") {
    const isDepth = state.across === "depth";
    return {
      type: "quantitative",
      title: isDepth ? "Relative depth (layer over number of layers)" : "Layer",
      scale: { zero: false, nice: false },
      axis: { tickMinStep: isDepth ? 0.05 : 1, format: isDepth ? "~g" : "d", tickCount: 8 },
    };
  }
  const title = state.by === "tokens" ? "Training tokens" : "Training step";
  const places = ascending(rows.map((row) => row.x));
  const axis = { labelExpr: "datum.value === 0 ? '0' : replace(format(datum.value, '~s'), 'G', 'B')" };
  if (!state.log) return { type: "quantitative", title, scale: { zero: false, nice: false }, axis };
  const first = places.find((each) => each > 0) ?? 1;
  const last = places.at(-1) ?? 1;
  const powers = places[0] === 0 ? [0] : [];
  for (let power = Math.ceil(Math.log10(first)); 10 ** power <= last; power++) powers.push(10 ** power);
  return {
    type: "quantitative",
    title,
    scale: { type: "symlog", constant: first, zero: false, nice: false },
    axis: { ...axis, values: powers.length > 1 ? powers : places.slice(0, 8), labelOverlap: true },
  };
}

function columnsAndWidth(width, panels, narrowest) {
  const columns = Math.max(1, Math.min(panels, width >= WIDE ? Math.floor((width + GAP) / narrowest) : 1));
  return { columns, panelWidth: Math.max(120, Math.floor((width - (columns - 1) * GAP) / columns) - AXIS_WIDTH - 8) };
}

function lineSpecification(results, state, drawn, look, width) {
  const names = namesOfLines(results, state, drawn.lines);
  const rows = drawnRows(results, state, drawn.lines, names);
  const unique = (key) => [...new Set(names.map((each) => each[key]))];
  const isByStop = names.some((each) => each.isByStop);
  const [colours, seconds] = [unique("colour"), unique("second")];
  const panels = [...new Set(rows.map((row) => row.panel))];
  const { columns, panelWidth } = columnsAndWidth(width, panels.length, 420);
  const longest = Math.max(...drawn.lines.map((each) => each.rows.length));
  const marks = [...new Set(rows.map((row) => row.mark))].filter((each) => each !== GOOD);
  drawn.inLegends = colours.length + (seconds.length > 1 ? seconds.length : 0) + marks.length;
  const legend = { title: null, orient: "top", direction: "horizontal", columns: Math.max(1, Math.floor(width / ENTRY_WIDTH)), symbolOpacity: 1, labelLimit: Math.min(300, width - 60) };
  const ofLines = { ...legend, symbolType: "stroke", symbolStrokeWidth: 2, symbolSize: 300 };
  const ofMarks = { ...legend, values: marks, symbolSize: 50, symbolStrokeWidth: 1.4 };
  const colour = {
    field: "colour",
    type: "nominal",
    sort: null,
    scale: { domain: colours, range: lineColours(look, colours.length, isByStop) },
    legend: ofLines,
  };
  const x = { field: "x", ...axisAcross(state, look, rows) };
  const y = { type: "quantitative", title: null, scale: { zero: false }, axis: { labelExpr: SHORT_LABEL } };
  // Dashes tell apart what colours do not; else they say the same as colours, for who sees none.
  const dashed = (field, domain, legend) => ({
    strokeDash: { field, type: "nominal", sort: null, legend, scale: { domain, range: domain.map((_, at) => DASHES[at % DASHES.length]) } },
  });
  const dash = seconds.length > 1
    ? dashed("second", seconds, { ...ofLines, symbolStrokeColor: look.quiet })
    : !isByStop && colours.length <= DASHES.length && dashed("colour", colours, ofLines);
  const detail = { field: "s", type: "nominal" };
  const bands = state.intervals && {
    mark: { type: "area", opacity: 0.14, invalid: "break-paths-show-domains", tooltip: null },
    encoding: { x, y: { ...y, field: "low" }, y2: { field: "high" }, color: colour, detail },
  };
  const points = {
    params: [{ name: "near", select: { type: "point", nearest: true, on: "pointerover", clear: "pointerout", fields: ["i"] } }],
    mark: { type: "point", filled: true, tooltip: { content: "data" } },
    encoding: {
      x,
      y: { ...y, field: "y" },
      detail,
      color: colour,
      size: { condition: [{ test: "datum.i === cursor", value: 130 }, { param: "near", empty: false, value: 90 }], value: 18 },
      opacity: { condition: [{ test: "datum.i === cursor", value: 1 }, { param: "near", empty: false, value: 1 }], value: longest <= MOST_POINTS ? 1 : 0 },
    },
  };
  const hollow = marks.length > 0 && {
    transform: [{ filter: `datum.mark !== '${GOOD}'` }],
    mark: { type: "point", filled: false, fill: look.surface, size: 40, strokeWidth: 1.4, opacity: 1, tooltip: { content: "data" } },
    encoding: {
      x,
      y: { ...y, field: "y" },
      detail,
      color: colour,
      shape: { field: "mark", type: "nominal", scale: SHAPES, legend: ofMarks },
    },
  };
  const curve = {
    mark: { type: "line", strokeWidth: 1.8, invalid: "break-paths-show-domains", tooltip: null },
    encoding: { x, y: { ...y, field: "y" }, color: colour, detail, ...dash },
  };
  return {
    data: { values: rows },
    params: [{ name: "cursor", value: -1 }],
    facet: { field: "panel", type: "nominal", sort: panels, title: null, header: { labelAnchor: "start", labelLimit: panelWidth } },
    columns,
    bounds: "flush",
    spacing: { row: 76, column: GAP + AXIS_WIDTH },
    spec: { width: panelWidth, height: panels.length > 1 ? 190 : Math.min(380, Math.max(240, panelWidth * 0.5)), layer: [bands, curve, points, hollow].filter(Boolean) },
    resolve: { scale: { y: "independent" }, axis: { x: "independent" } },
  };
}

function specification(results, state, drawn, theme, width) {
  const look = LOOKS[theme];
  const make = state.view === "heat" ? heatSpecification : lineSpecification;
  const made = make(results, state, drawn, look, width);
  // Legends beside each other, unless their entries do not fit.
  const inRow = width >= ENTRY_WIDTH * Math.max(3, drawn.inLegends ?? 0);
  const text = { labelColor: look.quiet, titleColor: look.ink, labelFont: FONT, titleFont: FONT, labelFontSize: 12, titleFontSize: 12 };
  return {
    ...made,
    background: look.surface,
    padding: { left: 2, right: 8, top: 4, bottom: 4 },
    config: {
      view: { stroke: null },
      axis: { ...text, titleFontWeight: 400, gridColor: look.rule, domainColor: look.rule, tickColor: look.rule, tickSize: 4, labelPadding: 5, titlePadding: 8 },
      axisX: { grid: false, domainColor: look.quiet, tickColor: look.quiet },
      axisY: { domain: false, ticks: false, minExtent: AXIS_WIDTH, tickCount: 5 },
      header: { labelColor: look.ink, labelFont: FONT, labelFontSize: 13, labelFontWeight: 600, labelPadding: 8 },
      title: { color: look.ink, font: FONT, fontSize: 13, fontWeight: 600, offset: 6, subtitleColor: look.quiet, subtitleFont: FONT, subtitleFontSize: 12, frame: "group" },
      legend: { labelColor: look.ink, labelFont: FONT, labelFontSize: 12, rowPadding: 3, columnPadding: 14, offset: 10, layout: { top: { direction: inRow ? "horizontal" : "vertical", margin: inRow ? 16 : 4 } } },
    },
  };
}

// Vega-Lite makes the symbols of a legend of shapes transparent where the marks have a fill of their own.
function withSymbols(written, theme) {
  for (const legend of written.legends ?? []) {
    if (legend.shape) legend.encode.symbols.update.stroke = { value: LOOKS[theme].quiet };
  }
  return written;
}
