// What all charts share: they are drawn when their width is known, and pointer and arrow keys move one cursor
// whose readout is text above the chart.
//
// A chart is told as
// {key, label, stops: [{key, text}], orientation, idle, draw(width, at), nearest(x, y, width)}:
// stops are what the cursor stands on; `at` is the number of one, or null while nobody points; `idle` is the
// readout then.

import { CHART, h } from "./element.js";
import { morphChildren } from "./morph.js";

// Where each chart's cursor stands, by the key of its stop: it stays there when the data moves on.
const cursors = new Map();

export function chart(told) {
  const vertical = told.orientation === "vertical";
  const element = h("div", {
    class: "plot",
    "data-key": told.key,
    "data-chart": told.key,
    tabindex: 0,
    role: "slider",
    "aria-label": `${told.label}. Arrow keys move through it.`,
    "aria-orientation": vertical ? "vertical" : "horizontal",
    on: {
      pointermove: (event) => point(event.currentTarget, event),
      pointerdown: (event) => point(event.currentTarget, event),
      pointerleave: (event) => leave(event.currentTarget),
      focus: (event) => show(event.currentTarget, cursors.get(told.key)?.stop ?? restOf(told)),
      blur: (event) => leave(event.currentTarget, true),
      keydown: (event) => step(event.currentTarget, event),
    },
  });
  element[CHART] = told;
  return element;
}

export const readout = (told) =>
  h("span", { class: "m readout", "data-readout": told.key, "data-key": `r-${told.key}` }, told.idle);

const restOf = (told) => (told.orientation === "vertical" ? told.stops[0]?.key : told.stops.at(-1)?.key);

// Draws all charts below an element, each as wide as it is; those in what is hidden are left until it is not.
export function drawCharts(root) {
  for (const element of root.querySelectorAll(".plot")) draw(element);
}

function draw(element) {
  const told = element[CHART];
  const width = element.clientWidth;
  if (!width || !told) return;
  const at = cursorOf(told);
  const drawn = told.draw(width, at);
  drawn.setAttribute("aria-hidden", "true");
  morphChildren(element, [drawn]);
  const stop =
    at ??
    Math.max(
      0,
      told.stops.findIndex((one) => one.key === restOf(told)),
    );
  const text = told.stops[stop]?.text ?? told.idle;
  element.setAttribute("aria-label", `${told.label}. Arrow keys move through it.`);
  element.setAttribute("aria-valuemin", 0);
  element.setAttribute("aria-valuemax", Math.max(0, told.stops.length - 1));
  element.setAttribute("aria-valuenow", stop);
  element.setAttribute("aria-valuetext", text);
  const reading = document.querySelector(`[data-readout="${CSS.escape(told.key)}"]`);
  const words = at === null ? told.idle : text;
  if (reading && reading.textContent !== words) reading.textContent = words;
}

function cursorOf(told) {
  const cursor = cursors.get(told.key);
  if (!cursor) return null;
  const found = told.stops.findIndex((stop) => stop.key === cursor.stop);
  if (found >= 0) return found;
  return told.near ? told.near(cursor.stop) : null; // buckets became wider
}

function show(element, stop) {
  if (stop === undefined) return;
  cursors.set(element[CHART].key, { stop });
  draw(element);
}

function leave(element, left = false) {
  if (!left && document.activeElement === element) return; // the keyboard still holds the cursor
  cursors.delete(element[CHART].key);
  draw(element);
}

function point(element, event) {
  const told = element[CHART];
  const box = element.getBoundingClientRect();
  const found = told.nearest(event.clientX - box.left, event.clientY - box.top, box.width);
  const last = told.stops.length - 1;
  if (last >= 0) show(element, told.stops[Math.max(0, Math.min(last, found))].key);
}

const MOVES = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1, PageUp: -6, PageDown: 6 };

function step(element, event) {
  const told = element[CHART];
  const last = told.stops.length - 1;
  const from = cursorOf(told) ?? (told.orientation === "vertical" ? 0 : last);
  const to = event.key === "Home" ? 0 : event.key === "End" ? last : from + (MOVES[event.key] ?? NaN);
  if (Number.isNaN(to) || last < 0) return;
  event.preventDefault();
  show(element, told.stops[Math.max(0, Math.min(last, to))].key);
}

// Shapes that charts are made of.

export const line = (x1, y1, x2, y2, classes) => h("line", { x1, y1, x2, y2, class: classes });

export const text = (x, y, words, classes, anchor) =>
  h("text", { x, y, class: classes, "text-anchor": anchor }, words);

export const picture = (width, height, ...children) =>
  h("svg", { viewBox: `0 0 ${width} ${height}`, width, height, focusable: "false" }, ...children);

export const path = (points) => `M${points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}`;
