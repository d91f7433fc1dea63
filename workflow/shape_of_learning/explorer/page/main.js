// The page has one state; controls change it, and it decides everything that the page shows.

const PAUSE = 250; // milliseconds without a change, after which the address is written
const ERRORS_ONLY = 1; // Vega's level of messages
const KEYS = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0], Home: [0, -Infinity], End: [0, Infinity] };

const hideTip = () => element("tip")?.classList.remove("visible");

function stop(sentence) {
  element("stop").textContent = sentence;
  element("stop").hidden = false;
}

class Explorer {
  constructor(results) {
    this.results = results;
    this.start = startState(results);
    this.controls = new Controls(results, (part) => this.change(part));
    this.table = new Table(results, element("table").querySelector(".scroll"), element("table-help"));
    this.tooltip = { id: "tip", disableDefaultStyle: true, formatTooltip: (datum) => this.tipOf(datum) };
    element("page").hidden = false;
    element("about").textContent = [
      count(results.models.length, "model"), count(results.checkpoints.length, "checkpoint"),
      count(results.measured.length, "measure"), count(results.rows.length, "value"),
    ].join(" · ");
    element("notes").parentElement.hidden = !results.notes.length;
    element("notes").replaceChildren(...results.notes.map((textContent) => make("p", { textContent })));
    this.listen();
    showPictures(results);
    this.readAddress();
  }

  listen() {
    const click = (id, action) => element(id).addEventListener("click", action);
    const wide = matchMedia("(min-width: 1000px)");
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const open = () => (element("choices").open = wide.matches);
    const show = (theme) => {
      document.documentElement.dataset.theme = theme;
      element("theme").textContent = theme === "dark" ? "Light" : "Dark";
      element("theme").ariaLabel = `${element("theme").textContent} colours`;
      if (this.state) this.draw();
      redraw();
    };
    open();
    wide.addEventListener("change", open);
    show(dark.matches ? "dark" : "light");
    dark.addEventListener("change", () => show(dark.matches ? "dark" : "light"));
    click("theme", () => show(element("theme").textContent.toLowerCase()));
    click("reset", () => {
      element("search").value = "";
      this.controls.searchFor("");
      this.change(startState(this.results));
    });
    click("skip", (event) => {
      event.preventDefault();
      element("chart").focus();
    });
    click("to-claims", () => {
      element("claims").scrollIntoView();
      element("claims-title").focus();
    });
    // A finger does not hover, so a tap is sent to the chart as a move of the pointer.
    click("chart", ({ target, clientX, clientY }) => {
      target.dispatchEvent(new PointerEvent("pointermove", { clientX, clientY, bubbles: true }));
    });
    for (const button of all("[data-save]")) button.addEventListener("click", () => this.save(button.dataset.save));
    element("chart").addEventListener("keydown", (event) => this.moveCursor(event));
    element("table").addEventListener("toggle", () => this.showTable());
    addEventListener("hashchange", () => {
      this.readAddress();
      element("main").scrollIntoView();
    });
    for (const kind of ["scroll", "pointerdown"]) addEventListener(kind, hideTip, { passive: true });
    addEventListener("keydown", ({ key }) => key === "Escape" && hideTip());
    new ResizeObserver(() => {
      if (element("chart").clientWidth !== this.width) this.draw();
    }).observe(element("chart"));
    addEventListener("resize", redraw);
    addEventListener("beforeprint", drawUnseen);
  }

  readAddress() {
    clearTimeout(this.writing);
    Object.assign(this, fromAddress(location.hash, this.results));
    this.drawNow();
  }

  writeAddress() {
    clearTimeout(this.writing);
    this.writing = setTimeout(() => {
      try {
        history.replaceState(null, "", toAddress(this.state, this.start));
      } catch {
        // A page within another page, such as a report, may have no address of its own.
      }
    }, PAUSE);
  }

  change(part) {
    this.unknown = [];
    this.state = { ...this.state, ...part };
    if (part.paper) {
      const valuesOf = (key) => (this.state[key].length ? this.state[key] : this.start[key]);
      this.state = within(this.results, { ...this.state, model: valuesOf("model"), measure: valuesOf("measure") });
    }
    if (part.by) Object.assign(this.state, { at: LAST, keep: [], from: null, to: null });
    if (part.across) Object.assign(this.state, { layer: MEAN, keep_layer: [] });
    this.writeAddress();
    this.draw();
  }

  // Draw at most once per frame, whatever the number of changes.
  draw() {
    element("chart").ariaBusy = "true";
    this.waiting ??= nextFrame().then(() => {
      this.waiting = null;
      this.drawNow();
    });
  }

  drawNow() {
    const linesByView = VIEWS.map((view) => [view, drawnLines(this.results, { ...this.state, view })]);
    const full = fullViews(linesByView);
    if (full.length && !full.includes(this.state.view)) this.state = { ...this.state, view: full[0] };
    this.controls.show(this.state);
    for (const input of all("[name=view]")) input.disabled = !full.includes(input.value);
    this.chartLines = Object.fromEntries(linesByView)[this.state.view];
    const unknown = this.unknown.length ? [`Not in these results, and ignored: ${this.unknown.join(", ")}.`] : [];
    const summary = summaryOf(this.results, this.state, this.chartLines);
    element("summary").replaceChildren(...[...unknown, ...summary].flatMap((textContent) => [make("span", { textContent }), " "]));
    element("chart").setAttribute("aria-label", summary[0]);
    element("sample").textContent = sampleWords(this.results, this.shownRows);
    element("definitions").textContent = definitionsOf(this.results, this.chartLines);
    element("reading").textContent = "";
    hideTip();
    this.cursor = null;
    if (this.claimsOf !== this.state.paper) showClaims(this.results, this.state);
    this.claimsOf = this.state.paper;
    this.showTable();
    this.drawChart(this.chartLines);
  }

  async drawChart(chartLines) {
    const chart = element("chart");
    chart.ariaBusy = "true";
    this.width = chart.clientWidth;
    const inside = make("div", { ariaHidden: "true" });
    let embedded = null;
    if (chartLines.lines.length) {
      embedded = await embed(inside, specification(this.results, this.state, chartLines.lines, this.width - 10), this.tooltip);
    } else inside.append("Nothing to draw");
    // The state may have changed in the meantime.
    if (this.chartLines !== chartLines) return embedded?.finalize();
    this.embedded?.finalize();
    this.embedded = embedded;
    chart.classList.toggle("empty", !embedded);
    chart.replaceChildren(inside);
    chart.ariaBusy = "false";
  }

  // The HTML beside the pointer; DOM elements escape its text.
  tipOf({ i }) {
    const words = wordsOf(this.results, this.results.rows[i]);
    const parts = words.flatMap(([term, text]) => [make("dt", { textContent: term }), make("dd", { textContent: text })]);
    return make("dl", {}, ...parts).outerHTML;
  }

  // Move from value to value by arrow keys.
  moveCursor(event) {
    const { lines } = this.chartLines;
    const by = KEYS[event.key];
    if (!by || !lines.length || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const clamp = (place, length) => Math.max(0, Math.min(length - 1, place));
    const { line, point } = this.cursor ?? { line: 0, point: by[1] === 1 ? -1 : 0 };
    const next = clamp(line + (this.cursor ? by[0] : 0), lines.length);
    this.cursor = { line: next, point: clamp(point + by[1], lines[next].rows.length) };
    const row = lines[next].rows[this.cursor.point];
    this.embedded?.view.signal("cursor", row.i).run();
    element("reading").textContent = wordsOf(this.results, row).map((pair) => pair.join(": ")).join("; ");
  }

  showTable() {
    if (element("table").open) this.table.show(this.shownRows);
  }

  get shownRows() {
    return this.chartLines.lines.flatMap((line) => line.rows);
  }

  async save(kind) {
    const view = this.embedded?.view;
    if (!view && kind !== "all") return;
    element("said").textContent = "making the file …"; // a picture of many lines takes seconds
    const csv = (rows) => new Blob([csvOf(this.results, rows)], { type: "text/csv" });
    const blob = {
      all: () => csv(this.results.rows),
      csv: () => csv(this.shownRows),
      svg: async () => new Blob([await view.toSVG()], { type: "image/svg+xml" }),
      png: async () => {
        const canvas = await view.toCanvas(2);
        return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
      },
    }[kind];
    const href = URL.createObjectURL(await blob());
    const download = kind === "all" ? "explorer_all.csv" : `explorer_${this.state.view}.${kind}`;
    make("a", { href, download }).click();
    setTimeout(() => URL.revokeObjectURL(href), 10_000);
    element("said").textContent = `${download} saved`;
  }
}

// Draw the pictures that have not come into view, before the page is printed.
function drawUnseen() {
  for (const place of all(".picture:not(:has(svg, canvas))")) place.draw();
}

// Redraw pictures after a change of width or colours.
function redraw() {
  for (const place of all(".picture:has(svg, canvas)")) place.draw();
}

// The views with lines; the view by step and the heat map need two checkpoints unless all views lack them.
function fullViews(linesByView) {
  const filledViews = linesByView.filter(([, { lines }]) => lines.length);
  const checkpoints = ({ rows }) => new Set(rows.map((row) => row.checkpoint)).size;
  const full = filledViews.filter(([view, { lines }]) => view === "layer" || lines.some((line) => checkpoints(line) > 1));
  return (full.length ? full : filledViews).map(([view]) => view);
}

if (typeof DecompressionStream === "undefined") {
  stop("This browser is too old to unpack the numbers of this page; open it in a browser from 2023 or later.");
} else {
  Results.read().then(
    (results) => new Explorer(results),
    (error) => stop(`This page is not whole (${error.message}); make it again with snakemake explorer.`),
  );
}
