// Claims of the chosen papers with their verdicts, each with a link to what it rests on.

const NOT_MEASURED = "not measured";
const VERDICT_SIGNS = { supported: "✓", contradicted: "✕", undecided: "?", [NOT_MEASURED]: "–" };

// What is measured comes first.
function showClaims(results, state) {
  const isOpen = (claim) => claim.verdict === NOT_MEASURED;
  const papers = results.papers
    .filter((each) => !state.paper.length || state.paper.includes(each.name))
    .map((paper) => [paper, results.claims.filter((each) => each.paper === paper.name).sort((a, b) => isOpen(a) - isOpen(b))])
    .filter(([, claims]) => claims.length)
    .sort(([, a], [, b]) => a.every(isOpen) - b.every(isOpen));
  const verdicts = papers.flatMap(([, claims]) => claims.map((each) => each.verdict));
  const counted = Object.keys(VERDICT_SIGNS)
    .map((verdict) => [verdicts.filter((each) => each === verdict).length, verdict])
    .filter(([number]) => number > 0);
  element("to-claims").textContent = `${count(verdicts.length, "claim")}: ${counted.map((each) => each.join(" ")).join(", ")}`;
  element("to-claims").hidden = element("claims").hidden = !papers.length;
  element("claim-list").replaceChildren(
    ...papers.map(([{ title }, claims]) => make("section", {}, make("h3", { textContent: title }), ...claims.map((each) => claimElement(results, each)))),
  );
}

function claimElement(results, claim) {
  const kind = claim.verdict in VERDICT_SIGNS ? claim.verdict : "undecided";
  const sign = make("span", { textContent: VERDICT_SIGNS[kind], ariaHidden: "true" });
  const short = (text) => shortNumber(Number(text.replace("inf", "Infinity")));
  const interval = claim.low && claim.high ? `, 95 % interval ${short(claim.low)} to ${short(claim.high)}` : "";
  const visible = claim.smallest_visible ? `; ${short(claim.smallest_visible)} from the bound could have been seen` : "";
  const estimate = claim.estimate ? `Estimate ${short(claim.estimate)}${interval}${visible}. ` : "";
  const reason = claim.because.split("`").map((each, at) => (at % 2 ? make("code", { textContent: each }) : each));
  return make(
    "article", {},
    make("p", { className: "sentence" }, claim.sentence, make("small", { textContent: ` ${claim.where}` })),
    make("span", { className: `verdict ${kind.replace(" ", "-")}` }, sign, ` ${claim.verdict}`),
    make("p", { className: "facts" }, estimate, ...reason),
    ...curveOf(results, claim),
  );
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
