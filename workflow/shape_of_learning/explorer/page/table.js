// The values of the chart as a table that each column can sort, and tables to download.

const MOST_ROWS = 500; // of the page's table
// The columns of a downloaded table: those of tables/estimates.csv, and the labels of legends.
const FILE_COLUMNS = {
  model: ({ checkpoint }) => checkpoint.model,
  model_label: ({ series }, results) => results.modelsByName.get(series.model).label,
  revision: ({ checkpoint }) => checkpoint.revision,
  step: ({ checkpoint }) => checkpoint.step,
  tokens: ({ checkpoint }) => checkpoint.tokens,
  layer: (row) => row.layer,
  depth: (row) => row.depth,
  estimator: ({ series }) => series.measure,
  estimator_label: ({ series }, results) => results.measuresByName.get(series.measure).label,
  selection: ({ series }) => series.selection,
  value: (row) => row.value,
  low: (row) => row.low,
  high: (row) => row.high,
  n: (row) => row.n,
  verdict: ({ checkpoint }) => checkpoint.verdict,
  reason: (row) => row.reason,
};
// Columns that a narrow screen should show without scrolling come first.
const PAGE_COLUMNS = {
  Model: FILE_COLUMNS.model_label,
  Measure: FILE_COLUMNS.estimator_label,
  Step: FILE_COLUMNS.step,
  Layer: FILE_COLUMNS.layer,
  Value: FILE_COLUMNS.value,
  Low: FILE_COLUMNS.low,
  High: FILE_COLUMNS.high,
  Depth: FILE_COLUMNS.depth,
  Vectors: FILE_COLUMNS.n,
  Tokens: FILE_COLUMNS.tokens,
  Selection: ({ series }) => selectionLabel(series.selection),
  Checkpoint: FILE_COLUMNS.revision,
  Verdict: FILE_COLUMNS.verdict,
  Suspect: FILE_COLUMNS.reason,
};
const VERDICT_MEANS = "The verdict is on the checkpoint: ok if its weights are those that its name says, as far as its tensors and its loss tell.";
const MORE_COLUMNS = "Scroll sideways for more columns.";

const isEmpty = (value) => value === null || value === "" || Number.isNaN(value);
const cellText = (value) => (isEmpty(value) ? "" : String(value));

function csvOf(results, rows) {
  const quote = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const cells = rows.map((row) => Object.values(FILE_COLUMNS).map((read) => cellText(read(row, results))));
  return `${[Object.keys(FILE_COLUMNS), ...cells].map((row) => row.map(quote).join(",")).join("\n")}\n`;
}

class Table {
  constructor(results, place, help) {
    Object.assign(this, { results, place, help });
    this.order = { column: null, isDescending: false };
  }

  show(rows) {
    const { column, isDescending } = this.order;
    const sorted = column === null ? rows : sortRows(rows, (row) => PAGE_COLUMNS[column](row, this.results), isDescending);
    const left = rows.length > MOST_ROWS ? `: the first ${MOST_ROWS} of ${count(rows.length, "row")}, the downloads have all` : "";
    const columns = this.columnsFor(rows);
    const cell = (row, name) => make("td", { textContent: cellText(PAGE_COLUMNS[name](row, this.results)) });
    this.place.replaceChildren(
      make(
        "table", {},
        make("caption", { textContent: `The values that are drawn${left}` }),
        make("thead", {}, make("tr", {}, ...columns.map((name) => this.heading(name, rows)))),
        make("tbody", {}, ...sorted.slice(0, MOST_ROWS).map((row) => make("tr", {}, ...columns.map((name) => cell(row, name))))),
      ),
    );
    const isWide = this.place.scrollWidth > this.place.clientWidth;
    this.help.textContent = [isWide && MORE_COLUMNS, columns.includes("Verdict") && VERDICT_MEANS].filter(Boolean).join(" ");
  }

  // Columns without those that are empty; columns that are empty in most rows come last.
  columnsFor(rows) {
    const filled = (name) => rows.filter((row) => !isEmpty(PAGE_COLUMNS[name](row, this.results))).length;
    const shares = Object.keys(PAGE_COLUMNS).map((name) => [name, filled(name) / rows.length]).filter(([, share]) => share > 0);
    return [...shares.filter(([, share]) => share >= 0.5), ...shares.filter(([, share]) => share < 0.5)].map(([name]) => name);
  }

  heading(name, rows) {
    const { column, isDescending } = this.order;
    const isSorted = name === column;
    const button = make("button", { type: "button", textContent: name });
    button.addEventListener("click", () => {
      this.order = { column: name, isDescending: isSorted && !isDescending };
      this.show(rows);
      [...this.place.querySelectorAll("th button")].find(({ textContent }) => textContent === name).focus();
    });
    return make("th", { scope: "col", ariaSort: isSorted ? (isDescending ? "descending" : "ascending") : "none" }, button);
  }
}

// Sort rows; empty cells come last in both directions.
function sortRows(rows, read, isDescending) {
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
  const keyed = rows.map((row) => [read(row), row]);
  keyed.sort(([a], [b]) => isEmpty(a) - isEmpty(b) || (isEmpty(a) ? 0 : (isDescending ? -1 : 1) * compare(a, b)));
  return keyed.map(([, row]) => row);
}
