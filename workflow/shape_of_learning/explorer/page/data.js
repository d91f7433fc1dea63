// All that the page knows, as explorer_page.py wrote it: models, measures, papers, claims, and series of rows.

const NOT_OK = "checkpoint is not ok";
const SUSPECT = "suspect";

// What tells measures of one label apart, by family.
const SHARED_LABELS = { isotropy: "hidden states", weights: "matrices" };

class Results {
  constructor(content) {
    Object.assign(this, content);
    this.modelsByName = byName(this.models);
    for (const checkpoint of this.checkpoints) checkpoint.phase = this.modelsByName.get(checkpoint.model).phase ?? "";
    this.measuresByName = byName(this.measures);
    this.rows = [];
    this.series = this.series.map(([measure, model, selection, rows]) => {
      const series = { measure, model, selection, points: [] };
      for (const row of rows.map((cells) => this.readRow(series, cells))) {
        const last = series.points.at(-1);
        if (last?.checkpoint === row.checkpoint) last.rows.push(row);
        else series.points.push({ checkpoint: row.checkpoint, rows: [row] });
      }
      series.isWhole = series.points[0].rows[0].layer === null; // of the model, such as its loss
      return series;
    });
    this.selections = [...new Set(this.series.map((series) => series.selection))];
    const measured = new Set(this.series.map((series) => series.measure));
    this.measured = this.measures.map((measure) => measure.name).filter((name) => measured.has(name));
  }

  static async read() {
    const packed = Uint8Array.from(atob(element("content").textContent), (character) => character.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Results(await new Response(stream).json());
  }

  readRow(series, [at, layer, depth, ...cells]) {
    // What is empty is no number, and what is infinite is text.
    const reason = cells.pop() ?? "";
    const [value, low, high, nearDuplicates, n] = cells.map((cell) => (cell === null ? NaN : Number(cell)));
    const checkpoint = this.checkpoints[at];
    const mark = checkpoint.shown !== "yes" ? NOT_OK : reason ? SUSPECT : "";
    const row = { i: this.rows.length, series, checkpoint, layer, depth, value, low, high, nearDuplicates, n, reason, mark };
    this.rows.push(row);
    return row;
  }
}

// By name, with labels of which no two are equal.
function byName(entries) {
  const isShared = ({ label }) => entries.filter((entry) => entry.label === label).length > 1;
  const label = (entry) => (isShared(entry) ? `${entry.label} (${SHARED_LABELS[entry.family] ?? entry.name})` : entry.label);
  return new Map(entries.map((entry) => [entry.name, { ...entry, label: label(entry) }]));
}

const MATRICES = ["input", "output", "tied"];

function selectionLabel(name) {
  if (name === "all") return "All tokens";
  const words = MATRICES.includes(name) ? `${name} embeddings` : name.replaceAll("_", " ").replaceAll("+", ", ");
  return `${words[0].toUpperCase()}${words.slice(1)}`;
}

// Numbers as a reader wants them.
function shortNumber(value, digits = 4) {
  if (value === null || Number.isNaN(value)) return "undefined";
  if (value !== 0 && Math.abs(value) < 1e-4) return value.toExponential(digits - 1);
  return String(Number(value.toPrecision(Math.max(digits, Math.ceil(Math.log10(Math.abs(value) + 1))))));
}

function count(number, one, many = `${one}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

const shortCount = (value) => value.toLocaleString("en", { notation: "compact", maximumSignificantDigits: 4 });

const element = (id) => document.getElementById(id);

function make(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

// What is shown: a state, whose keys are those of the page's address and names of controls.

const VIEWS = ["layer", "step", "heat"];
const LAST = "last"; // each model's last checkpoint
const FINE_TUNING = "fine-tuning"; // a phase, whose steps are not those of a pretraining
const FINE_TUNING_STOP = /^fine-tuning \d+$/;
const MEAN = "average"; // over layers
const WHOLE = "whole"; // of what has no layers
const [ANISOTROPY, DIMENSION] = ["Anisotropy", "Intrinsic dimension"]; // axes of measures
const DIMENSION_MEASURES = ["mada_median", "mada", "mom", "mle", "two_nn"]; // first those that copies and a few vectors disturb least
const FREE_AXES = ["", DIMENSION, "nats per token"]; // that need not begin at 0
const NEAR_ONE = 0.5; // from which on distances to 1 are seen, not those to 0
const MOST_AT_FIRST = 8; // models

// Relative depth if the series are of models of different depths, else layers.
function acrossFor(series) {
  const last = ({ points: [{ rows }] }) => Math.max(...rows.map((row) => row.layer));
  return new Set(series.filter((entry) => !entry.isWhole).map(last)).size > 1 ? "depth" : "layer";
}

function startState(results) {
  const of = (axis) => results.measured.find((name) => results.measuresByName.get(name).axis === axis);
  const dimension = DIMENSION_MEASURES.find((name) => results.measured.includes(name)) ?? of(DIMENSION);
  const first = [of(ANISOTROPY) ?? results.measured[0], dimension];
  const measure = [...new Set(first.filter(Boolean))];
  const series = results.series.filter((entry) => measure.includes(entry.measure));
  const shown = new Set(series.map((entry) => entry.model));
  const model = results.models.map(({ name }) => name).filter((name) => shown.has(name)).slice(0, MOST_AT_FIRST);
  return {
    view: "layer", across: acrossFor(series.filter((entry) => model.includes(entry.model))), by: "step",
    paper: [],
    model,
    measure,
    rows: results.selections,
    at: LAST, keep: [],
    layer: MEAN, keep_layer: [],
    from: null, to: null,
    log: true, intervals: true, left_out: false,
  };
}

// How the text of a key is read; what cannot be is undefined.
const among = (...allowed) => (text) => (allowed.includes(text) ? text : undefined);
const yesOrNo = (text) => ({ __proto__: null, yes: true, no: false })[text];
const number = (text) => (text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : undefined);
const numberOr = (word) => (text) => (text === word ? word : number(text));
const stopOrLast = (text) => (FINE_TUNING_STOP.test(text) ? text : numberOr(LAST)(text));
const named = (key) => (text, results) => among(...results[key].map((entry) => entry.name ?? entry))(text);
const READERS = {
  __proto__: null, // what all objects inherit is no key of an address
  view: among(...VIEWS),
  paper: named("papers"), model: named("models"), measure: named("measures"), rows: named("selections"),
  at: stopOrLast, keep: stopOrLast, layer: numberOr(MEAN), keep_layer: numberOr(MEAN),
  from: number, to: number,
  across: among("layer", "depth"), by: among("step", "tokens"),
  log: yesOrNo, intervals: yesOrNo, left_out: yesOrNo,
};

// Only what differs from the start is written.
function toAddress(state, start) {
  const address = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    if (JSON.stringify(value) === JSON.stringify(start[key])) continue;
    const values = Array.isArray(value) && value.length ? value : [value];
    for (const item of values) address.append(key, item === true ? "yes" : item === false ? "no" : item);
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
    const values = texts.map((text) => READERS[key]?.(text, results));
    unknown.push(...texts.filter((_, at) => values[at] === undefined).map((text) => `${key} “${text}”`));
    const good = values.filter((value) => value !== undefined);
    if (Array.isArray(state[key]) && (good.length || !texts.length)) state[key] = good;
    else if (good.length) state[key] = good.at(-1);
  }
  return { state: within(results, state), unknown };
}

// Names that lists offer: what the chosen papers draw, and selections that the chosen models and measures have.
function offered(results, state) {
  const papers = results.papers.filter((paper) => state.paper.includes(paper.name));
  const drawn = (key) => (name) => !papers.length || papers.some((paper) => paper[key].includes(name));
  const having = chosenSeries(results, { ...state, rows: results.selections });
  return {
    paper: results.papers.map((paper) => paper.name),
    model: results.models.map((model) => model.name).filter(drawn("models")),
    measure: results.measured.filter(drawn("measures")),
    rows: results.selections.filter((name) => !having.length || having.some((entry) => entry.selection === name)),
  };
}

// Nothing is chosen that the chosen papers do not offer.
function within(results, state) {
  if (!state.paper.length) return state;
  const choices = offered(results, state);
  const kept = (key, most) => {
    const both = state[key].filter((name) => choices[key].includes(name));
    return both.length || !state[key].length ? both : choices[key].slice(0, most);
  };
  return { ...state, model: kept("model", MOST_AT_FIRST), measure: kept("measure", 1) };
}
