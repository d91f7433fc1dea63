// The specification of the chart in Vega-Lite: a panel for each measure, or a heat map for each line.

const DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 3], [6, 2, 2, 2, 2, 2]];
const FONT_SIZE = 12;
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
const WIDE = 860; // pixels, from which panels stand beside each other
const NARROWEST = { layer: 420, step: 420, heat: 280 };
const AXIS_WIDTH = 38;
const GAP = 24;
const ROW_GAP = 76; // between panels, for an axis below and a title of one line above
const [TITLE_LINE, TITLE_WIDTH] = [16, 0.85]; // height in pixels; width of a label to that of the same words as a title
const ENTRY_PADDING = 46; // of a legend's entry, whose sign is before its label
const LABEL_WIDTH = 44; // of an axis of checkpoints
const MOST_POINTS = 48; // a longer line is drawn without points
const WIDE_RANGE = 10; // highest value over lowest, from which colours have a log scale
const TALLEST = 300; // of a heat map
// Axes and legends have no room for all digits of very large or small numbers.
const SHORT_LABEL = "abs(datum.value) >= 1e5 || (datum.value !== 0 && abs(datum.value) < 1e-3) ? format(datum.value, '.3~e') : datum.label";
const FACE = { type: "nominal", sort: null };

// Read a colour from the page's style sheet, which depends on the theme.
function styled(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

const LONGEST_WAIT = 200; // milliseconds, for a frame

// Wait for the next frame, but not for ever: while printing, in a screenshot or in a background tab there may be none.
function nextFrame() {
  return new Promise((resolve) => {
    requestAnimationFrame(resolve);
    setTimeout(resolve, LONGEST_WAIT);
  });
}

let drawing = null; // a promise of Vega

// Run Vega, whose program is in the page as text so that the page opens without waiting for it.
function loadDrawing() {
  drawing ??= nextFrame().then(() => new Promise((resolve) => setTimeout(resolve))).then(() => {
    document.head.append(make("script", { textContent: element("drawing").textContent }));
  });
  return drawing;
}

async function embed(place, content, tooltip = false) {
  await loadDrawing();
  return vegaEmbed(place, content, { mode: "vega-lite", actions: false, defaultStyle: false, renderer: "canvas", logLevel: ERRORS_ONLY, tooltip });
}

function specification(results, state, lines, width) {
  const isHeat = state.view === "heat";
  const names = namesOfLines(results, state, lines);
  const measures = [...new Set(lines.map((line) => line.series.measure))];
  const panels = isHeat ? lines.map((line) => [line]) : linePanels(results, state, lines, measures);
  // The heat maps of a model stand beside each other if it has several measures; otherwise all heat maps do.
  const models = isHeat ? [...new Set(lines.map((line) => line.series.model))] : [];
  const modelPanels = models.map((name) => panels.filter(([line]) => line.series.model === name));
  const groups = measures.length > 1 && modelPanels.some((panel) => panel.length > 1) ? modelPanels : [panels];
  const mostColumns = width < WIDE ? 1 : Math.floor((width + GAP) / NARROWEST[state.view]);
  const columns = Math.min(Math.max(...groups.map((group) => group.length)), mostColumns);
  const look = { ...lineLook(state, names, width), panelWidth: Math.max(120, Math.floor((width - (columns - 1) * GAP) / columns) - AXIS_WIDTH - 8) };
  const draw = isHeat ? heatMap : linePanel;
  const titleLines = Math.max(...panels.map((panel) => titleLinesOf(results, state, panel[0], look.panelWidth).length));
  const layout = isHeat ? { spacing: GAP } : { bounds: "flush", spacing: { row: ROW_GAP + (titleLines - 1) * TITLE_LINE, column: GAP + AXIS_WIDTH } };
  const panel = (panelLines) => {
    const namedLines = panelLines.map((line) => ({ ...line, name: names[lines.indexOf(line)] }));
    const measureLines = lines.filter((line) => line.series.measure === panelLines[0].series.measure);
    return { width: look.panelWidth, ...draw(results, state, namedLines, look, panels.indexOf(panelLines), measureLines) };
  };
  return {
    ...theme(look.panelWidth),
    params: [{ name: "cursor", value: -1 }],
    spacing: GAP,
    vconcat: groups.map((group) => ({ columns, ...layout, concat: group.map(panel) })),
  };
}

// Colours, type and margins of all drawings.
function theme(titleLimit = 0) {
  const text = { labelColor: styled("quiet"), titleColor: styled("ink"), labelFont: FONT, titleFont: FONT, labelFontSize: FONT_SIZE, titleFontSize: FONT_SIZE, titleFontWeight: 400 };
  return {
    background: styled("surface"),
    padding: { left: 2, right: 8, top: 4, bottom: 4 },
    config: {
      view: { stroke: null },
      axis: { ...text, gridColor: styled("rule"), domainColor: styled("rule"), tickColor: styled("rule"), tickSize: 4, labelPadding: 5, titlePadding: 8 },
      axisX: { grid: false, domainColor: styled("quiet"), tickColor: styled("quiet") },
      axisY: { domain: false, ticks: false, minExtent: AXIS_WIDTH, tickCount: 5 },
      title: { color: styled("ink"), font: FONT, fontSize: 13, fontWeight: 600, offset: 8, anchor: "start", frame: "group", limit: titleLimit, subtitleColor: styled("quiet"), subtitleFont: FONT, subtitleFontSize: 12 },
      legend: { ...text, labelColor: styled("ink"), labelLimit: 0, rowPadding: 3, columnPadding: 14, offset: 10, layout: { top: { direction: "vertical", anchor: "start", margin: 4 } } },
    },
  };
}

// Divide lines into panels by measure; by step also by phase, since the steps of a fine-tuning begin again at 0.
function linePanels(results, state, lines, measures) {
  const phase = (line) => (state.view === "step" ? phaseOf(results, line) : "");
  const phases = [...new Set(lines.map(phase))].sort();
  const panels = measures.flatMap((name) => phases.map((phaseOfPanel) => lines.filter((line) => line.series.measure === name && phase(line) === phaseOfPanel)));
  return panels.filter((panel) => panel.length);
}

const phaseOf = (results, { series }) => results.modelsByName.get(series.model).phase ?? "";

// Colours and dashes of lines, the same in all panels. Dashes distinguish lines of the same colour; if each line has
// its own colour, dashes repeat the colours for readers who cannot see them.
function lineLook(state, names, width) {
  const unique = (key) => [...new Set(names.map((name) => name[key]))];
  const [colours, seconds] = [unique("colour"), unique("second")];
  const isByStop = names.some((name) => name.isByStop);
  const legend = { title: null, orient: "top", direction: "horizontal", symbolType: "stroke", symbolStrokeWidth: 2, symbolSize: 300, symbolOpacity: 1 };
  const extent = styled("stops").split(" ").map(Number);
  const makeLegend = (names, look) => ({ ...look, ...legendLabels(names, width) });
  const makeDashes = (field, domain, look) => ({ ...FACE, field, scale: { domain, range: DASHES }, legend: makeLegend(domain, look) });
  const colour = isByStop ? { scheme: { name: "viridis", extent } } : { range: styled("lines").split(" ") };
  return {
    color: { ...FACE, field: "colour", scale: { domain: colours, ...colour }, legend: makeLegend(colours, legend) },
    strokeDash: seconds.length > 1
      ? makeDashes("second", seconds, { ...legend, symbolStrokeColor: styled("quiet") })
      : makeDashes("colour", colours, legend),
  };
}

const pen = document.createElement("canvas").getContext("2d");

function textWidth(text) {
  pen.font = `${FONT_SIZE}px ${FONT}`;
  return pen.measureText(text).width;
}

// The number of columns that fit; a label that is wider than the legend is broken into lines.
function columnsOfLegend(names, width) {
  return Math.max(1, Math.floor(width / (Math.max(...names.map(textWidth)) + ENTRY_PADDING)));
}

function legendLabels(names, width) {
  const room = width - AXIS_WIDTH;
  const labelLines = names.map((name) => linesOf(name, room - ENTRY_PADDING));
  const lookUp = `${JSON.stringify(labelLines)}[indexof(${JSON.stringify(names)}, datum.value)]`;
  return { columns: columnsOfLegend(names, room), ...(labelLines.some((lines) => lines.length > 1) ? { labelExpr: lookUp } : {}) };
}

function linesOf(text, width) {
  const lines = [""];
  for (const word of text.split(/(?<=[\s,/_-])/)) {
    if (lines.at(-1) && textWidth(lines.at(-1) + word) > width) lines.push("");
    lines[lines.length - 1] += word;
  }
  return lines;
}

function titleOf(results, { series }) {
  const { label, axis } = results.measuresByName.get(series.measure);
  return axis && !label.toLowerCase().startsWith(axis.toLowerCase()) ? `${label} · ${axis}` : label;
}

// The lines of the title of a panel, which is broken if it is wider than the panel.
function titleLinesOf(results, state, line, width) {
  const title = [titleOf(results, line), state.view === "step" && phaseOf(results, line)].filter(Boolean).join(" · ");
  return linesOf(title, width * TITLE_WIDTH);
}

function linePanel(results, state, lines, { color, strokeDash, panelWidth }, at) {
  const values = lines.flatMap(({ series, rows, name }, s) =>
    rows.map((row) => {
      const isBand = Number.isFinite(row.low) && Number.isFinite(row.high);
      return {
        i: row.i, s, mark: row.mark, colour: name.colour, second: name.second,
        x: state.view === "layer" ? row[state.across] : row.checkpoint[state.by],
        y: Number.isFinite(row.value) ? row.value : null,
        low: isBand ? row.low : null,
        high: isBand ? row.high : null,
      };
    }),
  );
  const hoverName = `near_${at}`;
  const isSparse = Math.max(...lines.map((line) => line.rows.length)) <= MOST_POINTS;
  const emphasise = (cursorValue, hoverValue, value) => ({
    condition: [{ test: "datum.i === cursor", value: cursorValue }, { param: hoverName, empty: false, value: hoverValue }], value,
  });
  const zero = beginsAtZero(results, lines[0].series.measure, lines.flatMap((line) => line.rows));
  const yEncoding = { type: "quantitative", title: null, scale: { zero }, axis: { labelExpr: SHORT_LABEL } };
  const encoding = { x: { field: "x", ...axisAcross(state, values, phaseOf(results, lines[0])) }, y: { ...yEncoding, field: "y" }, color, detail: { ...FACE, field: "s" } };
  const gaps = { invalid: "break-paths-show-domains", tooltip: null };
  return {
    title: titleLinesOf(results, state, lines[0], panelWidth),
    height: state.measure.length > 1 ? 190 : Math.min(380, Math.max(240, panelWidth * 0.5)),
    data: { values },
    layer: [
      state.intervals && {
        mark: { type: "area", opacity: 0.14, ...gaps },
        encoding: { ...encoding, y: { ...yEncoding, field: "low" }, y2: { field: "high" } },
      },
      { mark: { type: "line", strokeWidth: 1.8, ...gaps }, encoding: { ...encoding, strokeDash } },
      {
        params: [{ name: hoverName, select: { type: "point", nearest: true, on: "pointerover", clear: "pointerout", fields: ["i"] } }],
        mark: { type: "point", filled: true, tooltip: { content: "data" } },
        encoding: { ...encoding, size: emphasise(130, 90, 18), opacity: emphasise(1, 1, isSparse ? 1 : 0) },
      },
      ...axisBreak(state, values),
      ...[[NOT_OK, "diamond"], [SUSPECT, "circle"]].map(([mark, shape]) => ({
        transform: [{ filter: `datum.mark === '${mark}'` }],
        mark: { type: "point", shape, filled: false, fill: styled("surface"), size: 40, strokeWidth: 1.4, opacity: 1, tooltip: { content: "data" } },
        encoding,
      })),
    ].filter(Boolean),
  };
}

// Two slashes on a log axis between 0, which has no logarithm, and the first place beyond it.
function axisBreak(state, rows) {
  const places = ascending(rows.map((row) => row.x));
  if (state.view !== "step" || !state.log || places[0] !== 0 || places.length < 2) return [];
  const at = { x: { datum: (Math.SQRT2 - 1) * places[1] }, y: { value: "height" } }; // half of the way on a symlog scale
  const text = (words, color, fontSize) => ({ mark: { type: "text", text: words, color, fontSize, tooltip: null }, encoding: at });
  return [text("█", styled("surface"), 9), text("//", styled("quiet"), 12)].map((layer) => ({ data: { values: [{}] }, ...layer }));
}

const stepTitle = (state, phase) => `${phase ? "Fine-tuning" : "Training"} ${state.by === "tokens" ? "tokens" : "step"}`;

function axisAcross(state, rows, phase) {
  const scale = { zero: false, nice: false };
  if (state.view === "layer") {
    const isDepth = state.across === "depth";
    const title = isDepth ? "Relative depth (layer over number of layers)" : "Layer";
    return { type: "quantitative", title, scale, axis: { tickMinStep: isDepth ? 0.05 : 1, format: isDepth ? "~g" : "d", tickCount: 8 } };
  }
  const across = { type: "quantitative", title: stepTitle(state, phase) };
  const axis = { labelExpr: "datum.value === 0 ? '0' : replace(format(datum.value, '~s'), 'G', 'B')", labelOverlap: true };
  if (!state.log) return { ...across, scale, axis };
  const places = ascending(rows.map((row) => row.x));
  const first = places.find((place) => place > 0) ?? 1;
  const powers = places[0] === 0 ? [0] : [];
  for (let power = Math.ceil(Math.log10(first)); 10 ** power <= places.at(-1); power++) powers.push(10 ** power);
  const values = powers.length > 1 ? powers : places.slice(0, 8);
  return { ...across, scale: { ...scale, type: "symlog", constant: first }, axis: { ...axis, values } };
}

// A heat map with columns of checkpoints and rows of layers; all heat maps of `measureLines` have the same colours.
function heatMap(results, state, [line], { panelWidth }, at, measureLines) {
  const checkpoints = [...new Set(line.rows.map((row) => row.checkpoint))];
  const layers = ascending(line.rows.map((row) => row[state.across])).reverse();
  const step = Math.max(3, Math.min(28, Math.floor((layers.length < 16 ? TALLEST / 2 : TALLEST) / layers.length)));
  const values = line.rows.map((row) => ({
    i: row.i, mark: row.mark, x: checkpoints.indexOf(row.checkpoint), y: row[state.across],
    value: Number.isFinite(row.value) ? row.value : null,
  }));
  const finite = measureLines.flatMap((map) => map.rows).map((row) => row.value).filter(Number.isFinite).sort((a, b) => a - b);
  const [low, high] = finite.length ? [finite[0], finite.at(-1)] : [0, 0];
  const isLog = low > 0 && high > WIDE_RANGE * low;
  const labels = JSON.stringify(checkpoints.map((checkpoint) => shortCount(checkpoint[state.by])));
  const labelStep = Math.ceil(checkpoints.length / Math.max(1, Math.floor(panelWidth / LABEL_WIDTH)));
  const legend = { title: isLog ? "log scale" : null, titleColor: styled("quiet"), labelExpr: SHORT_LABEL, orient: "bottom", direction: "horizontal", gradientLength: Math.min(220, panelWidth), gradientThickness: 8, tickCount: 4 };
  const x = {
    field: "x", type: "ordinal", title: `${stepTitle(state, phaseOf(results, line))} of each checkpoint`,
    scale: { domain: [...checkpoints.keys()], padding: 0 },
    axis: { values: [...checkpoints.keys()].filter((place) => place % labelStep === 0), labelExpr: `${labels}[datum.value]`, labelAngle: 0 },
  };
  const y = {
    field: "y", type: "ordinal", title: state.across === "depth" ? "Relative depth" : "Layer", sort: null,
    scale: { domain: layers, padding: 0 },
    axis: { minExtent: AXIS_WIDTH - 22, titlePadding: 4, labelOverlap: "greedy", format: state.across === "depth" ? ".2~f" : "d" },
  };
  const mark = { type: "point", filled: false, opacity: 1, stroke: styled("ink"), strokeWidth: 1.2, tooltip: null };
  return {
    title: { text: titleLinesOf(results, state, line, panelWidth), subtitle: [line.name.colour, line.name.second].filter(Boolean).join(", "), offset: 14 },
    height: step * layers.length,
    data: { values },
    layer: [
      {
        mark: { type: "rect", invalid: "filter", tooltip: { content: "data" } },
        encoding: {
          x, y,
          color: { field: "value", type: "quantitative", scale: { type: isLog ? "log" : "linear", scheme: "viridis", domain: [low, high] }, legend: high > low ? legend : null },
        },
      },
      {
        transform: [{ filter: `datum.mark === '${NOT_OK}'` }, { aggregate: [], groupby: ["x"] }],
        mark: { ...mark, shape: "diamond", y: -6, size: 26 },
        encoding: { x },
      },
      {
        transform: [{ filter: `datum.mark === '${SUSPECT}'` }],
        mark: { ...mark, shape: "circle", fill: styled("surface"), size: Math.max(4, Math.min(40, 0.4 * step ** 2)) },
        encoding: { x, y },
      },
      {
        mark: { type: "rect", fill: null, stroke: styled("ink"), strokeWidth: 2, tooltip: null, opacity: { expr: "datum.i === cursor ? 1 : 0" } },
        encoding: { x, y },
      },
    ],
    resolve: { scale: { color: "independent" } },
  };
}
