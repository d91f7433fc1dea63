// Specification curves of claims, which are drawn when they come into view.

const VERDICT_COLOURS = { supported: "good", contradicted: "bad", undecided: "open" };
const VERDICT_SHAPES = { supported: "circle", contradicted: "triangle-down", undecided: "square" };
const ROW_HEIGHT = 15; // pixels of the row of an option
const WIDEST_LABELS = 0.45; // largest share of the width for labels

const IN_VIEW = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    IN_VIEW.unobserve(target);
    target.draw();
  }
}, { rootMargin: "200px" });

function drawInView(place, specify) {
  place.draw = () => drawCurve(place, specify);
  IN_VIEW.observe(place);
}

async function drawCurve(place, specify) {
  const inside = make("div", { ariaHidden: "true" });
  const embedded = await embed(inside, specify(place.clientWidth - 10));
  place.embedded?.finalize();
  place.embedded = embedded;
  place.replaceChildren(inside);
}

// The estimates of all combinations of choices in ascending order, above the options of each combination.
function specificationCurve(choices, rows, width) {
  const verdicts = Object.keys(VERDICT_SIGNS).filter((verdict) => rows.some((row) => row[0] === verdict));
  const labels = choices.flatMap(({ label, options }) => [label, ...options]);
  const firstRows = choices.map((_, at) => choices.slice(0, at).reduce((sum, choice) => sum + choice.options.length + 1, 0));
  const labelWidth = Math.min(WIDEST_LABELS * width, Math.max(...labels.map(textWidth)) + 8);
  const finite = (value) => (Number.isFinite(value) ? value : null);
  const estimates = rows.map(([verdict, isReference, estimate, low, high], at) =>
    ({ x: at + 1, verdict, isReference, y: finite(estimate), low: finite(low), high: finite(high) }));
  const marks = rows.flatMap((row, at) => row.at(-1).map((option, choice) => ({ x: at + 1, verdict: row[0], option: firstRows[choice] + 1 + option })));
  const makeScale = (values) => ({ domain: verdicts, range: verdicts.map(values) });
  const legend = { title: null, orient: "top", columns: columnsOfLegend(verdicts, width), symbolOpacity: 1 };
  const color = { ...FACE, field: "verdict", scale: makeScale((name) => styled(VERDICT_COLOURS[name] ?? "quiet")), legend };
  const shape = { ...FACE, field: "verdict", scale: makeScale((name) => VERDICT_SHAPES[name] ?? "cross"), legend };
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
              labelFontWeight: { condition: { test: `indexof(${JSON.stringify(firstRows)}, datum.value) >= 0`, value: 600 }, value: 400 },
            },
          },
        },
      },
    ],
    resolve: { scale: { color: "shared", shape: "shared" } },
  };
}
