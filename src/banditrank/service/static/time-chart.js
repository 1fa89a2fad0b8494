// Charts of a time series: one point per bucket, without smoothing.
//
// spec: {key, label, series, height, range: {low, high}, format, values, layers(x, y, clamp), point(bucket),
// references, events}

import { decimalPlaces, ticks, timeStep } from "./axis.js";
import { chart, line, path, svg, text } from "./chart.js";
import { h } from "./element.js";
import { placeLabels } from "./event-labels.js";
import { textWidth } from "./text-width.js";
import { startOf } from "./time-series.js";
import { clock, day } from "./format.js";

const TOP = 10;
const LABEL_ROW = 16; // height
const BOTTOM = 26;
const DAY = 86_400;

export function timeChart(spec) {
  const count = spec.values.length;
  const stops = spec.values.map((reading, bucket) => ({
    key: String(startOf(spec.series, bucket)),
    text: `${formatBucket(spec.series, bucket)}: ${reading}`,
  }));
  return chart({
    key: spec.key,
    label: spec.label,
    idle: stops.at(-1)?.text ?? "",
    orientation: "horizontal",
    stops,
    near: (stop) => {
      const { series } = spec;
      const bucket = Math.floor((Number(stop) - startOf(series, 0)) / (series.bucket_seconds * 1000));
      return bucket >= 0 && bucket < count ? bucket : null;
    },
    draw: (width, at) => draw(spec, width, at),
    nearest: (px, _, width) => {
      const { left, right } = margins(spec, width);
      return Math.floor(((px - left) / (width - left - right)) * count);
    },
  });
}

// 14:00–14:30
export function formatBucket(series, bucket) {
  const fine = series.bucket_seconds < 60;
  const [from, to] = [startOf(series, bucket), startOf(series, bucket + 1)];
  if (series.bucket_seconds >= DAY) return `${day(from)}–${day(to)}`;
  const long = series.bucket_seconds * series.visits.length > DAY;
  return `${long ? `${day(from)}, ` : ""}${clock(from, fine)}–${clock(to, fine)}`;
}

const axisSteps = (spec) => ticks(spec.range.low, spec.range.high, spec.height < 200 ? 4 : 5);

function margins(spec, width) {
  const steps = axisSteps(spec);
  const labels = steps.map((tick) => textWidth(spec.format(tick, decimalPlaces(steps)), 12));
  const narrow = width < 520;
  const names = (spec.references ?? []).map((one) => textWidth(one.label, 13));
  return {
    left: Math.max(28, ...labels) + 10,
    right: narrow || !names.length ? 10 : Math.max(...names) + 16,
    narrow,
  };
}

function draw(spec, width, at) {
  const { left, right, narrow } = margins(spec, width);
  const count = spec.values.length;
  const { low, high } = spec.range;
  const end = width - right;
  const x = (bucket) => left + ((bucket + 0.5) / count) * (end - left);
  const events = eventsAt(spec, count, x);
  const { rows, labels } = placeLabels(events, left, end);
  const top = TOP + LABEL_ROW * rows; // labels of events are above the chart
  const height = spec.height + LABEL_ROW * rows;
  const floor = height - BOTTOM;
  const y = (value) => top + ((high - value) / (high - low)) * (floor - top);
  const clamp = (value) => Math.max(low, Math.min(high, value));
  const steps = axisSteps(spec);
  const decimals = decimalPlaces(steps);
  const out = steps.flatMap((tick) => [
    line(left, y(tick), end, y(tick), "gl"),
    text(left - 8, y(tick) + 4, spec.format(tick, decimals), "", "end"),
  ]);
  out.push(...timeLabels(spec.series, count, x, left, end, height));
  out.push(...spec.layers(x, y, clamp));
  const rowOf = new Map(labels.flatMap((label) => label.events.map((event) => [event, label.row])));
  for (const event of events) {
    out.push(line(event.x, TOP - 4 + LABEL_ROW * (rowOf.get(event) ?? rows), event.x, floor, "rf"));
  }
  const baseline = TOP + 6;
  for (const label of labels) {
    out.push(text(label.x, baseline + LABEL_ROW * label.row, label.text, "event halo"));
  }
  out.push(...referenceLines(spec.references ?? [], x, y, clamp, { left, end, top }, narrow));
  const bucket = at ?? count - 1;
  if (at !== null) out.push(line(x(bucket), top, x(bucket), floor, "cu"));
  const value = spec.point?.(bucket);
  if (value !== null && value !== undefined) {
    out.push(h("circle", { class: "pt", cx: x(bucket), cy: y(clamp(value)), r: 4 }));
  }
  return svg(width, height, out);
}

function timeLabels(series, count, x, left, end, height) {
  const seconds = count * series.bucket_seconds;
  const step = timeStep(seconds, Math.floor((end - left) / 84));
  const format = (time) => (step >= DAY ? day(time) : clock(time, step < 60));
  const first = Math.ceil(startOf(series, 0) / 1000 / step) * step;
  const labels = [];
  for (let time = first; time <= startOf(series, count) / 1000; time += step) {
    const at = x((time * 1000 - startOf(series, 0)) / 1000 / series.bucket_seconds - 0.5);
    const half = textWidth(format(time * 1000), 12) / 2;
    if (at - half < 0 || at + half > end + 8) continue;
    labels.push(
      line(at, height - BOTTOM, at, height - BOTTOM + 4, "ax"),
      text(at, height - 6, format(time * 1000), "", "middle"),
    );
  }
  return labels;
}

// The events within the buckets, in order.
function eventsAt({ events = [], series }, count, x) {
  return events
    .map((event) => ({
      bucket: (Date.parse(event.at) - startOf(series, 0)) / 1000 / series.bucket_seconds,
      text: event.text,
    }))
    .filter(({ bucket }) => bucket >= 0 && bucket <= count)
    .sort((a, b) => a.bucket - b.bucket)
    .map(({ bucket, text }) => ({ x: x(bucket - 0.5), text }));
}

// Reference lines with their labels.
function referenceLines(references, x, y, clamp, { left, end, top }, narrow) {
  const out = [];
  const labels = [];
  for (const one of references) {
    const points = one.values.flatMap((value, bucket) =>
      value === null ? [] : [[x(bucket), y(clamp(value))]],
    );
    if (!points.length) continue;
    const last = points.at(-1);
    out.push(h("path", { class: one.kind, d: path([[left, points[0][1]], ...points, [end, last[1]]]) }));
    labels.push({ text: one.label, at: last[1], above: one.above });
  }
  if (!narrow && labels.length === 2 && Math.abs(labels[0].at - labels[1].at) < 18) {
    const middle = (labels[0].at + labels[1].at) / 2;
    const [upper, lower] = labels[0].at <= labels[1].at ? labels : [labels[1], labels[0]];
    [upper.at, lower.at] = [middle - 9, middle + 9]; // so that the labels do not overlap
  }
  for (const label of labels) {
    if (!narrow) out.push(text(end + 8, label.at + 4, label.text, "lab"));
    else if (label.above)
      out.push(text(left + 4, label.at + (label.at - 18 < top ? 16 : -7), label.text, "lab halo"));
    else out.push(text(end, label.at + 16, label.text, "lab halo", "end"));
  }
  return out;
}

// The line segments through buckets with a value.
export function segments(values, x, y) {
  const runs = [[]];
  values.forEach((value, bucket) => {
    if (value === null) runs.push([]);
    else runs.at(-1).push([x(bucket), y(value)]);
  });
  return runs.filter((run) => run.length);
}
