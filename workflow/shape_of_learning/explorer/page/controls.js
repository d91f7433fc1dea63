// The controls beside and above the chart: made once, then told what is chosen.

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function group(title, ...children) {
  return make("fieldset", {}, make("legend", { textContent: title }), ...children);
}

// Boxes of which any number is ticked, or with `isOne` just one.
class Boxes {
  constructor(name, entries, onChange, { isOne = false } = {}) {
    this.name = name;
    this.isOne = isOne;
    this.inputs = new Map();
    this.element = make("div", { className: "boxes" });
    for (const { name: value, label } of entries) {
      const input = make("input", { type: isOne ? "radio" : "checkbox", name, value });
      this.inputs.set(value, input);
      this.element.append(make("label", {}, input, make("span", { textContent: label })));
    }
    this.element.addEventListener("change", () => onChange(isOne ? this.chosen[0] : this.chosen));
  }

  get chosen() {
    return [...this.inputs].filter(([, input]) => input.checked).map(([value]) => value);
  }

  show(chosen, offered) {
    for (const [value, input] of this.inputs) {
      input.checked = this.isOne ? value === chosen : chosen.includes(value);
      input.parentElement.hidden = offered ? !offered.includes(value) : false;
    }
  }
}

class Choice {
  constructor(id, label, onChange) {
    this.select = make("select", { id });
    this.element = make("div", { className: "choice" }, make("label", { htmlFor: id, textContent: label }), this.select);
    this.select.addEventListener("change", () => onChange(this.select.value === "" ? null : Number(this.select.value)));
  }

  show(chosen, entries) {
    const key = JSON.stringify(entries);
    if (this.shown !== key) this.select.replaceChildren(...entries.map(([value, text]) => new Option(text, value)));
    this.shown = key;
    this.select.value = String(chosen ?? "");
  }
}

class Controls {
  constructor(results, change) {
    const list = (entries, key, title, name) => {
      const boxes = new Boxes(name, entries, (chosen) => change({ [key]: chosen }));
      const all = make("button", { type: "button", className: "small", textContent: "all" });
      all.setAttribute("aria-label", `all ${title.toLowerCase()}`);
      const none = make("button", { type: "button", className: "small", textContent: "none" });
      none.setAttribute("aria-label", `no ${title.toLowerCase()}`);
      const visible = () => [...boxes.inputs].filter(([, each]) => !each.parentElement.hidden).map(([value]) => value);
      all.addEventListener("click", () => change({ [key]: [...new Set([...boxes.chosen, ...visible()])] }));
      none.addEventListener("click", () => change({ [key]: [] }));
      const quick = entries.length > 3 ? [make("span", { className: "quick" }, all, none)] : [];
      const element = group(title, ...quick, boxes.element);
      element.hidden = entries.length < 2;
      return { boxes, element };
    };
    const either = (name, entries, key) =>
      new Boxes(name, Object.entries(entries).map(([each, label]) => ({ name: each, label })), (chosen) => change({ [key]: chosen }), { isOne: true });
    const tick = (key, label) => {
      const boxes = new Boxes(key, [{ name: key, label }], (chosen) => change({ [key]: chosen.length > 0 }));
      return boxes;
    };
    this.results = results;
    this.papers = list(results.papers.map(({ name, title }) => ({ name, label: title })), "papers", "Only of these papers", "paper");
    this.models = list([...results.modelsByName.values()], "models", "Models", "model");
    this.measures = list([...results.measuresByName.values()], "measures", "Measures", "measure");
    this.selections = list(results.selections.map((name) => ({ name, label: selectionLabel(name) })), "selections", "Tokens and matrices", "rows");
    this.from = new Choice("from", "From", (from) => change({ from }));
    this.to = new Choice("to", "To", (to) => change({ to }));
    this.across = either("across", { layer: "Layers", depth: "Relative depth" }, "across");
    this.by = either("by", { step: "Training steps", tokens: "Training tokens" }, "by");
    this.ticks = ["log", "intervals", "leftOut"].map((key, at) =>
      tick(key, ["Steps or tokens on a log scale", "95 % intervals", "Also checkpoints that figures leave out"][at]),
    );
    this.reset = make("button", { type: "button", textContent: "Start again" });
    const form = document.getElementById("controls");
    form.addEventListener("submit", (event) => event.preventDefault());
    form.append(
      this.papers.element, this.measures.element, this.models.element, this.selections.element,
      group("Checkpoints", make("div", { className: "range" }, this.from.element, this.to.element)),
      group("Axes", this.across.element, this.by.element),
      group("Details", ...this.ticks.map((each) => each.element)),
      this.reset,
    );
    this.views = either("view", VIEWS, "view");
    document.getElementById("views").append(this.views.element);
    this.slider = document.getElementById("position");
    this.keep = document.getElementById("keep");
    this.slider.addEventListener("input", () => this.move(change));
    this.keep.addEventListener("click", () => this.keepStop(change));
  }

  get key() {
    return this.state.view === "layer" ? ["at", "kept"] : ["layer", "keptLayers"];
  }

  move(change) {
    change({ [this.key[0]]: this.stops[Number(this.slider.value)] });
  }

  keepStop(change) {
    const kept = this.state[this.key[1]];
    const stop = this.stops[Number(this.slider.value)];
    change({ [this.key[1]]: kept.includes(stop) ? kept : [...kept, stop] });
  }

  show(state, change) {
    this.state = state;
    const { models, measures, selections } = offered(this.results, state);
    const chosen = chosenSeries(this.results, state);
    const bounds = [state.from, state.to].filter((each) => each !== null);
    const places = ascending([...allPlaces(this.results, state, chosen), ...bounds]);
    const words = (place) => [String(place), placeWords(state, place)];
    this.papers.boxes.show(state.papers);
    this.models.boxes.show(state.models, models.map(nameOf));
    this.measures.boxes.show(state.measures, measures.map(nameOf));
    this.selections.boxes.show(state.selections, selections);
    this.from.show(state.from, [["", "the first"], ...places.map(words)]);
    this.to.show(state.to, [["", "the last"], ...places.map(words)]);
    this.across.show(state.across);
    this.by.show(state.by);
    this.ticks.forEach((each) => each.show(state[each.name] ? [each.name] : []));
    this.views.show(state.view);
    this.showSlider(state, change);
  }

  showSlider(state, change) {
    const isLayer = state.view === "layer";
    document.getElementById("slide").hidden = state.view === "heat";
    if (state.view === "heat") return;
    this.stops = stops(this.results, state);
    const [key, keptKey] = this.key;
    const now = standing(this.stops, state[key], isLayer ? LAST : MEAN);
    const words = now === undefined ? "none" : stopWords(state, now);
    const title = isLayer ? (state.by === "tokens" ? "Tokens" : "Step") : state.across === "depth" ? "Depth" : "Layer";
    document.getElementById("position-label").textContent = title;
    document.getElementById("position-value").textContent = words;
    this.slider.max = String(Math.max(0, this.stops.length - 1));
    this.slider.value = String(Math.max(0, this.stops.indexOf(now)));
    this.slider.disabled = this.stops.length < 2;
    this.slider.setAttribute("aria-valuetext", `${words}, ${Number(this.slider.value) + 1} of ${this.stops.length}`);
    this.keep.disabled = this.stops.length < 2 || state[keptKey].includes(now);
    const list = document.getElementById("kept");
    list.replaceChildren(
      ...state[keptKey].map((stop) => {
        const name = stopWords(state, stop);
        const button = make("button", { type: "button", textContent: `${name} ×` });
        button.setAttribute("aria-label", `Remove ${name}`);
        button.addEventListener("click", () => {
          change({ [keptKey]: state[keptKey].filter((each) => each !== stop) });
          this.keep.focus();
        });
        return make("li", {}, button);
      }),
    );
  }
}

const VERDICT_SIGNS = { supported: "✓", contradicted: "✕", undecided: "?", "not measured": "–" };

// Claims of the chosen papers, each with a link to what it rests on.
function showClaims(results, state) {
  const papers = results.papers.filter((each) => !state.papers.length || state.papers.includes(each.name));
  const sections = papers.flatMap((paper) => {
    const claims = results.claims.filter((each) => each.paper === paper.name);
    if (!claims.length) return [];
    return [make("section", {}, make("h3", { textContent: paper.title }), ...claims.map((each) => claimElement(results, each)))];
  });
  const verdicts = papers.flatMap((paper) => results.claims.filter((each) => each.paper === paper.name).map((each) => each.verdict));
  const counted = Object.keys(VERDICT_SIGNS)
    .map((verdict) => [verdicts.filter((each) => each === verdict).length, verdict])
    .filter(([number]) => number > 0);
  const button = document.getElementById("to-claims");
  button.textContent = `${count(verdicts.length, "claim")}: ${counted.map((each) => each.join(" ")).join(", ")}`;
  button.hidden = sections.length === 0;
  document.getElementById("claims").hidden = sections.length === 0;
  document.getElementById("claim-list").replaceChildren(...sections);
}

function claimElement(results, claim) {
  const kind = claim.verdict in VERDICT_SIGNS ? claim.verdict : "undecided";
  const sign = make("span", { textContent: VERDICT_SIGNS[kind] });
  sign.setAttribute("aria-hidden", "true");
  const verdict = make("span", { className: `verdict ${kind.replace(" ", "-")}` }, sign, ` ${claim.verdict}`);
  const short = (text) => shortNumber(Number(text.replace("inf", "Infinity")));
  const interval = claim.low && claim.high ? `, 95 % interval ${short(claim.low)} to ${short(claim.high)}` : "";
  const visible = claim.smallest_visible ? `; ${short(claim.smallest_visible)} from the bound could have been seen` : "";
  const estimate = claim.estimate ? `Estimate ${short(claim.estimate)}${interval}${visible}. ` : "";
  const words = claim.because.split("`").map((each, at) => (at % 2 ? make("code", { textContent: each }) : each));
  const facts = make("p", { className: "facts" }, estimate, ...words);
  const article = make("article", {}, make("p", { className: "sentence" }, claim.sentence, make("small", { textContent: ` ${claim.where}` })), verdict, facts);
  const start = startState(results);
  const models = claim.models.filter((name) => results.modelsByName.has(name));
  const measured = new Set(results.series.map((each) => each.measure));
  const measures = claim.measures.filter((name) => measured.has(name));
  if (models.length && measures.length) {
    // A claim may rest on models that no figure of its paper draws.
    // What the verdict names no selection of has another's names, such as matrices.
    const of = measures.map((name) => results.series.filter((each) => each.measure === name).map((each) => each.selection));
    const selections = new Set(of.flatMap((all) => (all.some((each) => claim.selections.includes(each)) ? claim.selections : all)));
    const shown = { ...start, view: claim.view, models, measures, selections: start.selections.filter((each) => selections.has(each)) };
    const link = make("a", { href: toAddress(shown, start), textContent: "Show its curve" });
    link.setAttribute("aria-label", `Show the curve of: ${claim.sentence}`);
    article.append(link);
  } else if (models.length && claim.figures.length) {
    article.append(make("small", { textContent: `It has no curve here: see ${claim.figures.join(", ")} of this paper.` }));
  }
  return article;
}
