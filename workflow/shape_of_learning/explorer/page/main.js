// One state; every control changes it, and all that is shown follows from it.

const PAUSE = 250; // milliseconds without a change, after which the address is written
const TALLEST_PICTURE = 32_000; // pixels that every browser can save
const ERRORS_ONLY = 1; // of Vega's messages
const element = (id) => document.getElementById(id);

function stop(sentence) {
  element("stop").textContent = sentence;
  element("stop").hidden = false;
}

class Explorer {
  constructor(results) {
    this.results = results;
    this.start = startState(results);
    this.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    this.controls = new Controls(results, (part) => this.change(part));
    this.controls.reset.addEventListener("click", () => this.change(startState(results)));
    element("page").hidden = false;
    this.describe();
    this.listen();
    this.readAddress();
  }

  describe() {
    const { models, checkpoints, measuresByName, columns, notes } = this.results;
    const measured = new Set(this.results.series.map((each) => each.measure)).size;
    element("about").textContent = [
      count(models.length, "model"), count(checkpoints.length, "checkpoint"),
      count(measured || measuresByName.size, "measure"), count(columns.value.length, "value"),
    ].join(" · ");
    element("notes").replaceChildren(...notes.map((text) => make("p", { textContent: text })));
  }

  listen() {
    addEventListener("hashchange", () => {
      this.readAddress();
      element("main").scrollIntoView();
    });
    element("skip").addEventListener("click", (event) => {
      event.preventDefault();
      element("chart").focus();
    });
    element("to-claims").addEventListener("click", () => {
      element("claims").scrollIntoView();
      element("claims-title").focus();
    });
    element("theme").addEventListener("click", () => {
      this.theme = this.theme === "dark" ? "light" : "dark";
      this.draw();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
      this.theme = event.matches ? "dark" : "light";
      this.draw();
    });
    const wide = matchMedia("(min-width: 1000px)");
    const open = () => (element("choices").open = wide.matches);
    wide.addEventListener("change", open);
    open();
    new ResizeObserver(() => {
      if (element("chart").clientWidth !== this.width) this.draw();
    }).observe(element("chart"));
    element("table").addEventListener("toggle", () => this.showTable());
    for (const button of document.querySelectorAll("[data-save]")) {
      button.addEventListener("click", () => this.save(button.dataset.save));
    }
    element("link").addEventListener("click", () => this.copyLink());
    element("chart").addEventListener("keydown", (event) => this.readOn(event));
    // A finger does not hover: where it taps, the drawing is told that a pointer moves.
    element("chart").addEventListener("click", ({ target, clientX, clientY }) => {
      target.dispatchEvent(new PointerEvent("pointermove", { clientX, clientY, bubbles: true }));
    });
    const hideTip = () => (element("tip").hidden = true);
    addEventListener("scroll", hideTip, { passive: true });
    addEventListener("pointerdown", hideTip);
    addEventListener("keydown", (event) => {
      if (event.key === "Escape") hideTip();
    });
  }

  readAddress() {
    clearTimeout(this.writing);
    const { state, unknown } = fromAddress(location.hash, this.results);
    this.unknown = unknown;
    this.state = state;
    this.draw();
  }

  writeAddress() {
    clearTimeout(this.writing);
    this.writing = setTimeout(() => {
      try {
        history.replaceState(null, "", toAddress(this.state, this.start));
      } catch {
        // Within another page, such as a report, it may have no address of its own.
      }
    }, PAUSE);
  }

  change(part) {
    this.unknown = [];
    this.state = { ...this.state, ...part };
    if (part.papers) {
      const { models, measures } = this.state;
      const some = { models: models.length ? models : this.start.models, measures: measures.length ? measures : this.start.measures };
      this.state = within(this.results, { ...this.state, ...some });
    }
    if (part.by) Object.assign(this.state, { at: LAST, kept: [], from: null, to: null });
    if (part.across) Object.assign(this.state, { layer: MEAN, keptLayers: [] });
    this.writeAddress();
    this.draw();
  }

  // At most once a frame, however many changes there are.
  draw() {
    element("chart").ariaBusy = "true";
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.drawNow();
    });
  }

  drawNow() {
    document.documentElement.dataset.theme = this.theme;
    element("theme").textContent = this.theme === "dark" ? "Light" : "Dark";
    element("theme").ariaLabel = `${element("theme").textContent} colours`;
    this.controls.show(this.state, (part) => this.change(part));
    this.drawn = drawnLines(this.results, this.state);
    const [first, ...others] = summaryOf(this.results, this.state, this.drawn);
    const unknown = this.unknown.length ? [`Not in these results, and ignored: ${this.unknown.join(", ")}.`] : [];
    const sentences = [...unknown, first, ...others];
    element("summary").replaceChildren(...sentences.flatMap((each) => [make("span", { textContent: each }), " "]));
    element("chart").setAttribute("aria-label", first);
    element("definitions").textContent = definitionsOf(this.results, this.drawn);
    element("reading").textContent = "";
    element("tip").hidden = true;
    this.cursor = null;
    if (this.claimsOf !== this.state.papers) showClaims(this.results, this.state);
    this.claimsOf = this.state.papers;
    this.showTable();
    this.drawChart();
  }

  async drawChart() {
    const chart = element("chart");
    this.width = chart.clientWidth;
    const drawn = (this.drawing = this.drawn);
    const show = (content, embedded) => {
      this.embedded?.finalize();
      this.embedded = embedded;
      chart.classList.toggle("empty", !embedded);
      chart.replaceChildren(content);
      chart.ariaBusy = "false";
    };
    if (!drawn.lines.length) {
      show(make("p", { textContent: "Nothing to draw" }), null);
      return;
    }
    const inside = make("div");
    inside.setAttribute("aria-hidden", "true");
    const written = specification(this.results, this.state, drawn, this.theme, this.width - 10);
    const embedded = await vegaEmbed(inside, written, {
      mode: "vega-lite", actions: false, defaultStyle: false, renderer: "canvas", logLevel: ERRORS_ONLY,
      patch: (vega) => withSymbols(vega, this.theme),
      tooltip: (_, event, item, value) => this.showTip(event, value === null ? null : item),
    });
    // Another view may have been asked for meanwhile.
    if (this.drawing === drawn) show(inside, embedded);
    else embedded.finalize();
  }

  words(series, number) {
    const row = this.results.row(series, number);
    const { label } = this.results.measuresByName.get(row.measure);
    const step = row.step === null ? row.revision : `step ${row.step.toLocaleString("en")}`;
    const tokens = row.tokens ? `, ${shortCount(row.tokens)} tokens` : "";
    const noLayer = this.results.isWhole(series) ? "the whole model" : "average over layers";
    const depth = row.layer === null ? noLayer : `layer ${row.layer}, depth ${shortNumber(row.depth)}`;
    const interval = Number.isNaN(row.low) ? "none" : `${shortNumber(row.low)} to ${shortNumber(row.high)}`;
    const suspect = row.isSuspect ? ["near-duplicates", `${shortNumber(100 * row.nearDuplicates, 2)} % of vectors: beyond the measure's conditions`] : null;
    return [
      [label, shortNumber(row.value)],
      ["95 % interval", interval],
      ["model", this.results.modelsByName.get(row.model).label],
      ["checkpoint", `${step}${tokens}`],
      ["verdict", row.verdict || "not judged"],
      ["where", depth],
      ["n", Number.isNaN(row.n) ? "unknown" : row.n.toLocaleString("en")],
      row.selection === "all" ? null : ["tokens", selectionLabel(row.selection)],
      suspect,
    ].filter(Boolean);
  }

  showTip(event, item) {
    const tip = element("tip");
    let row = item?.datum;
    if (row?.url) row = cellAt(this.drawn, item, event, this.embedded.view);
    while (row && row.i === undefined) row = row.datum;
    tip.hidden = !row;
    if (!row) return;
    const words = this.words(this.drawn.lines[row.s].series, row.i);
    tip.replaceChildren(make("dl", {}, ...words.flatMap(([term, text]) => [make("dt", { textContent: term }), make("dd", { textContent: text })])));
    const { width, height } = tip.getBoundingClientRect();
    const left = event.clientX + 14 + width > innerWidth ? event.clientX - 14 - width : event.clientX + 14;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.max(4, Math.min(innerHeight - height - 4, event.clientY + 14))}px`;
  }

  // Arrow keys go from value to value.
  readOn(event) {
    const by = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0], Home: [0, -Infinity], End: [0, Infinity] }[event.key];
    const { lines } = this.drawn;
    if (!by || !lines.length || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const within = (place, length) => Math.max(0, Math.min(length - 1, place));
    const from = this.cursor ?? { line: 0, point: by[1] ? -Math.max(0, Math.sign(by[1])) : 0 };
    const line = within(from.line + (this.cursor ? by[0] : 0), lines.length);
    const { series, rows } = lines[line];
    this.cursor = { line, point: within(from.point + by[1], rows.length) };
    const row = rows[this.cursor.point];
    this.embedded?.view.signal("cursor", this.drawn.grids ? cursorOf(this.drawn, line, row) : row).run();
    element("reading").textContent = this.words(series, row).map(([term, text]) => `${term}: ${text}`).join("; ");
  }

  showTable() {
    const isOpen = element("table").open;
    const where = element("table").querySelector(".scroll");
    where.replaceChildren(...(isOpen ? [tableElement(tableRows(this.results, this.drawn))] : []));
  }

  async save(kind) {
    if (!this.embedded) {
      element("said").textContent = "Nothing is drawn";
      return;
    }
    const blob = {
      csv: () => new Blob([csvOf(tableRows(this.results, this.drawn))], { type: "text/csv" }),
      svg: async () => new Blob([await this.embedded.view.toSVG()], { type: "image/svg+xml" }),
      png: async () => {
        const { clientHeight } = element("chart").querySelector("canvas");
        const canvas = await this.embedded.view.toCanvas(Math.min(3, TALLEST_PICTURE / clientHeight));
        return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
      },
    }[kind];
    const address = URL.createObjectURL(await blob());
    make("a", { href: address, download: `explorer_${this.state.view}.${kind}` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
    element("said").textContent = `${kind.toUpperCase()} saved`;
  }

  async copyLink() {
    const address = location.href.replace(/#.*$/, "") + toAddress(this.state, this.start);
    const said = element("said");
    try {
      await navigator.clipboard.writeText(address);
      said.textContent = "Link copied";
    } catch {
      said.textContent = "The address of this page is the link: copy it from the browser";
    }
  }
}

if (typeof DecompressionStream === "undefined") {
  stop("This browser is too old to unpack the numbers of this page; open it in one from 2023 or later.");
} else {
  Results.read().then(
    (results) => new Explorer(results),
    (error) => stop(`This page is not whole (${error.message}); make it again with snakemake explorer.`),
  );
}
