// The opening pictures, drawn without Vega, which takes longer to load than they take to draw.

const [ANISOTROPY_MEASURE, WITHOUT_MASSIVE] = ["anisotropy", "anisotropy_without_massive_tokens"];
const PLOT_HEIGHT = 210;
const MARGIN = { left: 44, right: 12, top: 8, bottom: 40 };
const [MOST_X_TICKS, MOST_Y_TICKS] = [8, 5];
const POINT = 2; // pixels

// States of the opening pictures: anisotropy by layer, then with and without massive tokens; if no model has massive
// tokens, a dimension instead.
function pictureStates(results) {
  const layerMeasures = results.measured.filter((name) => results.series.some((series) => series.measure === name && !series.isWhole));
  const first = layerMeasures.includes(ANISOTROPY_MEASURE) ? ANISOTROPY_MEASURE : layerMeasures[0];
  const isMassive = first === ANISOTROPY_MEASURE && layerMeasures.includes(WITHOUT_MASSIVE) && hasMassiveTokens(results);
  const second = [...DIMENSION_MEASURES, ...layerMeasures].find((name) => layerMeasures.includes(name) && ![first, WITHOUT_MASSIVE].includes(name));
  const pictures = [[first], isMassive ? [first, WITHOUT_MASSIVE] : [second]];
  return pictures.filter((measures) => measures.every(Boolean)).map((measures) => pictureState(results, measures));
}

function hasMassiveTokens(results) {
  const { lines } = drawnLines(results, pictureState(results, [ANISOTROPY_MEASURE, WITHOUT_MASSIVE]));
  return withoutRepeats(lines).lines.some((line) => line.series.measure === WITHOUT_MASSIVE);
}

// The models that the sentences above the pictures name. Long labels come first, since they may contain short labels.
function namedModels(results) {
  let text = element("findings").textContent;
  const names = [];
  for (const { name, label } of [...results.models].sort((a, b) => b.label.length - a.label.length)) {
    if (!text.includes(label)) continue;
    names.push(name);
    text = text.replaceAll(label, "");
  }
  return names;
}

function pictureState(results, measure) {
  const measureSeries = results.series.filter((entry) => measure.includes(entry.measure));
  const modelNames = namedModels(results);
  const namedSeries = measureSeries.filter((entry) => modelNames.includes(entry.model));
  const series = namedSeries.length ? namedSeries : measureSeries;
  const selections = measure.map((name) => {
    const names = series.filter((entry) => entry.measure === name).map((entry) => entry.selection);
    return names.includes("all") ? "all" : names[0];
  });
  const model = [...new Set(series.map((entry) => entry.model))];
  const state = { ...startState(results), measure, model, rows: selections, across: acrossFor(series), together: measure.length > 1 };
  const earlierStops = stops(results, state).slice(0, -2); // without the last step, which is the last checkpoint
  const keep = model.length === 1 ? [earlierStops[0], earlierStops[Math.ceil(earlierStops.length / 2)]].filter((stop) => stop !== undefined) : [];
  return { ...state, keep: [...new Set(keep)] };
}

function pictureTitle(results, { measure: [name], together, across, keep }) {
  const { label, axis } = results.measuresByName.get(name);
  const subject = together ? `${label} with and without massive tokens` : axis === DIMENSION ? `${axis} (${label})` : label;
  return `${subject} by ${across === "depth" ? "relative depth" : "layer"}${keep.length ? " and step" : ""}`;
}

function showPictures(results) {
  const figures = pictureStates(results).map((state) => {
    const { lines, same } = withoutRepeats(drawnLines(results, state).lines);
    const title = pictureTitle(results, state);
    const place = make("div", { className: "picture", role: "img", ariaLabel: `${title}: ${count(lines.length, "line")}` });
    const caption = [sampleWords(results, lines.flatMap((line) => line.rows)), same.length && `No massive tokens, so one line: ${labelsOf(results.modelsByName, same)}`];
    place.draw = () => place.replaceChildren(...linePicture(results, state, lines, place.clientWidth));
    return make("figure", {}, make("h2", { textContent: title }), place, make("figcaption", { textContent: caption.filter(Boolean).join(". ") }));
  });
  element("pictures").hidden = !figures.length;
  element("pictures").replaceChildren(...figures);
  for (const place of all("#pictures .picture")) place.draw();
}

// Drop lines without massive tokens of models that have no massive tokens, and return the other lines and these models.
function withoutRepeats(lines) {
  const values = ({ rows }) => JSON.stringify(rows.map(({ layer, value }) => [layer, value]));
  const isSame = (line) => lines.some((other) =>
    other.series.measure === ANISOTROPY_MEASURE && other.series.model === line.series.model && other.stop === line.stop && values(other) === values(line));
  const repeats = lines.filter((line) => line.series.measure === WITHOUT_MASSIVE && isSame(line));
  return { lines: lines.filter((line) => !repeats.includes(line)), same: [...new Set(repeats.map((line) => line.series.model))] };
}

function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// A picture of lines with bands and points, and its legends.
function linePicture(results, state, lines, width) {
  const names = namesOfLines(results, state, lines);
  const unique = (key) => [...new Set(names.map((name) => name[key]))];
  const [colours, seconds] = [unique("colour"), unique("second")];
  const palette = styled("lines").split(" ");
  const colour = (name) => palette[colours.indexOf(name) % palette.length];
  const dash = (list, name) => DASHES[list.indexOf(name) % DASHES.length].join(" ");
  const isDashed = seconds.length > 1; // otherwise dashes repeat the colours
  const entry = (label, stroke, dashes) =>
    make("li", {}, svg("svg", { width: 24, height: 10 }, svg("line", { x1: 0, x2: 24, y1: 5, y2: 5, stroke, "stroke-width": 2, "stroke-dasharray": dashes })), label);
  const legends = [
    colours.map((name) => entry(name, colour(name), isDashed ? "none" : dash(colours, name))),
    isDashed ? seconds.map((name) => entry(name, styled("quiet"), dash(seconds, name))) : [],
  ].filter((entries) => entries.length);
  const across = (row) => row[state.across];
  const rows = lines.flatMap((line) => line.rows);
  const finite = (values) => values.filter(Number.isFinite);
  const heights = finite(rows.flatMap(({ value, low, high }) => [value, low, high]));
  if (lines.length && beginsAtZero(results, lines[0].series.measure, rows)) heights.push(0);
  const yTicks = ticks(Math.min(...heights, Infinity), Math.max(...heights, -Infinity), MOST_Y_TICKS);
  const [left, right] = [Math.min(...rows.map(across)), Math.max(...rows.map(across))];
  const [bottom, top] = [yTicks[0], yTicks.at(-1)];
  const x = (value) => MARGIN.left + ((value - left) / (right - left || 1)) * (width - MARGIN.left - MARGIN.right);
  const y = (value) => MARGIN.top + (1 - (value - bottom) / (top - bottom || 1)) * PLOT_HEIGHT;
  const xTicks = ticks(left, right, Math.min(MOST_X_TICKS, state.across === "layer" ? right - left : MOST_X_TICKS)).filter((tick) => tick >= left && tick <= right);
  const base = MARGIN.top + PLOT_HEIGHT;
  const height = base + MARGIN.bottom;
  const text = (words, attributes) => svg("text", { class: "tick", ...attributes }, words);
  const shapes = [
    ...yTicks.flatMap((value) => [
      svg("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(value), y2: y(value) }),
      text(shortNumber(value), { x: MARGIN.left - 6, y: y(value) + 4, "text-anchor": "end" }),
    ]),
    ...xTicks.map((value) => text(shortNumber(value), { x: x(value), y: base + 16, "text-anchor": "middle" })),
    text(state.across === "depth" ? "Relative depth (layer over number of layers)" : "Layer", { x: (x(left) + x(right)) / 2, y: base + 34, "text-anchor": "middle" }),
    ...lines.flatMap(({ rows }, at) => {
      const stroke = colour(names[at].colour);
      const dashes = isDashed ? dash(seconds, names[at].second) : dash(colours, names[at].colour);
      const path = (points) => points.map((point, first) => `${first ? "L" : "M"}${point.join(" ")}`).join("");
      const bands = runs(rows, ({ low, high }) => Number.isFinite(low) && Number.isFinite(high));
      const edges = (run) => [...run.map((row) => [x(across(row)), y(row.high)]), ...run.map((row) => [x(across(row)), y(row.low)]).reverse()];
      const finiteRows = rows.filter(({ value }) => Number.isFinite(value));
      return [
        ...bands.map((run) => svg("path", { d: `${path(edges(run))}Z`, fill: stroke, opacity: 0.14 })),
        ...runs(rows, ({ value }) => Number.isFinite(value)).map((run) =>
          svg("path", { d: path(run.map((row) => [x(across(row)), y(row.value)])), fill: "none", stroke, "stroke-width": 1.8, "stroke-dasharray": dashes })),
        ...finiteRows.map((row) => point(row, x(across(row)), y(row.value), stroke, names[at])),
      ];
    }),
  ];
  return [...legends.map((entries) => make("ul", { className: "legend" }, ...entries)), svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` }, ...shapes)];
}

// The mark of a value: an open diamond if its checkpoint is not ok, an open ring if it is suspect, as in figures.
function point(row, x, y, stroke, { colour, second }) {
  const title = svg("title", {}, `${[colour, second].filter(Boolean).join(", ")}, layer ${row.layer}: ${shortNumber(row.value)}`);
  if (!row.mark) return svg("circle", { cx: x, cy: y, r: POINT, fill: stroke }, title);
  const look = { fill: styled("surface"), stroke, "stroke-width": 1.4 };
  if (row.mark === SUSPECT) return svg("circle", { cx: x, cy: y, r: 2 * POINT, ...look }, title);
  return svg("path", { d: `M${x - 4} ${y}l4 -4l4 4l-4 4Z`, ...look }, title);
}

// Runs of consecutive rows for which a condition holds.
function runs(rows, holds) {
  const parts = [[]];
  for (const row of rows) {
    if (holds(row)) parts.at(-1).push(row);
    else parts.push([]);
  }
  return parts.filter((run) => run.length);
}

// Round numbers that cover a range.
function ticks(low, high, most) {
  if (!(high >= low)) return [0, 1];
  const rough = (high - low) / most || Math.abs(high) || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((factor) => factor >= rough * (1 - 1e-9)) ?? 10 * power;
  const [first, last] = [Math.floor(low / step + 1e-9), Math.ceil(high / step - 1e-9)];
  return Array.from({ length: last - first + 1 }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}
