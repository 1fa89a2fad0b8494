// Asks for an API key, which the service demands before it tells anything.

import { key } from "./key.js";
import { h } from "./element.js";

// refused: whether a key was sent that does not do.
export function keyView(refused, onKey) {
  const submit = (event) => {
    event.preventDefault();
    const given = event.currentTarget.querySelector("input").value.trim();
    if (!given) return;
    key.set(given);
    onKey();
  };
  return [
    h("div", { class: "title" }, h("h1", null, "An API key is needed")),
    h(
      "form",
      { class: "form narrow", "data-key": "key", on: { submit } },
      h(
        "p",
        null,
        "The service shows what it has learned to those with a key that has the right to read. " +
          "The key is kept for this tab alone.",
      ),
      refused &&
        h(
          "p",
          { class: "refused", role: "alert" },
          "This key does not have the right to read, or is not known.",
        ),
      h(
        "div",
        { class: "field" },
        h("label", { for: "key" }, "Key"),
        h("input", { id: "key", type: "password", autocomplete: "off", spellcheck: "false", required: true }),
      ),
      h("div", { class: "actions" }, h("button", { type: "submit", class: "main" }, "Use this key")),
      h(
        "p",
        { class: "m s" },
        "Keys are made on the machine of the service: ",
        h("code", { class: "mono" }, "banditrank keys create analysts --rights read"),
      ),
    ),
  ];
}
