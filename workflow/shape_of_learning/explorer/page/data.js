// The results that explorer_page.py wrote: models, measures, papers, claims, and series of rows.

const NOT_OK = "checkpoint is not ok";
const SUSPECT = "suspect";

// Family -> the words that distinguish measures with the same label.
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
      series.isWhole = series.points[0].rows[0].layer === null; // a value of the whole model, such as its loss
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
    // An empty number is null, and infinity is a string.
    const reason = cells.pop() ?? "";
    const [value, low, high, nearDuplicates, n] = cells.map((cell) => (cell === null ? NaN : Number(cell)));
    const checkpoint = this.checkpoints[at];
    const mark = checkpoint.shown !== "yes" ? NOT_OK : reason ? SUSPECT : "";
    const row = { i: this.rows.length, series, checkpoint, layer, depth, value, low, high, nearDuplicates, n, reason, mark };
    this.rows.push(row);
    return row;
  }
}

// Entries by name, with different labels.
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

// A number with as many digits as a reader needs.
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
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

// The state says what the page shows; its keys are those of the page's address and the names of controls.

const VIEWS = ["layer", "step", "heat"];
const LAST = "last"; // each model's last checkpoint
const FINE_TUNING = "fine-tuning"; // a phase, whose steps begin again at 0
const FINE_TUNING_STOP = /^fine-tuning \d+$/;
const MEAN = "average"; // over layers
const WHOLE = "whole"; // the stop of series without layers
const [ANISOTROPY, DIMENSION] = ["Anisotropy", "Intrinsic dimension"]; // axes of measures
const DIMENSION_MEASURES = ["mada_median", "mada", "mom", "mle", "two_nn"]; // measures that copies and a few vectors disturb least come first
const FREE_AXES = ["", DIMENSION, "nats per token"]; // axes that need not begin at 0
const NEAR_ONE = 0.5; // if all values lie between this and 1, the axis need not begin at 0
const MOST_AT_FIRST = 8; // models

// Relative depth if models have different numbers of layers, otherwise layers.
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
  const modelNames = new Set(series.map((entry) => entry.model));
  const model = results.models.map(({ name }) => name).filter((name) => modelNames.has(name)).slice(0, MOST_AT_FIRST);
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

// Readers of the text of a key, which return undefined for a wrong text.
const among = (...allowed) => (text) => (allowed.includes(text) ? text : undefined);
const yesOrNo = (text) => ({ __proto__: null, yes: true, no: false })[text];
const number = (text) => (text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : undefined);
const numberOr = (word) => (text) => (text === word ? word : number(text));
const stopOrLast = (text) => (FINE_TUNING_STOP.test(text) ? text : numberOr(LAST)(text));
const named = (key) => (text, results) => among(...results[key].map((entry) => entry.name ?? entry))(text);
const READERS = {
  __proto__: null, // so that inherited properties, such as `constructor`, are no keys
  view: among(...VIEWS),
  paper: named("papers"), model: named("models"), measure: named("measures"), rows: named("selections"),
  at: stopOrLast, keep: stopOrLast, layer: numberOr(MEAN), keep_layer: numberOr(MEAN),
  from: number, to: number,
  across: among("layer", "depth"), by: among("step", "tokens"),
  log: yesOrNo, intervals: yesOrNo, left_out: yesOrNo,
};

// The address has only the keys whose values differ from the start.
function toAddress(state, start) {
  const address = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    if (JSON.stringify(value) === JSON.stringify(start[key])) continue;
    const values = Array.isArray(value) && value.length ? value : [value];
    for (const item of values) address.append(key, item === true ? "yes" : item === false ? "no" : item);
  }
  return `#${address}`;
}

// Read a state from an address. Missing and wrong keys have the values of the start; wrong ones are listed.
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

// The names in each list: models and measures of the chosen papers, and selections of the chosen series.
function offered(results, state) {
  const papers = results.papers.filter((paper) => state.paper.includes(paper.name));
  const isInPapers = (key) => (name) => !papers.length || papers.some((paper) => paper[key].includes(name));
  const series = chosenSeries(results, { ...state, rows: results.selections });
  return {
    paper: results.papers.map((paper) => paper.name),
    model: results.models.map((model) => model.name).filter(isInPapers("models")),
    measure: results.measured.filter(isInPapers("measures")),
    rows: results.selections.filter((name) => !series.length || series.some((entry) => entry.selection === name)),
  };
}

// Restrict a state to models and measures that the chosen papers offer.
function within(results, state) {
  if (!state.paper.length) return state;
  const choices = offered(results, state);
  const restrict = (key, most) => {
    const both = state[key].filter((name) => choices[key].includes(name));
    return both.length || !state[key].length ? both : choices[key].slice(0, most);
  };
  return { ...state, model: restrict("model", MOST_AT_FIRST), measure: restrict("measure", 1) };
}
