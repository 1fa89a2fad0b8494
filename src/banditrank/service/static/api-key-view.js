// The form for an API key, where the service requires one.

import { apiKey } from "./api-key.js";
import { h } from "./element.js";

// isRefused: whether the service refused the current key.
export function apiKeyView(isRefused, onKey) {
  const submit = (event) => {
    event.preventDefault();
    const value = event.currentTarget.querySelector("input").value.trim();
    if (!value) return;
    apiKey.set(value);
    onKey();
  };
  return [
    h("div", { class: "title" }, h("h1", null, "API key required")),
    h(
      "form",
      { class: "form narrow", "data-key": "key", on: { submit } },
      h(
        "p",
        null,
        "This page needs an API key with the right to read. The key is stored for this tab only.",
      ),
      isRefused &&
        h(
          "p",
          { class: "refused", role: "alert" },
          "This key is invalid or does not have the right to read.",
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
        "Create a key on the machine of the service: ",
        h("code", { class: "mono" }, "banditrank keys create analysts --rights read"),
      ),
    ),
  ];
}
