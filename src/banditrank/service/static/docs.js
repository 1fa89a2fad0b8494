// The API page: Swagger UI with the OpenAPI document of the service that served this page.

import { BASE_URL, fetchAccess } from "./api.js";
import { apiKey } from "./api-key.js";

const SECURITY_SCHEME = "key"; // its name in the OpenAPI document

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

// Swagger UI's text says that only tags and paths are searched.
function labelSearch() {
  const api = document.getElementById("api");
  const observer = new MutationObserver(() => {
    const search = api.querySelector(".operation-filter-input");
    if (!search) return;
    observer.disconnect();
    search.placeholder = "Search operations";
    search.setAttribute("aria-label", "Search operations");
  });
  observer.observe(api, { childList: true, subtree: true });
}

followTheme();
labelSearch();
try {
  await Promise.all([showApi(), showAccess()]);
} catch {
  document.getElementById("access").textContent = "The service does not respond. Reload the page.";
}
