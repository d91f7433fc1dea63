// The controls beside and above the chart. The name of a control is its key in the state; lists are filled here.

const all = (selector) => [...document.querySelectorAll(selector)];

// Titles of the families of measures.
const FAMILIES = {
  isotropy: "Anisotropy", dimension: "Intrinsic dimension", spectrum: "Spectrum", linearity: "Blocks",
  windows: "Cosines of windows", weights: "Matrices of the model",
};

const LONG_LIST = 8; // a longer list of measures has a search field

class Controls {
  constructor(results, change) {
    this.results = results;
    this.change = change;
    this.search = "";
    const lists = {
      paper: results.papers.map(({ name, title }) => [name, title]),
      measure: results.measured.map((name) => [name, results.measuresByName.get(name).label]),
      model: [...results.modelsByName.values()].map(({ name, label }) => [name, label]),
      rows: results.selections.map((name) => [name, selectionLabel(name)]),
    };
    for (const [name, entries] of Object.entries(lists)) {
      const groups = {};
      for (const [value, label] of entries) {
        const box = make("label", {}, make("input", { type: "checkbox", name, value }), make("span", { textContent: label }));
        (groups[name === "measure" ? results.measuresByName.get(value).family : ""] ??= []).push(box);
      }
      const isGrouped = Object.keys(groups).length > 1;
      const parts = Object.entries(groups).flatMap(([family, boxes]) =>
        isGrouped ? make("details", { className: "group" }, make("summary", { textContent: FAMILIES[family] ?? "Others" }), ...boxes) : boxes,
      );
      document.querySelector(`[data-list=${name}]`).append(...parts);
    }
    this.hideUseless();
    const search = element("search");
    search.addEventListener("input", () => this.searchFor(search.value));
    search.addEventListener("keydown", (event) => {
      const first = document.querySelector("[data-list=measure] label:not([hidden]) input");
      if (event.key !== "Enter" || !this.search) return;
      event.preventDefault();
      if (first && !first.checked) first.click();
    });
    element("page").addEventListener("change", ({ target }) => {
      if (target.name) change({ [target.name]: this.valueOf(target) });
    });
    for (const button of all("[data-all]")) {
      const name = button.dataset.all;
      button.addEventListener("click", () => change({ [name]: [...new Set([...this.state[name], ...offered(results, this.state)[name]])] }));
    }
    for (const button of all("[data-none]")) {
      button.addEventListener("click", () => change({ [button.dataset.none]: [] }));
    }
    element("position").addEventListener("input", () => change({ [this.keys[0]]: this.stop }));
    element("keep").addEventListener("click", () => change({ [this.keys[1]]: [...this.state[this.keys[1]], this.stop] }));
  }

  valueOf({ type, name, value, checked }) {
    if (type === "radio") return value;
    if (type === "checkbox") return Array.isArray(this.state[name]) ? all(`[name=${name}]:checked`).map((input) => input.value) : checked;
    return value === "" ? null : Number(value);
  }

  searchFor(text) {
    this.search = text.trim().toLowerCase();
    this.show(this.state);
  }

  // Hide each control that has only one option in these results.
  hideUseless() {
    const { rows, series, checkpoints } = this.results;
    const isSeveral = (values) => new Set(values).size > 1;
    const isTrained = series.some((entry) => isSeveral(entry.points.map((point) => point.checkpoint.step).filter((step) => step !== null)));
    const isUsefulByName = {
      across: acrossFor(series) === "depth",
      by: isTrained && checkpoints.some((checkpoint) => checkpoint.tokens !== null),
      from: isTrained, to: isTrained, log: isTrained, view: isTrained,
      intervals: rows.some((row) => Number.isFinite(row.low)),
      left_out: checkpoints.some((checkpoint) => checkpoint.shown === "no"),
    };
    for (const [name, isUseful] of Object.entries(isUsefulByName)) {
      for (const input of all(`[name=${name}]`)) (input.closest("label") ?? input.closest("fieldset")).hidden = !isUseful;
    }
  }

  isFound({ name, value }) {
    if (name !== "measure") return true;
    const { label, axis } = this.results.measuresByName.get(value);
    return `${value} ${label} ${axis}`.toLowerCase().includes(this.search);
  }

  // The keys of the state for the stop of the slider and for the kept stops.
  get keys() {
    return this.state.view === "layer" ? ["at", "keep"] : ["layer", "keep_layer"];
  }

  get stop() {
    return this.stops[Number(element("position").value)];
  }

  show(state) {
    this.state = state;
    const choices = offered(this.results, state);
    for (const input of all("#page input[name]")) {
      const { name, type, value } = input;
      const isListed = Array.isArray(state[name]);
      input.checked = isListed ? state[name].includes(value) : type === "radio" ? state[name] === value : state[name];
      if (isListed) input.parentElement.hidden = !choices[name].includes(value) || !this.isFound(input);
    }
    element("search").hidden = choices.measure.length <= LONG_LIST && !this.search;
    element("not-found").hidden = all("[data-list=measure] label:not([hidden])").length > 0 || !this.search;
    element("not-found").textContent = `No measure has “${this.search}” in its name.`;
    for (const group of all(this.search ? ".group" : ".group:has(:checked)")) group.open = true;
    const bounds = [state.from, state.to].filter((bound) => bound !== null);
    const places = ascending([...allPlaces(this.results, state), ...bounds]);
    for (const [name, word] of [["from", "the first"], ["to", "the last"]]) {
      const options = places.map((place) => new Option(placeWords(state, place), place));
      element(name).replaceChildren(new Option(word, ""), ...options);
      element(name).value = state[name] ?? "";
    }
    this.stops = state.view === "heat" ? [] : stops(this.results, state);
    element("slide").hidden = this.stops.length < 2;
    if (this.stops.length) this.showSlider(state);
  }

  showSlider(state) {
    const currentStop = sliderStop(this.stops, state);
    const words = currentStop === undefined ? "none" : stopWords(this.results, state, currentStop);
    const title = { layer: { step: "Step", tokens: "Tokens" }[state.by], step: { layer: "Layer", depth: "Depth" }[state.across] };
    const slider = element("position");
    element("position-label").textContent = title[state.view];
    element("position-value").textContent = words;
    slider.max = String(Math.max(0, this.stops.length - 1));
    slider.value = String(Math.max(0, this.stops.indexOf(currentStop)));
    slider.disabled = this.stops.length < 2;
    slider.setAttribute("aria-valuetext", `${words}, ${Number(slider.value) + 1} of ${this.stops.length}`);
    const key = this.keys[1];
    element("keep").disabled = this.stops.length < 2 || state[key].includes(currentStop);
    const buttons = state[key].map((stop) => {
      const label = stopWords(this.results, state, stop);
      const button = make("button", { type: "button", textContent: `${label} ×`, ariaLabel: `Remove ${label}` });
      button.addEventListener("click", () => {
        this.change({ [key]: state[key].filter((keptStop) => keptStop !== stop) });
        element("keep").focus();
      });
      return make("li", {}, button);
    });
    element("kept").replaceChildren(...buttons);
  }
}
