// The numbers of the page, as packed_columns.py wrote them.

const AVERAGE = 65535; // the layer of an average over layers
const TYPES = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array };

// Undo base64, zlib and the sorting of bytes; `layout` lists [name, type].
async function unpack(text, layout, rows) {
  const packed = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const planes = new Uint8Array(await new Response(stream).arrayBuffer());
  const columns = {};
  let start = 0;
  for (const [name, type] of layout) {
    const column = new TYPES[type](rows);
    const bytes = new Uint8Array(column.buffer);
    const size = column.BYTES_PER_ELEMENT;
    for (let place = 0; place < size; place++) {
      for (let row = 0, at = place; row < rows; row++, at += size) bytes[at] = planes[start++];
    }
    columns[name] = column;
  }
  return columns;
}

// All that the page knows: models, measures, papers, claims, checkpoints, and series of rows.
class Results {
  constructor(description, columns) {
    Object.assign(this, description);
    this.columns = columns;
    this.modelsByName = withLabels(this.models);
    this.measuresByName = withLabels(this.measures);
    this.checkpoints = description.checkpoints.map(([model, revision, step, tokens, verdict, shown]) => ({
      model, revision, step, tokens, verdict, shown,
    }));
    let start = 0;
    this.series = description.series.map(([model, measure, selection, count]) => {
      const each = { model, measure, selection, start, end: start + count };
      start += count;
      return each;
    });
    this.selections = [...new Set(this.series.map((each) => each.selection))];
  }

  static async read() {
    const description = JSON.parse(document.getElementById("description").textContent);
    const rows = description.series.reduce((sum, each) => sum + each[3], 0);
    const text = document.getElementById("numbers").textContent;
    return new Results(description, await unpack(text, description.columns, rows));
  }

  // The checkpoints of a series in order, each with its rows [start, end).
  checkpointsOf(series) {
    if (!series.parts) {
      series.parts = [];
      for (let row = series.start; row < series.end; row++) {
        const number = this.columns.checkpoint[row];
        const last = series.parts.at(-1);
        if (last?.number === number) last.end = row + 1;
        else series.parts.push({ number, start: row, end: row + 1, ...this.checkpoints[number] });
      }
    }
    return series.parts;
  }

  // Whether a series is of a model as a whole, such as its loss, and has no layers.
  isWhole({ start }) {
    return this.columns.layer[start] === AVERAGE;
  }

  isBad(row) {
    return this.checkpoints[this.columns.checkpoint[row]].shown !== "yes";
  }

  // Whether a value is beyond the conditions of its measure.
  isSuspect({ measure }, row) {
    return this.columns.near_duplicates[row] > (this.measuresByName.get(measure).suspect_above ?? Infinity);
  }

  // One row as tables and downloads hold it.
  row(series, row) {
    const { checkpoint, layer, depth, value, below, more_above, n, near_duplicates } = this.columns;
    const { revision, step, tokens, verdict } = this.checkpoints[checkpoint[row]];
    const isAverage = layer[row] === AVERAGE;
    return {
      model: series.model, revision, step, tokens,
      layer: isAverage ? null : layer[row],
      depth: isAverage ? null : depth[row],
      measure: series.measure, selection: series.selection,
      value: value[row],
      low: value[row] - below[row],
      high: value[row] + below[row] + more_above[row],
      n: n[row], verdict,
      isBad: this.isBad(row),
      nearDuplicates: near_duplicates[row],
      isSuspect: this.isSuspect(series, row),
    };
  }
}

// By name, with labels of which no two are equal.
function withLabels(entries) {
  const count = (label) => entries.filter((each) => each.label === label).length;
  return new Map(
    entries.map((each) => {
      const label = count(each.label) > 1 ? `${each.label} (${each.name})` : each.label;
      return [each.name, { ...each, label }];
    }),
  );
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
