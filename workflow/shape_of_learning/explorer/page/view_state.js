// What is shown, and the same in the page's address.

const VIEWS = { layer: "By layer", step: "By step", heat: "Heat map" };
const LAST = "last"; // each model's last checkpoint
const MEAN = "average"; // over layers
const MOST_AT_FIRST = 8; // models

function startState(results) {
  const present = new Set(results.series.map((each) => each.measure));
  const measure = results.measures.find((each) => present.has(each.name));
  const measured = new Set(
    results.series.filter((each) => each.measure === measure?.name).map((each) => each.model),
  );
  return {
    view: "layer",
    papers: [],
    models: results.models.map((each) => each.name).filter((name) => measured.has(name)).slice(0, MOST_AT_FIRST),
    measures: measure ? [measure.name] : [],
    selections: [...results.selections],
    at: LAST,
    kept: [],
    layer: MEAN,
    keptLayers: [],
    from: null,
    to: null,
    across: "layer",
    by: "step",
    log: true,
    intervals: true,
    leftOut: false,
  };
}

// Keys of the address, each with the property that it holds and how it is read.
const one = (...allowed) => (texts) => (allowed.includes(texts.at(-1)) ? texts.at(-1) : undefined);
const yesOrNo = (texts) => ({ yes: true, no: false })[texts.at(-1)];
const number = (text) => (text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : undefined);
const numberOr = (word) => (texts) => (texts.at(-1) === word ? word : number(texts.at(-1)));
const numbersOr = (word) => (texts) =>
  texts.map((text) => (text === word ? word : number(text))).filter((each) => each !== undefined);
const known = (key, names) => (texts, results, unknown) => {
  const all = names(results);
  unknown.push(...texts.filter((text) => text && !all.includes(text)).map((text) => `${key} “${text}”`));
  return texts.filter((text) => all.includes(text));
};
const nameOf = (each) => each.name;
const ADDRESS = {
  view: ["view", one(...Object.keys(VIEWS))],
  paper: ["papers", known("paper", (results) => results.papers.map(nameOf))],
  model: ["models", known("model", (results) => results.models.map(nameOf))],
  measure: ["measures", known("measure", (results) => results.measures.map(nameOf))],
  rows: ["selections", known("selection", (results) => results.selections)],
  at: ["at", numberOr(LAST)],
  keep: ["kept", numbersOr(LAST)],
  layer: ["layer", numberOr(MEAN)],
  keep_layer: ["keptLayers", numbersOr(MEAN)],
  from: ["from", (texts) => number(texts.at(-1))],
  to: ["to", (texts) => number(texts.at(-1))],
  across: ["across", one("layer", "depth")],
  by: ["by", one("step", "tokens")],
  log: ["log", yesOrNo],
  intervals: ["intervals", yesOrNo],
  left_out: ["leftOut", yesOrNo],
};

// Only what differs from the start is written.
function toAddress(state, start) {
  const address = new URLSearchParams();
  for (const [key, [property]] of Object.entries(ADDRESS)) {
    const value = state[property];
    if (JSON.stringify(value) === JSON.stringify(start[property])) continue;
    const values = Array.isArray(value) ? value : [value];
    for (const each of values) address.append(key, each === true ? "yes" : each === false ? "no" : each);
    if (values.length === 0) address.append(key, ""); // none of them
  }
  return `#${address}`;
}

// What the address does not say is as at the start; what it says wrongly is named.
function fromAddress(hash, results) {
  const state = startState(results);
  const address = new URLSearchParams(hash.replace(/^#/, ""));
  const unknown = [];
  for (const key of new Set(address.keys())) {
    const [property, read] = ADDRESS[key] ?? [];
    const value = property && read(address.getAll(key), results, unknown);
    if (value !== undefined) state[property] = value;
    else unknown.push(`${key}=${address.getAll(key).join(", ")}`);
  }
  return { state, unknown };
}
