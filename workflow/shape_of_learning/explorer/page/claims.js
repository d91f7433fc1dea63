// The claims of the chosen papers: verdicts, numbers, the effect of choices of the analysis, and links to the values.

const [CONTRADICTED, OUTSIDE, NOT_MEASURED] = ["contradicted", "outside the claim", "not measured"];
const BEYOND = "beyond "; // begins a comparison with a null model, which is not a verdict on the claim
const OUTSIDE_MEANS = "Outside the claim: the claim is about models that this run does not have, or about a part of a training that it has not measured.";
const VERDICT_SIGNS = {
  supported: "✓", [CONTRADICTED]: "✕", "depends on the estimator": "≠", undecided: "?", [OUTSIDE]: "○", [NOT_MEASURED]: "–",
};

// Claims have the order of the ledger; claims that this run cannot judge are folded.
function showClaims(results, state) {
  const papers = results.papers
    .filter(({ name }) => !state.paper.length || state.paper.includes(name))
    .map((paper) => [paper, results.claims.filter((claim) => claim.paper === paper.name)])
    .filter(([, claims]) => claims.length);
  element("to-claims").textContent = countVerdicts(papers.flatMap(([, claims]) => claims));
  element("to-claims").hidden = element("claims").hidden = !papers.length;
  const sections = papers.map(([{ title }, claims]) => {
    const isJudged = (claim) => ![OUTSIDE, NOT_MEASURED].includes(claim.verdict);
    const unjudgedClaims = claims.filter((claim) => !isJudged(claim));
    const items = unjudgedClaims.map(({ sentence, verdict, because }) => {
      const reason = make("small", {}, ` ${verdict[0].toUpperCase()}${verdict.slice(1)}: `, ...withLabels(results, because));
      return make("li", { className: "sentence" }, sentence, reason);
    });
    const summary = make("summary", { textContent: `This run cannot judge ${count(unjudgedClaims.length, "claim")}` });
    const meaning = unjudgedClaims.some(({ verdict }) => verdict === OUTSIDE) && make("p", { className: "facts", textContent: OUTSIDE_MEANS });
    const foldedClaims = make("details", {}, summary, ...(meaning ? [meaning] : []), make("ul", {}, ...items));
    const articles = claims.filter(isJudged).map((claim) => claimElement(results, claim));
    return make("section", {}, make("h3", { textContent: title }), make("p", { className: "facts", textContent: countVerdicts(claims) }), ...articles, ...(unjudgedClaims.length ? [foldedClaims] : []));
  });
  element("claim-list").replaceChildren(...sections);
}

// Count all claims, then the claims of each verdict, as the pages of the papers do.
function countVerdicts(claims) {
  const counts = Object.keys(VERDICT_SIGNS)
    .map((verdict) => [claims.filter((claim) => claim.verdict === verdict).length, verdict])
    .filter(([number]) => number > 0);
  return `${count(claims.length, "claim")}: ${counts.map((pair) => pair.join(" ")).join(", ")}`;
}

// Replace names of models and measures in a sentence by their labels.
function withLabels(results, text) {
  const label = (name) => (results.modelsByName.get(name) ?? results.measuresByName.get(name))?.label;
  return text.split("`").map((part, at) => (at % 2 ? (label(part) ?? make("code", { textContent: part })) : part));
}

function claimElement(results, claim) {
  const kind = claim.verdict in VERDICT_SIGNS ? claim.verdict : "undecided";
  const sign = make("span", { textContent: VERDICT_SIGNS[kind], ariaHidden: "true" });
  const otherVerdicts = claim.besides ? claim.besides.split(";") : [];
  const formatVerdicts = (parts) => parts.map((words) => nameOtherVerdict(results, words)).join("; ");
  const otherSentence = otherVerdicts.length && `Other estimators, selections and null models: ${formatVerdicts(otherVerdicts)}.`;
  const isDiffering = (words) => !words.startsWith(BEYOND) && ![claim.verdict, NOT_MEASURED].includes(words.split(": ").at(-1));
  const differingVerdicts = otherVerdicts.filter(isDiffering);
  const facts = [otherSentence, claim.choices.length && robustness(claim.choices)].filter(Boolean).map((words) => make("p", { className: "facts" }, words));
  const reason = make("details", { className: "facts" }, make("summary", { textContent: "Why this verdict" }), ...withLabels(results, claim.because));
  return make(
    "article", {},
    make("p", { className: "sentence" }, claim.sentence, make("small", { textContent: ` ${claim.where}` })),
    make("span", { className: `verdict ${kind.replaceAll(" ", "-")}` }, sign, ` ${claim.verdict}`, ...(differingVerdicts.length ? [make("small", { textContent: ` (${formatVerdicts(differingVerdicts)})` })] : [])),
    ...(claim.summary ? [make("p", {}, ...withLabels(results, claim.summary))] : []),
    ...(claim.criteria.length ? [criteriaTable(claim)] : []),
    ...facts,
    ...(claim.specifications ? [specificationElement(results, claim)] : []),
    reason,
    ...curveOf(results, claim),
  );
}

// The table of criteria, with the same rows and columns as on the page of the claims.
function criteriaTable({ criteria, criteria_columns: columns }) {
  const line = (kind, cells) => make("tr", {}, ...cells.map((textContent) => make(kind, { textContent })));
  const table = make("table", {}, make("thead", {}, line("th", columns)), make("tbody", {}, ...criteria.map((cells) => line("td", cells))));
  return make("div", { className: "criteria" }, table);
}

// Format a verdict by another estimator or on other rows, or a comparison with a null model.
function nameOtherVerdict(results, text) {
  const [name, verdict] = text.split(/: (?=[^:]*$)/);
  const words = results.measuresByName.get(name)?.label ?? name.replace(/^also /, "").replace(/^beyond (.*)/, "beyond the null model “$1”").replaceAll("_", " ");
  return verdict ? `${words}: ${verdict}` : words;
}

// The place of a specification curve, which is drawn when it comes into view.
function specificationElement(results, { sentence, specifications: { choices, rows } }) {
  const place = make("div", { className: "picture", role: "img", ariaLabel: `Specification curve of: ${sentence}` });
  const counts = Object.keys(VERDICT_SIGNS).map((verdict) => [rows.filter((row) => row[0] === verdict).length, verdict]);
  const words = counts.filter(([number]) => number).map((pair) => pair.join(" ")).join(", ");
  const caption = make("figcaption", { textContent: `${count(rows.length, "combination")} of choices: ${words}. Bars: 95 % intervals; ring: the reference. ${results.sample}` });
  drawInView(place, (width) => specificationCurve(choices, rows, width));
  return make("figure", { className: "curve" }, place, caption);
}

// Name the choices of the analysis that change the verdict alone, while the other choices stay.
function robustness(choices) {
  const words = ({ choice, option, verdict }) => `${choice} “${option}” (${verdict})`;
  const flips = choices.filter(({ flips }) => flips === "yes").map(words);
  const verdict = choices[0].verdict_of_reference;
  if (!flips.length) return `Robustness: none of ${count(choices.length, "other choice")} of the analysis alone changes the verdict “${verdict}”.`;
  return `Robustness: ${flips.length} of ${count(choices.length, "other choice")} of the analysis alone ${flips.length === 1 ? "changes" : "change"} the verdict “${verdict}”: ${flips.join(", ")}.`;
}

// A link to the values behind the verdict, whose models may be missing from the paper's figures.
function curveOf(results, claim) {
  const model = claim.models.filter((name) => results.modelsByName.has(name));
  const measure = claim.measures.filter((name) => results.measured.includes(name));
  if (model.length && measure.length) {
    const start = startState(results);
    // Some measures, such as those of matrices, have other selections than those that the verdict names.
    const selections = measure.flatMap((name) => {
      const names = results.series.filter((series) => series.measure === name).map((series) => series.selection);
      return names.some((selection) => claim.selections.includes(selection)) ? claim.selections : names;
    });
    const rows = start.rows.filter((selection) => selections.includes(selection));
    const across = acrossFor(results.series.filter((series) => model.includes(series.model) && measure.includes(series.measure)));
    const href = toAddress({ ...start, view: claim.view, across, model, measure, rows }, start);
    return [make("a", { href, textContent: "Show its values", ariaLabel: `Show the values of: ${claim.sentence}` })];
  }
  if (!model.length || !claim.figures.length) return [];
  return [make("p", { className: "facts", textContent: `The claim has no curve here: see ${claim.figures.join(", ")} of this paper.` })];
}
