// The form that creates a surface; created once, so that updates keep its input.

import { createSurface, surfacePage } from "./api.js";
import { h } from "./element.js";
import { field, lines, outcomeMessage, submitForm } from "./form.js";

let form = null;

export function createView() {
  form ??= h(
    "form",
    { class: "form", "data-key": "create", on: { submit } },
    field(
      "name",
      "Name",
      h("input", {
        type: "text",
        name: "name",
        required: true,
        maxlength: 64,
        pattern: "[a-z0-9][a-z0-9._\\-]*",
        autocomplete: "off",
        spellcheck: "false",
      }),
      "Lower-case letters, digits, dots, dashes and underscores; it cannot be changed later.",
    ),
    field(
      "items",
      "Items",
      h("textarea", { name: "items", rows: 6, required: true }),
      "One per line. More can be added later.",
    ),
    field(
      "positions",
      "Positions",
      h("input", { type: "number", name: "positions", min: 1, max: 100, value: 3, required: true }),
      "Number of items in a ranking; it cannot be changed later.",
    ),
    field(
      "types",
      "User types",
      h("textarea", { name: "types", rows: 3 }, "everybody"),
      "One per line: the types of users that your pages distinguish.",
    ),
    choice("treatment", "Treatment", [
      ["personalized", "Personalized: each user type gets the ranking that is best for it."],
      ["equal", "Equal: all users get the same ranking."],
      ["equal-lottery", "Lottery: each ranking is drawn by chance, with the same odds for all users."],
    ]),
    field(
      "utility",
      "Utility of equal treatment",
      utilityChoice(),
      "Nash favours gains of types that have little; maximin considers only the worst-off type.",
    ),
    choice("click_model", "Click model", [
      ["single-look", "Single-look: users look at one position, and click at most once."],
      ["position-based", "Position-based: users may look at every position, and click several times."],
    ]),
    field(
      "window",
      "Attribution window in minutes",
      h("input", { type: "number", name: "window", min: 1, max: 129600, value: 30, required: true }),
      "Time for which feedback is accepted.",
    ),
    outcomeMessage(),
    h(
      "div",
      { class: "actions" },
      h("button", { type: "submit", class: "main" }, "Create surface"),
      h("a", { href: "#" }, "Back to all surfaces"),
    ),
  );
  return [
    h(
      "div",
      { class: "title" },
      h("h1", null, "Create a surface"),
      h("p", { class: "m" }, "A surface is one place where items are ranked."),
    ),
    form,
  ];
}

// Radio buttons for pairs of a value and its label; the first is the default.
const choice = (name, legend, options) =>
  h(
    "fieldset",
    { class: "field" },
    h("legend", null, legend),
    options.map(([value, label], i) =>
      h(
        "label",
        { class: "option" },
        h("input", { type: "radio", name, value, checked: i === 0 }),
        h("span", null, label),
      ),
    ),
  );

const utilityChoice = () =>
  h("select", { name: "utility" }, [
    h("option", { value: "utilitarian" }, "utilitarian"),
    h("option", { value: "nash", selected: true }, "Nash"),
    h("option", { value: "maximin" }, "maximin"),
  ]);

function submit(event) {
  event.preventDefault();
  const sent = event.currentTarget;
  const data = new FormData(sent);
  const equal = data.get("treatment") !== "personalized";
  const types = lines(data.get("types"));
  const body = {
    name: data.get("name"),
    items: lines(data.get("items")),
    n_positions: Number(data.get("positions")),
    treatment: data.get("treatment"),
    click_model: data.get("click_model"),
    attribution_seconds: 60 * Number(data.get("window")),
    ...(equal ? { utility: data.get("utility") } : {}),
    ...(types.length ? { user_types: types } : {}),
  };
  submitForm(sent, async () => {
    const created = await createSurface(body);
    location.href = surfacePage(created.name);
  });
}
