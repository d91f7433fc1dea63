// The controls beside and above the chart. Each has the name of what it chooses; those of lists are made here.

const all = (selector) => [...document.querySelectorAll(selector)];

// Measures by what they are taken of.
const FAMILIES = {
  isotropy: "Anisotropy", dimension: "Intrinsic dimension", spectrum: "Spectrum", linearity: "Blocks",
  windows: "Cosines of windows", weights: "Matrices of the model",
};

class Controls {
  constructor(results, change) {
    this.results = results;
    this.change = change;
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
    if (type === "checkbox") return Array.isArray(this.state[name]) ? all(`[name=${name}]:checked`).map((each) => each.value) : checked;
    return value === "" ? null : Number(value);
  }

  // What the slider and its kept stops are called.
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
      if (isListed) input.parentElement.hidden = !choices[name].includes(value);
    }
    for (const group of all(".group:has(:checked)")) group.open = true;
    const bounds = [state.from, state.to].filter((each) => each !== null);
    const places = ascending([...allPlaces(this.results, state), ...bounds]);
    for (const [name, word] of [["from", "the first"], ["to", "the last"]]) {
      const options = places.map((place) => new Option(placeWords(state, place), place));
      element(name).replaceChildren(new Option(word, ""), ...options);
      element(name).value = state[name] ?? "";
    }
    element("slide").hidden = state.view === "heat";
    if (state.view !== "heat") this.showSlider(state);
  }

  showSlider(state) {
    this.stops = stops(this.results, state);
    const now = standing(this.stops, state);
    const words = now === undefined ? "none" : stopWords(state, now);
    const title = { layer: { step: "Step", tokens: "Tokens" }[state.by], step: { layer: "Layer", depth: "Depth" }[state.across] };
    const slider = element("position");
    element("position-label").textContent = title[state.view];
    element("position-value").textContent = words;
    slider.max = String(Math.max(0, this.stops.length - 1));
    slider.value = String(Math.max(0, this.stops.indexOf(now)));
    slider.disabled = this.stops.length < 2;
    slider.setAttribute("aria-valuetext", `${words}, ${Number(slider.value) + 1} of ${this.stops.length}`);
    const key = this.keys[1];
    element("keep").disabled = this.stops.length < 2 || state[key].includes(now);
    const buttons = state[key].map((stop) => {
      const button = make("button", { type: "button", textContent: `${stopWords(state, stop)} ×`, ariaLabel: `Remove ${stopWords(state, stop)}` });
      button.addEventListener("click", () => {
        this.change({ [key]: state[key].filter((each) => each !== stop) });
        element("keep").focus();
      });
      return make("li", {}, button);
    });
    element("kept").replaceChildren(...buttons);
  }
}

// Claims of the chosen papers with their verdicts, each with a link to what it rests on.

const NOT_MEASURED = "not measured";
const VERDICT_SIGNS = {
  supported: "✓", contradicted: "✕", "depends on the estimator": "≠", undecided: "?", "outside the claim": "○", [NOT_MEASURED]: "–",
};

// In the order of the ledger; what is not measured is folded.
function showClaims(results, state) {
  const papers = results.papers
    .filter((each) => !state.paper.length || state.paper.includes(each.name))
    .map((paper) => [paper, results.claims.filter((each) => each.paper === paper.name)])
    .filter(([, claims]) => claims.length);
  const verdicts = papers.flatMap(([, claims]) => claims.map((each) => each.verdict));
  const counted = Object.keys(VERDICT_SIGNS)
    .map((verdict) => [verdicts.filter((each) => each === verdict).length, verdict])
    .filter(([number]) => number > 0);
  element("to-claims").textContent = `${count(verdicts.length, "claim")}: ${counted.map((each) => each.join(" ")).join(", ")}`;
  element("to-claims").hidden = element("claims").hidden = !papers.length;
  const sections = papers.map(([{ title }, claims]) => {
    const isOpen = (claim) => claim.verdict === NOT_MEASURED;
    const [open, others] = [claims.filter(isOpen), claims.filter((each) => !isOpen(each))];
    const elements = (of) => of.map((each) => claimElement(results, each));
    const folded = make("details", {}, make("summary", { textContent: `${open.length} not measured` }), ...elements(open));
    return make("section", {}, make("h3", { textContent: title }), ...elements(others), ...(open.length ? [folded] : []));
  });
  element("claim-list").replaceChildren(...sections);
}

function claimElement(results, claim) {
  const kind = claim.verdict in VERDICT_SIGNS ? claim.verdict : "undecided";
  const sign = make("span", { textContent: VERDICT_SIGNS[kind], ariaHidden: "true" });
  const short = (text) => shortNumber(Number(text.replace("inf", "Infinity")));
  const interval = claim.low && claim.high ? `, 95 % interval ${short(claim.low)} to ${short(claim.high)}` : "";
  const visible = claim.smallest_visible ? `; ${short(claim.smallest_visible)} from the bound could have been seen` : "";
  const estimate = claim.estimate ? `Estimate ${short(claim.estimate)}${interval}${visible}. ` : "";
  const besides = claim.besides ? ` Besides: ${claim.besides.replaceAll(";", "; ")}.` : "";
  const reason = `${claim.because}${besides}`.split("`").map((each, at) => (at % 2 ? make("code", { textContent: each }) : each));
  return make(
    "article", {},
    make("p", { className: "sentence" }, claim.sentence, make("small", { textContent: ` ${claim.where}` })),
    make("span", { className: `verdict ${kind.replaceAll(" ", "-")}` }, sign, ` ${claim.verdict}`),
    make("p", { className: "facts" }, estimate, ...reason),
    ...(claim.choices.length ? [make("p", { className: "facts" }, robustness(claim.choices))] : []),
    ...curveOf(results, claim),
  );
}

// Which choice of the analysis changes the verdict, if all others stay as they are.
function robustness(choices) {
  const words = ({ choice, option, verdict }) => `${choice.replaceAll("_", " ")} “${option}” (${verdict})`;
  const flips = choices.filter((each) => each.flips === "yes").map(words);
  const verdict = choices[0].verdict_of_reference;
  if (!flips.length) return `Robustness: none of ${count(choices.length, "other choice")} of the analysis alone changes the verdict “${verdict}”.`;
  return `Robustness: ${flips.length} of ${count(choices.length, "other choice")} of the analysis alone ${flips.length === 1 ? "changes" : "change"} the verdict “${verdict}”: ${flips.join(", ")}.`;
}

// A link to what the verdict rests on, which may be of models that no figure of the paper draws.
function curveOf(results, claim) {
  const model = claim.models.filter((name) => results.modelsByName.has(name));
  const measure = claim.measures.filter((name) => results.measured.includes(name));
  if (model.length && measure.length) {
    const start = startState(results);
    // What the verdict names no selection of has another's names, such as matrices.
    const selections = measure.flatMap((name) => {
      const found = results.series.filter((each) => each.measure === name).map((each) => each.selection);
      return found.some((each) => claim.selections.includes(each)) ? claim.selections : found;
    });
    const rows = start.rows.filter((each) => selections.includes(each));
    const href = toAddress({ ...start, view: claim.view, model, measure, rows }, start);
    return [make("a", { href, textContent: "Show its curve", ariaLabel: `Show the curve of: ${claim.sentence}` })];
  }
  if (!model.length || !claim.figures.length) return [];
  return [make("small", { textContent: `It has no curve here: see ${claim.figures.join(", ")} of this paper.` })];
}
