// Status icons: a shape and a word, never colour alone.

import { h } from "./element.js";

const SHAPES = {
  ok: "M2.5 7.5l3 3 6-7",
  warn: "M7 1.8L13 12.4H1zM7 5.6v3.2M7 10.2v1",
  bad: "M3 3l8 8M11 3l-8 8",
  unknown: "M3 7h8",
};

export const status = (kind, text) =>
  h(
    "span",
    { class: `st ${kind}` },
    h(
      "svg",
      {
        width: 14,
        height: 14,
        "aria-hidden": "true",
        fill: "none",
        stroke: "currentColor",
        "stroke-width": 1.8,
      },
      h("path", { d: SHAPES[kind] ?? SHAPES.unknown }),
    ),
    text,
  );

const LABELS = { ok: "OK", warn: "Warning", bad: "Failing" };

export const checkStatus = (check, silent) =>
  silent ? status("unknown", "Unknown") : status(check.status, LABELS[check.status] ?? check.status);
