// Creating a surface: a form, made once and kept as it is while its fields are being filled in.

import { createSurface, surfacePage } from "./api.js";
import { h } from "./element.js";
import { field, lines, outcome, submitting } from "./form.js";

let made = null;

export function createView() {
  made ??= h(
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
      "One a line. More can be added later.",
    ),
    field(
      "positions",
      "Positions",
      h("input", { type: "number", name: "positions", min: 1, max: 100, value: 3, required: true }),
      "How many items are shown at once; it cannot be changed later.",
    ),
    field(
      "types",
      "User types",
      h("textarea", { name: "types", rows: 3 }, "everybody"),
      "One a line: the kinds of users that pages tell apart.",
    ),
    treatmentChoice(),
    field(
      "utility",
      "What equal treatment maximises",
      utilityChoice(),
      "Nash weighs a gain by how little a type has; maximin looks at the worst-off type alone.",
    ),
    field(
      "window",
      "Attribution window in minutes",
      h("input", { type: "number", name: "window", min: 1, max: 129600, value: 30, required: true }),
      "For how long a click is awaited.",
    ),
    outcome(),
    h(
      "div",
      { class: "actions" },
      h("button", { type: "submit", class: "main" }, "Create the surface"),
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
    made,
  ];
}

function treatmentChoice() {
  const option = (value, words, checked) =>
    h(
      "label",
      { class: "option" },
      h("input", { type: "radio", name: "treatment", value, checked }),
      h("span", null, words),
    );
  return h(
    "fieldset",
    { class: "field" },
    h("legend", null, "Treatment"),
    option("personalized", "Personalized: each user type gets the ranking that is best for it.", true),
    option("equal", "Equal: everyone gets one ranking, whoever asks.", false),
  );
}

const utilityChoice = () =>
  h("select", { name: "utility" }, [
    h("option", { value: "utilitarian" }, "utilitarian"),
    h("option", { value: "nash", selected: true }, "Nash"),
    h("option", { value: "maximin" }, "maximin"),
  ]);

function submit(event) {
  event.preventDefault();
  const form = event.currentTarget;
  const given = new FormData(form);
  const equal = given.get("treatment") === "equal";
  const types = lines(given.get("types"));
  const body = {
    name: given.get("name"),
    items: lines(given.get("items")),
    n_positions: Number(given.get("positions")),
    treatment: given.get("treatment"),
    attribution_seconds: 60 * Number(given.get("window")),
    ...(equal ? { utility: given.get("utility") } : {}),
    ...(types.length ? { user_types: types } : {}),
  };
  submitting(form, async () => {
    const created = await createSurface(body);
    location.href = surfacePage(created.name);
  });
}
