// Claims of the chosen papers: verdicts, numbers, what choices of the analysis do to them, and what they rest on.

const [CONTRADICTED, OUTSIDE, NOT_MEASURED] = ["contradicted", "outside the claim", "not measured"];
const BEYOND = "beyond "; // a null model, which is no verdict on the claim
const OUTSIDE_MEANS = "Outside the claim: it is about other models than this run's, or about a part of a training that this run has not seen.";
const VERDICT_SIGNS = {
  supported: "✓", [CONTRADICTED]: "✕", "depends on the estimator": "≠", undecided: "?", [OUTSIDE]: "○", [NOT_MEASURED]: "–",
};

// In the order of the ledger; what this run cannot judge is folded.
function showClaims(results, state) {
  const papers = results.papers
    .filter((each) => !state.paper.length || state.paper.includes(each.name))
    .map((paper) => [paper, results.claims.filter((each) => each.paper === paper.name)])
    .filter(([, claims]) => claims.length);
  element("to-claims").textContent = countVerdicts(papers.flatMap(([, claims]) => claims));
  element("to-claims").hidden = element("claims").hidden = !papers.length;
  const sections = papers.map(([{ title }, claims]) => {
    const isJudged = (claim) => ![OUTSIDE, NOT_MEASURED].includes(claim.verdict);
    const unjudged = claims.filter((each) => !isJudged(each));
    const lines = unjudged.map(({ sentence, verdict, because }) => {
      const reason = make("small", {}, ` ${verdict[0].toUpperCase()}${verdict.slice(1)}: `, ...withLabels(results, because));
      return make("li", { className: "sentence" }, sentence, reason);
    });
    const summary = make("summary", { textContent: `This run cannot judge ${count(unjudged.length, "claim")}` });
    const meaning = unjudged.some(({ verdict }) => verdict === OUTSIDE) && make("p", { className: "facts", textContent: OUTSIDE_MEANS });
    const folded = make("details", {}, summary, ...(meaning ? [meaning] : []), make("ul", {}, ...lines));
    const articles = claims.filter(isJudged).map((each) => claimElement(results, each));
    return make("section", {}, make("h3", { textContent: title }), make("p", { className: "facts", textContent: countVerdicts(claims) }), ...articles, ...(unjudged.length ? [folded] : []));
  });
  element("claim-list").replaceChildren(...sections);
}

// All claims, then each verdict, as the pages of the papers count them.
function countVerdicts(claims) {
  const counted = Object.keys(VERDICT_SIGNS)
    .map((verdict) => [claims.filter((each) => each.verdict === verdict).length, verdict])
    .filter(([number]) => number > 0);
  return `${count(claims.length, "claim")}: ${counted.map((each) => each.join(" ")).join(", ")}`;
}

// A sentence in which names of models and measures are those of legends.
function withLabels(results, text) {
  const label = (name) => (results.modelsByName.get(name) ?? results.measuresByName.get(name))?.label;
  return text.split("`").map((part, at) => (at % 2 ? (label(part) ?? make("code", { textContent: part })) : part));
}

function claimElement(results, claim) {
  const kind = claim.verdict in VERDICT_SIGNS ? claim.verdict : "undecided";
  const sign = make("span", { textContent: VERDICT_SIGNS[kind], ariaHidden: "true" });
  const besides = claim.besides ? claim.besides.split(";") : [];
  const named = (parts) => parts.map((words) => nameOtherVerdict(results, words)).join("; ");
  const others = besides.length && `Other estimators, selections and null models: ${named(besides)}.`;
  const isDiffering = (words) => !words.startsWith(BEYOND) && ![claim.verdict, NOT_MEASURED].includes(words.split(": ").at(-1));
  const differing = besides.filter(isDiffering);
  const facts = [others, claim.choices.length && robustness(claim.choices)].filter(Boolean).map((words) => make("p", { className: "facts" }, words));
  const reason = make("details", { className: "facts" }, make("summary", { textContent: "Why this verdict" }), ...withLabels(results, claim.because));
  return make(
    "article", {},
    make("p", { className: "sentence" }, claim.sentence, make("small", { textContent: ` ${claim.where}` })),
    make("span", { className: `verdict ${kind.replaceAll(" ", "-")}` }, sign, ` ${claim.verdict}`, ...(differing.length ? [make("small", { textContent: ` (${named(differing)})` })] : [])),
    ...(claim.summary ? [make("p", {}, ...withLabels(results, claim.summary))] : []),
    ...(claim.criteria.length ? [criteriaTable(claim)] : []),
    ...facts,
    ...(claim.specifications ? [specificationElement(results, claim)] : []),
    reason,
    ...curveOf(results, claim),
  );
}

// The numbers that decide, as the page of the claims has them: bounds are those of the verdict.
function criteriaTable({ criteria, criteria_columns: columns }) {
  const line = (kind, cells) => make("tr", {}, ...cells.map((textContent) => make(kind, { textContent })));
  const table = make("table", {}, make("thead", {}, line("th", columns)), make("tbody", {}, ...criteria.map((cells) => line("td", cells))));
  return make("div", { className: "criteria" }, table);
}

// A verdict by another estimator, on other rows, or beside a null model.
function nameOtherVerdict(results, text) {
  const [name, verdict] = text.split(/: (?=[^:]*$)/);
  const words = results.measuresByName.get(name)?.label ?? name.replace(/^also /, "").replace(/^beyond (.*)/, "beyond the null model “$1”").replaceAll("_", " ");
  return verdict ? `${words}: ${verdict}` : words;
}

// The specification curve, drawn when it comes into view.
function specificationElement(results, { sentence, specifications: { choices, rows } }) {
  const place = make("div", { className: "picture", role: "img", ariaLabel: `Specification curve of: ${sentence}` });
  const judged = Object.keys(VERDICT_SIGNS).map((verdict) => [rows.filter((row) => row[0] === verdict).length, verdict]);
  const words = judged.filter(([number]) => number).map((each) => each.join(" ")).join(", ");
  const caption = make("figcaption", { textContent: `${count(rows.length, "combination")} of choices: ${words}. Bars: 95 % intervals; ring: the reference. ${results.sample}` });
  drawInView(place, (width) => specificationCurve(choices, rows, width));
  return make("figure", { className: "curve" }, place, caption);
}

// Which choice of the analysis changes the verdict, if all others stay as they are.
function robustness(choices) {
  const words = ({ choice, option, verdict }) => `${choice} “${option}” (${verdict})`;
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
    const across = acrossFor(results.series.filter((each) => model.includes(each.model) && measure.includes(each.measure)));
    const href = toAddress({ ...start, view: claim.view, across, model, measure, rows }, start);
    return [make("a", { href, textContent: "Show its values", ariaLabel: `Show the values of: ${claim.sentence}` })];
  }
  if (!model.length || !claim.figures.length) return [];
  return [make("p", { className: "facts", textContent: `It has no curve here: see ${claim.figures.join(", ")} of this paper.` })];
}
