// Base of all charts: drawing at the width of the element, and a cursor for pointer and arrow keys with a
// readout above the chart.
//
// spec: {key, label, stops: [{key, text}], orientation, idle,
//        draw(width, at), nearest(x, y, width), near(key)}
// stops are the positions of the cursor; `at` is the index of a stop, or null without a cursor; `idle` is the
// readout without a cursor; `near` returns the stop that replaces a key that no longer exists.

import { CHART, h } from "./element.js";
import { morphChildren } from "./morph.js";

// Cursor of each chart by the key of its stop, so that it stays at its data when the chart is updated.
const cursors = new Map();

export function chart(spec) {
  const vertical = spec.orientation === "vertical";
  const element = h("div", {
    class: "plot",
    "data-key": spec.key,
    "data-chart": spec.key,
    tabindex: 0,
    role: "slider",
    "aria-label": `${spec.label}. Arrow keys move through it.`,
    "aria-orientation": vertical ? "vertical" : "horizontal",
    on: {
      pointermove: (event) => point(event.currentTarget, event),
      pointerdown: (event) => point(event.currentTarget, event),
      pointerleave: (event) => leave(event.currentTarget),
      focus: (event) => show(event.currentTarget, cursors.get(spec.key)?.stop ?? restStop(spec)),
      blur: (event) => leave(event.currentTarget, true),
      keydown: (event) => step(event.currentTarget, event),
    },
  });
  element[CHART] = spec;
  return element;
}

export const readout = (spec) =>
  h("span", { class: "m readout", "data-readout": spec.key, "data-key": `r-${spec.key}` }, spec.idle);

const restStop = (spec) => (spec.orientation === "vertical" ? spec.stops[0]?.key : spec.stops.at(-1)?.key);

// Draws all visible charts within an element.
export function drawCharts(root) {
  for (const element of root.querySelectorAll(".plot")) draw(element);
}

function draw(element) {
  const spec = element[CHART];
  const width = element.clientWidth;
  if (!width || !spec) return;
  const at = cursorOf(spec);
  const drawing = spec.draw(width, at);
  drawing.setAttribute("aria-hidden", "true");
  morphChildren(element, [drawing]);
  const stop =
    at ??
    Math.max(
      0,
      spec.stops.findIndex((one) => one.key === restStop(spec)),
    );
  const text = spec.stops[stop]?.text ?? spec.idle;
  element.setAttribute("aria-label", `${spec.label}. Arrow keys move through it.`);
  element.setAttribute("aria-valuemin", 0);
  element.setAttribute("aria-valuemax", Math.max(0, spec.stops.length - 1));
  element.setAttribute("aria-valuenow", stop);
  element.setAttribute("aria-valuetext", text);
  const output = document.querySelector(`[data-readout="${CSS.escape(spec.key)}"]`);
  const shown = at === null ? spec.idle : text;
  if (output && output.textContent !== shown) output.textContent = shown;
}

function cursorOf(spec) {
  const cursor = cursors.get(spec.key);
  if (!cursor) return null;
  const found = spec.stops.findIndex((stop) => stop.key === cursor.stop);
  if (found >= 0) return found;
  return spec.near ? spec.near(cursor.stop) : null;
}

function show(element, stop) {
  if (stop === undefined) return;
  cursors.set(element[CHART].key, { stop });
  draw(element);
}

function leave(element, isBlur = false) {
  if (!isBlur && document.activeElement === element) return; // the keyboard still has the cursor
  cursors.delete(element[CHART].key);
  draw(element);
}

function point(element, event) {
  const spec = element[CHART];
  const box = element.getBoundingClientRect();
  const found = spec.nearest(event.clientX - box.left, event.clientY - box.top, box.width);
  const last = spec.stops.length - 1;
  if (last >= 0) show(element, spec.stops[Math.max(0, Math.min(last, found))].key);
}

const MOVES = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1, PageUp: -6, PageDown: 6 };

function step(element, event) {
  const spec = element[CHART];
  const last = spec.stops.length - 1;
  const from = cursorOf(spec) ?? (spec.orientation === "vertical" ? 0 : last);
  const to = event.key === "Home" ? 0 : event.key === "End" ? last : from + (MOVES[event.key] ?? NaN);
  if (Number.isNaN(to) || last < 0) return;
  event.preventDefault();
  show(element, spec.stops[Math.max(0, Math.min(last, to))].key);
}

// Shapes

export const line = (x1, y1, x2, y2, classes) => h("line", { x1, y1, x2, y2, class: classes });

export const text = (x, y, content, classes, anchor) =>
  h("text", { x, y, class: classes, "text-anchor": anchor }, content);

export const svg = (width, height, ...children) =>
  h("svg", { viewBox: `0 0 ${width} ${height}`, width, height, focusable: "false" }, ...children);

export const path = (points) => `M${points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}`;
