// The explanation of one ranking: its inputs, its reasons and its outcome. Under equal treatment it proves
// that the user type was not used.

import { fetchExplanation } from "./api.js";
import { h } from "./element.js";
import { field } from "./form.js";
import { emptyState, panelError } from "./section.js";
import { table } from "./tables.js";
import {
  capitalize,
  list,
  moment,
  number,
  percent,
  plural,
  shortList,
  signed,
  utilityName,
  whole,
} from "./format.js";

const MAX_CANDIDATES = 10; // that are listed

let current = null; // {id, explanation, error}
let form = null;

export function explainView(id, back, redraw) {
  if (id && current?.id !== id) load(id, redraw);
  if (!id) current = null;
  form ??= idForm(redraw); // always a direct child of the page: an element that moves loses the focus
  const head = h(
    "div",
    { class: "title" },
    h("p", null, h("a", { href: "#" }, `Back to ${back}`)),
    h("h1", null, "Why this ranking?"),
    id && h("p", { class: "m mono wrap-any" }, id),
  );
  if (!id) return [head, form];
  if (current.error) return [head, panelError(current.error), form];
  if (!current.explanation) return [head, emptyState("Loading…"), form];
  return [head, ...sections(current.explanation), form];
}

// Drops the cached explanation, which changes when feedback arrives.
export function clearExplanation() {
  current = null;
}

async function load(id, redraw) {
  const request = { id };
  current = request;
  try {
    request.explanation = await fetchExplanation(id);
  } catch (error) {
    request.error = error;
  }
  if (current === request) redraw();
}

function idForm(redraw) {
  const submit = (event) => {
    event.preventDefault();
    const id = event.currentTarget.querySelector("input").value.trim();
    const hash = `#ranking=${encodeURIComponent(id)}`;
    if (id && location.hash !== hash) location.hash = hash;
    else if (id) reload();
  };
  const reload = () => {
    clearExplanation();
    redraw();
  };
  return h(
    "form",
    { class: "form narrow", "data-key": "ask", on: { submit } },
    field(
      "ranking-id",
      "Ranking id",
      h("input", { type: "text", required: true, autocomplete: "off", spellcheck: "false" }),
      "Returned with the ranking, and listed under the latest rankings.",
    ),
    h("div", { class: "actions" }, h("button", { type: "submit" }, "Explain")),
  );
}

const OUTCOMES = {
  pending: "No feedback yet.",
  "not-clicked": "No click.",
  discarded: "The attribution window closed without feedback; the ranking was discarded.",
  pruned: "The ranking was pruned; it is only part of the counts.",
};

// Whether the user type was used. Only a ranking that was reproduced proves what other users would have got.
function userTypeText({ is_type_used: isUsed, lottery, treatment, is_reproduced: isReproduced }) {
  if (isUsed && lottery) return "used: the ranking was drawn from the lottery of this type";
  if (isUsed) return "used: the ranking was made for this type";
  if (treatment === "equal-lottery" && isReproduced) return "not used: all users had the same odds";
  return treatment === "equal" && isReproduced
    ? "not used: all users would have got this ranking from these counts"
    : "not used";
}

const clickText = ({ item, reward }) => (reward === 1 ? item : `${item} (worth ${number(reward, 2)})`);

function outcomeText({ state, clicks }) {
  if (!clicks.length) return OUTCOMES[state] ?? state;
  const names = clicks.map(clickText).join(", ");
  return state === "pending" ? `Clicked so far: ${names}. More clicks may follow.` : `Clicked: ${names}.`;
}

const treatmentText = ({ treatment, utility }) =>
  treatment === "personalized"
    ? "personalized"
    : `equal${treatment === "equal-lottery" ? " by a lottery" : ""}, ${utilityName(utility)}`;

const drawText = ({ draw, drawn, rankings, kept_factor: kept }) =>
  `${number(draw, 4)}, from the ranking's id: ranking ${whole(drawn)} of ${whole(rankings.length)}` +
  (kept < 1 ? `; the lottery keeps ${percent(kept, 1)} of each guarantee` : "");

function lotteryOdds({ lottery: { rankings, drawn }, is_type_used: isTypeUsed, user_type: userType }) {
  const who = isTypeUsed ? `all users of type ${userType}` : "all users";
  let end = 0;
  return h(
    "figure",
    null,
    h("figcaption", null, h("h2", null, "Lottery"), h("span", { class: "m" }, `the same odds for ${who}`)),
    table(
      "Rankings of the lottery",
      ["Ranking", "Probability", "Drawn below", "Drawn"],
      rankings.map((one, index) => [
        one.items.join(", "),
        percent(one.probability, 1),
        number((end += one.probability), 4),
        index + 1 === drawn ? h("b", null, "yes") : "",
      ]),
    ),
  );
}

function sections(explanation) {
  const { lottery } = explanation;
  const pins = Object.entries(explanation.pinned).map(([at, item]) => `${item} at position ${at}`);
  const facts = [
    ["Shown to", `a user of type ${explanation.user_type}`],
    ["When", `${moment(Date.parse(explanation.issued_at))} UTC`],
    ["Treatment", treatmentText(explanation)],
    ["User type", userTypeText(explanation)],
    ...(explanation.arm ? [["Arm of the experiment", explanation.arm]] : []),
    ...(explanation.candidates ? [["Candidates", shortList(explanation.candidates, MAX_CANDIDATES)]] : []),
    ...(pins.length ? [["Pinned", list(pins)]] : []),
    [
      "Made by",
      `${explanation.policy}, from ${plural(explanation.rounds, "counted ranking")} ` +
        `(version ${whole(explanation.version)})`,
    ],
    [
      "Reproduced",
      explanation.is_reproduced
        ? "yes: the same counts give the same ranking"
        : "no: the same counts give another ranking",
    ],
    ...(lottery ? [["Draw", drawText(lottery)]] : []),
    ["Outcome", outcomeText(explanation.outcome)],
  ];
  const basis =
    explanation.basis === "posterior-sample"
      ? "in the problem that the policy sampled"
      : "by the estimates at the time";
  return [
    h("p", { class: "reason" }, capitalize(explanation.reason)),
    h(
      "dl",
      { class: "facts-list" },
      facts.map(([name, text]) => h("div", null, h("dt", null, name), h("dd", null, text))),
    ),
    h(
      "div",
      { class: "ev" },
      h(
        "figure",
        null,
        h("figcaption", null, h("h2", null, "Shown items"), h("span", { class: "m" }, basis)),
        table(
          "Items shown, by position",
          ["Item", "Position", "Looks", "If seen", "Clicks"],
          explanation.shown_items.map((one) => [
            one.item,
            one.position,
            percent(one.look, 1),
            number(one.mean),
            number(one.value),
          ]),
        ),
      ),
      lottery && lotteryOdds(explanation),
      explanation.omitted_items.length > 0 &&
        h(
          "figure",
          null,
          h(
            "figcaption",
            null,
            h("h2", null, "Closest alternatives"),
            h("span", { class: "m" }, "each at its best position"),
          ),
          table(
            "Items that were not shown",
            ["Item", "If seen", "Instead of", "Change"],
            explanation.omitted_items.map((one) => [
              one.item,
              number(one.mean),
              one.instead_of,
              one.gain === null ? "unknown" : signed(one.gain, 4),
            ]),
          ),
        ),
      h(
        "figure",
        null,
        h("figcaption", null, h("h2", null, "User types"), h("span", { class: "m" }, basis)),
        table(
          "User types and their weights",
          ["User type", "Weight", "Looks by position", "Clicks per visit"],
          explanation.beliefs.map((one) => [
            one.user_type,
            percent(one.weight, 1),
            one.position_preferences.map((look) => percent(look)).join(", "),
            number(one.value),
          ]),
        ),
      ),
    ),
  ];
}
