// What is shown, as numbers: the table of the page and the download.

const COLUMNS = ["model", "revision", "step", "tokens", "layer", "depth", "estimator", "selection", "value", "low", "high", "n", "verdict"];
const MOST_ROWS = 500; // of the page's table

const digits = (value, number) => (value === null || Number.isNaN(value) ? "" : String(Number(value.toPrecision(number))));

function tableRows(results, drawn) {
  return drawn.lines.flatMap(({ series, rows }) =>
    rows.map((number) => {
      const row = results.row(series, number);
      return [
        row.model, row.revision, row.step ?? "", row.tokens ?? "", row.layer ?? "", digits(row.depth, 6),
        row.measure, row.selection,
        digits(row.value, 6), digits(row.low, 6), digits(row.high, 6), digits(row.n, 7), row.verdict,
      ];
    }),
  );
}

function csvOf(rows) {
  const cell = (each) => (/[",\n\r]/.test(each) ? `"${String(each).replaceAll('"', '""')}"` : each);
  return `${[COLUMNS, ...rows].map((row) => row.map(cell).join(",")).join("\n")}\n`;
}

function tableElement(rows) {
  const table = document.createElement("table");
  const left = rows.length > MOST_ROWS ? `: the first ${MOST_ROWS} of ${count(rows.length, "row")}, the download has all` : "";
  table.createCaption().textContent = `The values that are drawn${left}`;
  const head = table.createTHead().insertRow();
  for (const name of COLUMNS) {
    const cell = head.appendChild(document.createElement("th"));
    cell.scope = "col";
    cell.textContent = name;
  }
  const body = table.createTBody();
  for (const row of rows.slice(0, MOST_ROWS)) {
    const line = body.insertRow();
    for (const cell of row) line.insertCell().textContent = cell;
  }
  return table;
}
