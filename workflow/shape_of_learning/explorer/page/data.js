// All that the page knows, as content.py wrote it: models, measures, papers, claims, and series of rows.

const NOT_OK = "checkpoint is not ok";
const SUSPECT = "near-duplicates";

class Results {
  constructor(content) {
    Object.assign(this, content);
    this.modelsByName = byName(this.models);
    this.measuresByName = byName(this.measures);
    const checkpoints = this.checkpoints.map(([model, revision, step, tokens, verdict, shown]) => ({
      model, revision, step, tokens, verdict, shown,
    }));
    this.rows = [];
    this.series = this.series.map(([measure, model, selection, count]) => {
      const series = { measure, model, selection, points: [] };
      const end = this.rows.length + count;
      while (this.rows.length < end) {
        const row = this.readRow(series, checkpoints);
        this.rows.push(row);
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

  readRow(series, checkpoints) {
    const i = this.rows.length;
    const cell = (name) => this.columns[name][i];
    const number = (name) => (cell(name) === null ? NaN : Number(cell(name))); // infinity is text
    const checkpoint = checkpoints[cell("checkpoint")];
    const nearDuplicates = number("near_duplicates");
    const isSuspect = nearDuplicates > (this.measuresByName.get(series.measure).suspect_above ?? Infinity);
    return {
      i, series, checkpoint, nearDuplicates,
      layer: cell("layer"), depth: cell("depth"), n: number("n"),
      value: number("value"), low: number("low"), high: number("high"),
      mark: checkpoint.shown !== "yes" ? NOT_OK : isSuspect ? SUSPECT : "",
    };
  }
}

// By name, with labels of which no two are equal.
function byName(entries) {
  const isShared = ({ label }) => entries.filter((each) => each.label === label).length > 1;
  const label = (each) => (isShared(each) ? `${each.label} (${each.name})` : each.label);
  return new Map(entries.map((each) => [each.name, { ...each, label: label(each) }]));
}

const SELECTIONS = {
  all: "All tokens",
  without_first_token: "Without first tokens",
  without_special_tokens: "Without special tokens",
  one_per_token_type: "One per token type",
  before_final_norm: "Before the final norm",
  input: "Input embeddings",
  output: "Output embeddings",
  tied: "Tied embeddings",
  final_norm: "The final norm",
};

function selectionLabel(name) {
  return name.split("+").map((part) => SELECTIONS[part] ?? part.replaceAll("_", " ")).join(", ");
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

function shortCount(value) {
  const units = [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "k"]];
  const [size, letter] = units.find(([size]) => Math.abs(value) >= size) ?? [1, ""];
  return `${Number((value / size).toPrecision(4))}${letter}`;
}

const element = (id) => document.getElementById(id);

function make(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}
