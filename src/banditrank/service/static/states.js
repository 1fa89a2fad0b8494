// The page before there is anything to show.

import { h } from "./element.js";
import { nothing, panelProblem, section } from "./section.js";

const SLOW_SECONDS = 10;

const QUESTIONS = [
  ["shown", "What is shown now?"],
  ["learned", "What has been learned?"],
  ["working", "Is it working?"],
  ["fair", "Is it fair?"],
  ["healthy", "Is it healthy?"],
];

const title = (name, words) =>
  h("div", { class: "title" }, h("h1", null, name), h("p", { class: "m" }, words));

// Frames as high as what will be in them, so that nothing jumps when it comes.
export function loading(name, seconds) {
  const words = seconds >= SLOW_SECONDS ? "The service answers slowly." : "Loading…";
  return [
    title(name, words),
    ...QUESTIONS.map(([id, question]) =>
      section(id, question, "Loading…", null, h("div", { class: "none sk" })),
    ),
  ];
}

export function unknown(name) {
  return [
    title(name, "There is no such surface."),
    nothing("It may have been deleted, or its name is another one."),
    h("p", { class: "after" }, h("a", { href: "../" }, "All surfaces")),
  ];
}

export const unreachable = (name, problem) => [
  title(name, "Nothing can be shown yet."),
  panelProblem(problem),
];
