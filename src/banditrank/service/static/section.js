// A section of the page: a question, its answer in words, and the evidence.

import { h } from "./element.js";

export const section = (id, title, answer, key, ...evidence) =>
  h(
    "section",
    { id, "aria-labelledby": `${id}-h` },
    h("div", { class: "rail" }, h("h2", { id: `${id}-h` }, title), h("p", { class: "a" }, answer), key),
    h("div", { class: "ev" }, ...evidence),
  );

// What stands where there is nothing to show.
export const nothing = (words, command) =>
  h("div", { class: "none" }, words, command && h("pre", { class: "mono" }, command));

// A section that fails says so by itself, with what helps to find out why; the others stay as they are.
export function guarded(id, title, make) {
  try {
    return make();
  } catch (error) {
    return section(id, title, "This part cannot be shown.", null, panelProblem(error));
  }
}

export function panelProblem(error) {
  const request = error.requestId ? ` Request ${error.requestId}.` : "";
  return h("div", { class: "none bad" }, h("b", null, "This panel failed. "), `${error.message}${request}`);
}

export const figure = (title, reading, ...children) =>
  h("figure", null, h("figcaption", null, h("h3", null, title), reading), ...children);

export const note = (...words) => h("p", { class: "m s" }, ...words);
