// One ranking explained: what it was made of, why it came out so, and what became of it. Under equal
// treatment it is the proof that who asked did not matter.

import { explanation } from "./api.js";
import { h } from "./element.js";
import { field } from "./form.js";
import { nothing, panelProblem } from "./section.js";
import { table } from "./tables.js";
import { capital, moment, number, percent, plural, signed, utilityName, whole } from "./words.js";

let asked = null; // {id, answer, problem}
let form = null;

export function explainView(id, back, redraw) {
  if (id && asked?.id !== id) ask(id, redraw);
  if (!id) asked = null;
  form ??= askForm(redraw); // always a child of the page itself: one that was moved would lose the focus
  const head = h(
    "div",
    { class: "title" },
    h("p", null, h("a", { href: "#" }, `Back to ${back}`)),
    h("h1", null, "Why this ranking?"),
    id && h("p", { class: "m mono wrap-any" }, id),
  );
  if (!id) return [head, form];
  if (asked.problem) return [head, panelProblem(asked.problem), form];
  if (!asked.answer) return [head, nothing("Loading…"), form];
  return [head, ...explained(asked.answer), form];
}

// What was told may have changed when somebody asks again: feedback comes, and services come back.
export function forgetExplanation() {
  asked = null;
}

async function ask(id, redraw) {
  const mine = { id };
  asked = mine;
  try {
    mine.answer = await explanation(id);
  } catch (problem) {
    mine.problem = problem;
  }
  if (asked === mine) redraw();
}

function askForm(redraw) {
  const submit = (event) => {
    event.preventDefault();
    const id = event.currentTarget.querySelector("input").value.trim();
    const place = `#ranking=${encodeURIComponent(id)}`;
    if (id && location.hash !== place) location.hash = place;
    else if (id) again();
  };
  const again = () => {
    forgetExplanation();
    redraw();
  };
  return h(
    "form",
    { class: "form narrow", "data-key": "ask", on: { submit } },
    field(
      "ranking-id",
      "Id of a ranking",
      h("input", { type: "text", required: true, autocomplete: "off", spellcheck: "false" }),
      "It came with the ranking, and is in the list of the latest.",
    ),
    h("div", { class: "actions" }, h("button", { type: "submit" }, "Explain it")),
  );
}

const OUTCOMES = {
  open: "Feedback is awaited.",
  "not-clicked": "Nothing was clicked.",
  discarded: "Its window closed without feedback; it counts for nothing.",
  forgotten: "It is so old that it is only known as part of the counts.",
};

// What follows from who asked, and no more: a policy may ignore types by itself, and a ranking that does not
// come out again proves nothing.
function whoWords({ type_entered: entered, treatment, reproduced }) {
  if (entered) return "mattered: it was made for this type";
  return treatment === "equal" && reproduced
    ? "did not enter: everyone would have got this ranking from these counts"
    : "did not enter";
}

const outcomeWords = ({ state, item, reward }) =>
  state === "clicked"
    ? `${item} was clicked${reward === 1 ? "" : `, worth ${number(reward, 2)}`}.`
    : (OUTCOMES[state] ?? state);

function explained(answer) {
  const equal = answer.treatment === "equal";
  const facts = [
    ["Shown to", `a user of type ${answer.user_type}`],
    ["When", `${moment(answer.issued * 1000)} UTC`],
    ["Treatment", equal ? `equal, ${utilityName(answer.utility)}` : "personalized"],
    ["Who asked", whoWords(answer)],
    [
      "Made by",
      `${answer.policy}, from ${plural(answer.rounds, "ranking")} counted (version ${whole(answer.version)})`,
    ],
    [
      "Made again",
      answer.reproduced
        ? "from the same counts, the same ranking comes out"
        : "from the same counts, another ranking comes out",
    ],
    ["Outcome", outcomeWords(answer.outcome)],
  ];
  const world =
    answer.basis === "draw" ? "in the world that the policy drew" : "by the estimates of the time";
  return [
    h("p", { class: "reason" }, capital(answer.reason)),
    h(
      "dl",
      { class: "facts-list" },
      facts.map(([name, words]) => h("div", null, h("dt", null, name), h("dd", null, words))),
    ),
    h(
      "div",
      { class: "ev" },
      h(
        "figure",
        null,
        h("figcaption", null, h("h2", null, "What was shown"), h("span", { class: "m" }, world)),
        table(
          "Items shown, by position",
          ["Item", "Position", "Looks", "If seen", "Clicks"],
          answer.shown.map((one) => [
            one.item,
            one.position,
            percent(one.look, 1),
            number(one.mean),
            number(one.value),
          ]),
        ),
      ),
      answer.left_out.length > 0 &&
        h(
          "figure",
          null,
          h(
            "figcaption",
            null,
            h("h2", null, "What came nearest"),
            h("span", { class: "m" }, "where it would have done best"),
          ),
          table(
            "Items left out",
            ["Item", "If seen", "Instead of", "Change"],
            answer.left_out.map((one) => [
              one.item,
              number(one.mean),
              one.instead_of,
              one.gain === null ? "not known" : signed(one.gain, 4),
            ]),
          ),
        ),
      h(
        "figure",
        null,
        h("figcaption", null, h("h2", null, "Who counted"), h("span", { class: "m" }, world)),
        table(
          "User types that counted",
          ["User type", "Weight", "Looks by position", "Clicks per visit"],
          answer.beliefs.map((one) => [
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
