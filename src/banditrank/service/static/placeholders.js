// Views without data: loading, unknown surface, and service not available.

import { h } from "./element.js";
import { emptyState, panelError, QUESTIONS, section } from "./section.js";

const SLOW_SECONDS = 10;

const title = (name, text) =>
  h("div", { class: "title" }, h("h1", null, name), h("p", { class: "m" }, text));

// Empty sections of the final height, so that the layout does not shift.
export function loadingView(name, seconds) {
  const text = seconds >= SLOW_SECONDS ? "The service is slow to respond." : "Loading…";
  return [
    title(name, text),
    ...Object.keys(QUESTIONS)
      .filter((id) => id !== "experiment") // most surfaces have none
      .map((id) => section(id, "Loading…", null, h("div", { class: "none sk" }))),
  ];
}

export function unknownSurfaceView(name) {
  return [
    title(name, "This surface does not exist."),
    emptyState("It may have been deleted, or its name is misspelled."),
    h("p", { class: "after" }, h("a", { href: "../" }, "All surfaces")),
  ];
}

export const compilingView = (name) => [
  title(name, "The service is compiling code for this surface."),
  emptyState("This takes up to a minute. The page appears by itself."),
];

export const unreachableView = (name, error) => [
  title(name, "No data yet."),
  panelError(error),
];
