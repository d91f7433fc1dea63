// The pictures that the page opens with, and specification curves of claims; each is drawn when it comes into view.

const [ANISOTROPY_MEASURE, WITHOUT_MASSIVE] = ["anisotropy", "anisotropy_without_massive_tokens"];
const DIMENSION_MEASURES = ["mada", "mom", "mle", "two_nn"]; // first those that copies disturb least
const VERDICT_COLOURS = { supported: "good", contradicted: "bad", undecided: "open" };
const VERDICT_SHAPES = { supported: "circle", contradicted: "triangle-down", undecided: "square" };
const ROW_HEIGHT = 15; // of an option
const WIDEST_LABELS = 0.45; // of a specification curve

// States of the opening pictures: anisotropy by layer, then what is left of it without massive tokens, or a dimension.
function pictureStates(results) {
  const layered = results.measured.filter((name) => results.series.some((each) => each.measure === name && !each.isWhole));
  const first = layered.includes(ANISOTROPY_MEASURE) ? ANISOTROPY_MEASURE : layered[0];
  const isMassive = first === ANISOTROPY_MEASURE && layered.includes(WITHOUT_MASSIVE);
  const second = [...DIMENSION_MEASURES, ...layered].find((name) => layered.includes(name) && name !== first);
  const pictures = [[first], isMassive ? [first, WITHOUT_MASSIVE] : [second]];
  return pictures.filter((measures) => measures.every(Boolean)).map((measures) => pictureState(results, measures));
}

function pictureState(results, measure) {
  const series = results.series.filter((each) => measure.includes(each.measure));
  const selections = measure.map((name) => {
    const names = series.filter((each) => each.measure === name).map((each) => each.selection);
    return names.includes("all") ? "all" : names[0];
  });
  const model = [...new Set(series.map((each) => each.model))];
  const isOfSeveralDepths = new Set(series.map((each) => each.points[0].rows.length)).size > 1;
  const state = { ...startState(results), measure, model, rows: selections, across: isOfSeveralDepths ? "depth" : "layer", isPicture: true, together: measure.length > 1 };
  const earlier = stops(results, state).slice(0, -2); // before the last step, which is the last checkpoint
  const keep = model.length === 1 ? [earlier[0], earlier[Math.ceil(earlier.length / 2)]].filter((stop) => stop !== undefined) : [];
  return { ...state, keep: [...new Set(keep)] };
}

function pictureTitle(results, { measure: [name], together, across, keep }) {
  const { label, axis } = results.measuresByName.get(name);
  const what = together ? `${label} with and without massive tokens` : axis === DIMENSION ? `${axis} (${label})` : label;
  return `${what} by ${across === "depth" ? "relative depth" : "layer"}${keep.length ? " and step" : ""}`;
}

function showPictures(results, tooltip) {
  const figures = pictureStates(results).map((state) => {
    const { lines } = drawnLines(results, state);
    const title = pictureTitle(results, state);
    const place = make("div", { className: "picture", role: "img", ariaLabel: `${title}: ${count(lines.length, "line")}` });
    const sample = sampleWords(results, lines.flatMap((each) => each.rows));
    place.draw = () => draw(place, (width) => specification(results, state, lines, width), tooltip);
    return make("figure", {}, make("h2", { textContent: title }), place, make("figcaption", { textContent: sample }));
  });
  element("pictures").hidden = !figures.length;
  element("pictures").replaceChildren(...figures);
  return Promise.all(all("#pictures .picture").map((place) => place.draw()));
}

const IN_VIEW = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    IN_VIEW.unobserve(target);
    target.draw();
  }
}, { rootMargin: "200px" });

function drawInView(place, specify) {
  place.draw = () => draw(place, specify);
  IN_VIEW.observe(place);
}

async function draw(place, specify, tooltip = null) {
  place.width = place.clientWidth;
  const inside = make("div", { ariaHidden: "true" });
  const embedded = await embed(inside, specify(place.width - 10), tooltip);
  place.embedded?.finalize();
  place.embedded = embedded;
  place.replaceChildren(inside);
}

// Draw anew what has been drawn with another width or other colours.
function redrawPictures(isStale = (place) => place.width !== place.clientWidth) {
  for (const place of all(".picture")) {
    if (place.embedded && isStale(place)) place.draw();
  }
}

function embed(place, drawing, tooltip) {
  const options = { mode: "vega-lite", actions: false, defaultStyle: false, renderer: "canvas", logLevel: ERRORS_ONLY };
  return vegaEmbed(place, drawing, { ...options, tooltip: tooltip ?? false });
}

// Estimates of all combinations of choices, in their order, above the options that each takes.
function specificationCurve(choices, rows, width) {
  const verdicts = Object.keys(VERDICT_SIGNS).filter((verdict) => rows.some((row) => row[0] === verdict));
  const labels = choices.flatMap(({ label, options }) => [label, ...options]);
  const firstOf = choices.map((_, at) => choices.slice(0, at).reduce((sum, each) => sum + each.options.length + 1, 0));
  const labelWidth = Math.min(WIDEST_LABELS * width, Math.max(...labels.map(textWidth)) + 8);
  const finite = (value) => (Number.isFinite(value) ? value : null);
  const estimates = rows.map(([verdict, isReference, estimate, low, high], at) =>
    ({ x: at + 1, verdict, isReference, y: finite(estimate), low: finite(low), high: finite(high) }));
  const marks = rows.flatMap((row, at) => row.at(-1).map((option, choice) => ({ x: at + 1, verdict: row[0], option: firstOf[choice] + 1 + option })));
  const scaled = (values) => ({ domain: verdicts, range: verdicts.map(values) });
  const legend = { title: null, orient: "top", columns: columnsOfLegend(verdicts, width), symbolOpacity: 1 };
  const color = { ...FACE, field: "verdict", scale: scaled((name) => styled(VERDICT_COLOURS[name] ?? "quiet")), legend };
  const shape = { ...FACE, field: "verdict", scale: scaled((name) => VERDICT_SHAPES[name] ?? "cross"), legend };
  const x = { field: "x", type: "quantitative", axis: null, scale: { domain: [0.3, rows.length + 0.7], nice: false } };
  const y = (field) => ({ field, type: "quantitative", title: "Estimate", scale: { zero: false }, axis: { labelExpr: SHORT_LABEL } });
  const size = Math.max(8, Math.min(36, ((width - labelWidth) / rows.length) ** 2));
  const view = { width: width - labelWidth - 8 };
  return {
    ...theme(),
    spacing: 10,
    vconcat: [
      {
        ...view, height: 150, data: { values: estimates },
        layer: [
          { transform: [{ filter: "datum.low !== null && datum.high !== null" }], mark: { type: "rule", opacity: 0.6 }, encoding: { x, y: y("low"), y2: { field: "high" }, color } },
          { mark: { type: "point", filled: true, opacity: 1, size }, encoding: { x, y: y("y"), color, shape } },
          { transform: [{ filter: "datum.isReference" }], mark: { type: "point", filled: false, color: styled("ink"), opacity: 1, size: size + 90 }, encoding: { x, y: y("y") } },
        ],
      },
      {
        ...view, height: ROW_HEIGHT * labels.length, data: { values: marks },
        mark: { type: "point", filled: true, opacity: 1, size },
        encoding: {
          x, color, shape,
          y: {
            field: "option", type: "ordinal", title: null, scale: { domain: [...labels.keys()] },
            axis: {
              domain: false, ticks: false, labelLimit: labelWidth - 6, labelExpr: `${JSON.stringify(labels)}[datum.value]`,
              labelFontWeight: { condition: { test: `indexof(${JSON.stringify(firstOf)}, datum.value) >= 0`, value: 600 }, value: 400 },
            },
          },
        },
      },
    ],
    resolve: { scale: { color: "shared", shape: "shared" } },
  };
}
