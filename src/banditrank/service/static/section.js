// A section of the dashboard: a question, its answer in a sentence, and charts and tables.

import { h } from "./element.js";

export const QUESTIONS = {
  shown: "What is shown now?",
  learned: "What has been learned?",
  working: "Is it working?",
  experiment: "Is it better?",
  fair: "Is it fair?",
  healthy: "Is it healthy?",
};

export const section = (id, answer, key, ...evidence) =>
  h(
    "section",
    { id, "aria-labelledby": `${id}-h` },
    h(
      "div",
      { class: "rail" },
      h("h2", { id: `${id}-h` }, QUESTIONS[id]),
      h("p", { class: "a" }, answer),
      key,
    ),
    h("div", { class: "ev" }, ...evidence),
  );

// A text in place of missing data, with a command that creates some.
export const emptyState = (text, command) =>
  h("div", { class: "none" }, text, command && h("pre", { class: "mono" }, command));

const COMPILING = {
  "this-surface": "The service is compiling code for this surface. Estimates appear when it is done.",
  "another-surface": "The service is compiling code for another surface. Estimates may wait for it.",
};

// A section without estimates, which says what they wait for.
export const pendingSection = (id, state, ...evidence) =>
  section(
    id,
    "Not known yet.",
    null,
    emptyState(COMPILING[state.compiling] ?? "The estimates are being computed."),
    ...evidence,
  );

// Renders a section, or its error without affecting other sections.
export function errorBoundary(id, render) {
  try {
    return render();
  } catch (error) {
    return section(id, "This section cannot be shown.", null, panelError(error));
  }
}

export function panelError(error) {
  const request = error.requestId ? ` Request ${error.requestId}.` : "";
  return h("div", { class: "none bad" }, h("b", null, "This panel failed. "), `${error.message}${request}`);
}

export const figure = (title, readout, ...children) =>
  h("figure", null, h("figcaption", null, h("h3", null, title), readout), ...children);

export const note = (...content) => h("p", { class: "m s" }, ...content);
