// The API page: Swagger UI with the OpenAPI document of the service that served this page.

import { BASE_URL, fetchAccess } from "./api.js";
import { apiKey } from "./api-key.js";

const SECURITY_SCHEME = "key"; // its name in the OpenAPI document
const SEARCH = ".operation-filter-input";
const LABELS = {
  [SEARCH]: "Search operations",
  ".body-param__text": "Request body",
  ".examples-select-element": "Example",
};

// Swagger UI searches tags and paths only; this searches whatever the list of operations shows, and the ids.
const searchPlugin = {
  fn: {
    opsFilter(taggedOperations, phrase) {
      const words = phrase.toLowerCase().split(/\s+/);
      const matches = (tag) => (one) => {
        const operation = one.get("operation");
        const texts = [one.get("method"), one.get("path"), tag];
        for (const field of ["operationId", "summary", "description"]) texts.push(operation.get(field, ""));
        const text = texts.join(" ").toLowerCase();
        return words.every((word) => text.includes(word));
      };
      return taggedOperations
        .map((group, tag) => group.update("operations", (operations) => operations.filter(matches(tag))))
        .filter((group) => group.get("operations").size > 0);
    },
  },
};

function followTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const apply = () =>
    root.classList.toggle("dark-mode", (root.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark");
  dark.addEventListener("change", apply);
  new MutationObserver(apply).observe(root, { attributeFilter: ["data-theme"] });
  apply();
}

async function showAccess() {
  const access = await fetchAccess();
  let text = "No API key is required.";
  if (access.keys_required) {
    text = access.rights.length
      ? `The key of this tab may ${access.rights.join(", ")}.`
      : "An API key is required: choose Authorize.";
  }
  document.getElementById("access").textContent = text;
}

async function showApi() {
  const response = await fetch(new URL("openapi.json", BASE_URL));
  const spec = await response.json();
  spec.servers = [{ url: BASE_URL.href.replace(/\/$/, "") }]; // also behind a proxy with a path prefix
  const ui = window.SwaggerUIBundle({
    spec,
    domNode: document.getElementById("api"),
    plugins: [searchPlugin],
    filter: true,
    deepLinking: true,
    tryItOutEnabled: true,
    displayRequestDuration: true,
    defaultModelsExpandDepth: 0,
    validatorUrl: null, // another host
    onComplete: () => {
      if (apiKey.get()) ui.preauthorizeApiKey(SECURITY_SCHEME, apiKey.get());
    },
  });
}

// Names controls that have none for screen readers; Swagger UI adds them whenever an operation is opened.
function labelControls() {
  const api = document.getElementById("api");
  const label = () => {
    for (const [selector, text] of Object.entries(LABELS))
      for (const control of api.querySelectorAll(selector)) control.setAttribute("aria-label", text);
    // Swagger UI's text says that only tags and paths are searched.
    api.querySelector(SEARCH)?.setAttribute("placeholder", LABELS[SEARCH]);
  };
  new MutationObserver(label).observe(api, { childList: true, subtree: true });
}

followTheme();
labelControls();
try {
  await Promise.all([showApi(), showAccess()]);
} catch {
  document.getElementById("access").textContent = "The service does not respond. Reload the page.";
}
