// What is shown, and the same in the page's address.

const VIEWS = { layer: "By layer", step: "By step", heat: "Heat map" };
const LAST = "last"; // each model's last checkpoint
const MEAN = "average"; // over layers
const WHOLE = "whole"; // of what has no layers
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

// Keys of the address, each with the property that it holds and how a text of it is read; what cannot be is undefined.
const among = (...allowed) => (text) => (allowed.includes(text) ? text : undefined);
const yesOrNo = (text) => ({ __proto__: null, yes: true, no: false })[text];
const number = (text) => (text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : undefined);
const numberOr = (word) => (text) => (text === word ? word : number(text));
const named = (names) => (text, results) => among(...names(results))(text);
const nameOf = (each) => each.name;
const ADDRESS = {
  __proto__: null, // what all objects inherit is no key of an address
  view: ["view", among(...Object.keys(VIEWS))],
  paper: ["papers", named((results) => results.papers.map(nameOf))],
  model: ["models", named((results) => results.models.map(nameOf))],
  measure: ["measures", named((results) => results.measures.map(nameOf))],
  rows: ["selections", named((results) => results.selections)],
  at: ["at", numberOr(LAST)],
  keep: ["kept", numberOr(LAST)],
  layer: ["layer", numberOr(MEAN)],
  keep_layer: ["keptLayers", numberOr(MEAN)],
  from: ["from", number],
  to: ["to", number],
  across: ["across", among("layer", "depth")],
  by: ["by", among("step", "tokens")],
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

// What the address does not say, or says wrongly, is as at the start; the latter is listed.
function fromAddress(hash, results) {
  const state = startState(results);
  const address = new URLSearchParams(hash.replace(/^#/, ""));
  const unknown = [];
  for (const key of new Set(address.keys())) {
    const texts = address.getAll(key).filter(Boolean);
    const [property, read] = ADDRESS[key] ?? ["", () => undefined];
    const values = texts.map((text) => read(text, results));
    unknown.push(...texts.filter((_, at) => values[at] === undefined).map((text) => `${key} “${text}”`));
    const good = values.filter((each) => each !== undefined);
    const isList = Array.isArray(state[property]);
    if (isList && (good.length || !texts.length)) state[property] = good;
    else if (!isList && good.length) state[property] = good.at(-1);
  }
  return { state: within(results, state), unknown };
}

// Nothing is chosen that the chosen papers do not offer.
function within(results, state) {
  if (!state.papers.length) return state;
  const choices = offered(results, state);
  const kept = (key, most) => {
    const names = choices[key].map(nameOf);
    const both = state[key].filter((name) => names.includes(name));
    return both.length || !state[key].length ? both : names.slice(0, most);
  };
  return { ...state, models: kept("models", MOST_AT_FIRST), measures: kept("measures", 1) };
}
