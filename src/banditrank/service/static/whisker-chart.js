// Charts of estimates with intervals: one lane per mark, with its numbers at the right, in several lines on
// narrow charts; labels that are too long are above their lanes.
//
// spec: {key, label, idle, rows, range: {low, high}, format, axisFormat}
// row: {label, sub, bold, head, reference, marks}; head is a user type whose name is above the lanes
// mark: {key, type, name, bold, estimate, low, high, trueValue, note, text}
// The estimate is null if it is not known.

import { ticks } from "./axis.js";
import { chart, line, svg, text } from "./chart.js";
import { h } from "./element.js";
import { formatInterval } from "./format.js";
import { marker, typeClass } from "./markers.js";
import { fitText, textWidth } from "./text-width.js";

const GAP = 18; // between rows
const HEAD = 24; // height of a name above its lanes
const NARROW = 400;

export function whiskerChart(spec) {
  const stops = spec.rows.flatMap((row) =>
    row.marks.map((one) => ({ key: one.key, text: stopText(spec, row, one) })),
  );
  return chart({
    key: spec.key,
    label: spec.label,
    idle: spec.idle,
    orientation: "vertical",
    stops,
    draw: (width, at) => draw(spec, width, at),
    nearest: (_, y, width) => nearest(spec, y, width),
  });
}

function stopText(spec, row, one) {
  const truth = hasTrueValue(one) ? `, true ${spec.format(one.trueValue)}` : "";
  const interval = formatInterval(one, spec.format);
  return `${one.text ?? row.label}: ${spec.format(one.estimate)} (${interval})${truth}`;
}

const hasTrueValue = (one) => one.trueValue !== undefined && one.trueValue !== null;

// Horizontal layout: labels, plot, numbers.
function layout(spec, width) {
  const marks = spec.rows.flatMap((row) => row.marks);
  const narrow = width < NARROW;
  const labels = spec.rows.map((row) =>
    Math.max(row.head === undefined ? textWidth(row.label, 13, 600) : 0, textWidth(row.sub ?? "", 12)),
  );
  const names = marks.map((one) => (one.name ? textWidth(one.name, 13, 600) : 0));
  const labelWidth = Math.max(...labels, ...names) + 16;
  const above = labelWidth > Math.max(72, width * (narrow ? 0.34 : 0.38));
  const left = above ? 8 : labelWidth;
  const values = Math.max(...marks.map((one) => textWidth(spec.format(one.estimate), 13)));
  const bounds = Math.max(...marks.map((one) => textWidth(formatInterval(one, spec.format), 12)));
  const notes = Math.max(...marks.map((one) => textWidth(one.note ?? "", 12)));
  const right = narrow ? Math.max(values, bounds, notes) : values + 14 + bounds + (notes ? notes + 14 : 0);
  const lines = narrow ? (notes ? 3 : 2) : 1;
  const named = above && Math.max(...names) > 0; // the name of each lane is in a separate line
  const lane = [0, 20, 42, 58][lines] + (named ? 20 : 0);
  return { narrow, above, named, left, right: right + 12, bounds, notes, lane };
}

const headOf = (row, { above }) => (row.head !== undefined || (above && !row.marks[0].name) ? HEAD : 0);

function laneTops(spec, place) {
  const { lane } = place;
  let y = 8;
  const tops = [];
  for (const row of spec.rows) {
    y += GAP / 2 + headOf(row, place);
    for (const [index] of row.marks.entries()) tops.push(y + index * lane);
    y += row.marks.length * lane + GAP / 2;
  }
  return { tops, end: y };
}

function nearest(spec, y, width) {
  const place = layout(spec, width);
  const { lane } = place;
  const { tops } = laneTops(spec, place);
  const distances = tops.map((top) => Math.abs(top + lane / 2 - y));
  return distances.indexOf(Math.min(...distances));
}

function draw(spec, width, at) {
  const place = layout(spec, width);
  const { left, lane } = place;
  const { tops, end } = laneTops(spec, place);
  const plot = Math.max(40, width - left - place.right);
  const { low, high } = spec.range;
  const x = (value) => left + ((value - low) / (high - low)) * plot;
  const labelWidth = textWidth(spec.axisFormat(high), 12) + 12;
  const steps = ticks(low, high, Math.max(1, Math.min(5, Math.floor(plot / labelWidth))));
  const out = steps.flatMap((tick) => [
    line(x(tick), 8, x(tick), end, "gl"),
    text(x(tick), end + 16, spec.axisFormat(tick), "", "middle"),
  ]);
  if (at !== null) out.push(h("rect", { class: "at", x: 0, y: tops[at], width, height: lane, rx: 3 }));
  let index = 0;
  spec.rows.forEach((row, number) => {
    const top = tops[index];
    const height = row.marks.length * lane;
    const head = headOf(row, place);
    if (number) out.push(line(0, top - GAP / 2 - head, width, top - GAP / 2 - head, "gl"));
    out.push(...rowLabel(row, top, height, place, width));
    if (row.reference !== undefined)
      out.push(line(x(row.reference), top - 2, x(row.reference), top + height + 2, "rf"));
    for (const one of row.marks) {
      out.push(laneElements(spec, one, tops[index], place, x, width));
      index++;
    }
  });
  return svg(width, end + 22, out);
}

function rowLabel(row, top, height, place, width) {
  const { left } = place;
  const bold = row.bold ? "lab b" : "lab";
  if (row.head !== undefined) {
    const shape = h("g", { class: typeClass(row.head) }, marker(row.head, 6, top - 13, 5, "mk"));
    return [shape, text(20, top - 9, fitText(row.label, width - 24, 13, 600), "lab b")];
  }
  if (headOf(row, place)) {
    const sub = row.sub ? textWidth(row.sub, 12) + 16 : 0;
    const label = fitText(row.label, width - sub, 13, row.bold ? 600 : 400);
    return [text(0, top - 7, label, bold), row.sub ? text(width, top - 7, row.sub, "", "end") : []].flat();
  }
  const middle = top + height / 2;
  const label = fitText(row.label, left - 12, 13, row.bold ? 600 : 400);
  const full = label === row.label ? [] : [h("title", null, row.label)];
  if (row.sub && height > 30) {
    return [h("text", { x: 0, y: middle - 3, class: bold }, full, label), text(0, middle + 13, row.sub)];
  }
  return [h("text", { x: 0, y: middle + 4, class: bold }, full, label)];
}

function laneElements(spec, one, top, place, x, width) {
  const { narrow, named, lane, left, bounds, notes } = place;
  const y = top + (lane + (named ? 20 : 0)) / 2;
  const group = h("g", { class: typeClass(one.type), "data-mark": one.key });
  if (one.name) {
    const [at, room] = named ? [top + 14, width - 80] : [y + 4, left - 12];
    group.append(text(0, at, fitText(one.name, room, 13, one.bold ? 600 : 400), one.bold ? "lab b" : "lab"));
  }
  if (hasTrueValue(one)) group.append(marker(one.type, x(one.trueValue), y, 6.5, "tr"));
  group.append(line(x(one.low), y, x(one.high), y, "wh"));
  if (one.estimate !== null) group.append(marker(one.type, x(one.estimate), y, 4, "mk"));
  if (narrow) {
    const first = y + 4 - (notes ? 16 : 8);
    group.append(
      text(width, first, spec.format(one.estimate), "lab", "end"),
      text(width, first + 16, formatInterval(one, spec.format), "", "end"),
    );
    if (one.note) group.append(text(width, first + 32, one.note, "", "end"));
  } else {
    const boundsEnd = width - (notes ? notes + 14 : 0);
    group.append(text(boundsEnd - bounds - 14, y + 4, spec.format(one.estimate), "lab", "end"));
    group.append(text(boundsEnd, y + 4, formatInterval(one, spec.format), "", "end"));
    if (one.note) group.append(text(width, y + 4, one.note, "", "end"));
  }
  return group;
}
