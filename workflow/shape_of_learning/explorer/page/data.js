// All that the page knows, as content.py wrote it: models, measures, papers, claims, and series of rows.

const NOT_OK = "checkpoint is not ok";
const SUSPECT = "near-duplicates";

class Results {
  constructor(content) {
    Object.assign(this, content);
    this.modelsByName = byName(this.models);
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
    this.selections = [...new Set(this.series.map((each) => each.selection))];
    const measured = new Set(this.series.map((each) => each.measure));
    this.measured = this.measures.map((each) => each.name).filter((name) => measured.has(name));
  }

  static async read() {
    const packed = Uint8Array.from(atob(element("content").textContent), (each) => each.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Results(await new Response(stream).json());
  }

  readRow(series, [at, layer, depth, ...cells]) {
    // What is empty is no number, and what is infinite is text.
    const [value, low, high, nearDuplicates, n] = cells.map((each) => (each === null ? NaN : Number(each)));
    const checkpoint = this.checkpoints[at];
    const isSuspect = nearDuplicates > (this.measuresByName.get(series.measure).suspect_above ?? Infinity);
    const mark = checkpoint.shown !== "yes" ? NOT_OK : isSuspect ? SUSPECT : "";
    const row = { i: this.rows.length, series, checkpoint, layer, depth, value, low, high, nearDuplicates, n, mark };
    this.rows.push(row);
    return row;
  }
}

// By name, with labels of which no two are equal.
function byName(entries) {
  const isShared = ({ label }) => entries.filter((each) => each.label === label).length > 1;
  const label = (each) => (isShared(each) ? `${each.label} (${each.name})` : each.label);
  return new Map(entries.map((each) => [each.name, { ...each, label: label(each) }]));
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
