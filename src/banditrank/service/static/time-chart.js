// Buckets over time: what is drawn is what was counted, with nothing smoothed and none left out.
//
// told: {key, label, series, height, range: {lo, hi}, format, readings, layers(x, y, clamp), point(bucket),
// references, events}

import { decimalsOf, ticks, timeStep } from "./axis.js";
import { chart, line, path, picture, text } from "./chart.js";
import { h } from "./element.js";
import { textWidth } from "./measure.js";
import { startOf } from "./series.js";
import { clock, day } from "./words.js";

const TOP = 10;
const BOTTOM = 26;
const DAY = 86_400;

export function timeChart(told) {
  const count = told.readings.length;
  const stops = told.readings.map((reading, bucket) => ({
    key: String(startOf(told.series, bucket)),
    text: `${bucketWords(told.series, bucket)}: ${reading}`,
  }));
  return chart({
    key: told.key,
    label: told.label,
    idle: stops.at(-1)?.text ?? "",
    orientation: "horizontal",
    stops,
    near: (stop) => {
      const bucket = Math.floor((Number(stop) - startOf(told.series, 0)) / (told.series.bucket_s * 1000));
      return bucket >= 0 && bucket < count ? bucket : null;
    },
    draw: (width, at) => draw(told, width, at),
    nearest: (px, _, width) => {
      const { left, right } = margins(told, width);
      return Math.floor(((px - left) / (width - left - right)) * count);
    },
  });
}

// 14:00–14:30
export function bucketWords(series, bucket) {
  const fine = series.bucket_s < 60;
  const [from, to] = [startOf(series, bucket), startOf(series, bucket + 1)];
  if (series.bucket_s >= DAY) return `${day(from)}–${day(to)}`;
  const long = series.bucket_s * series.visits.length > DAY;
  return `${long ? `${day(from)}, ` : ""}${clock(from, fine)}–${clock(to, fine)}`;
}

const axisSteps = (told) => ticks(told.range.lo, told.range.hi, told.height < 200 ? 4 : 5);

function margins(told, width) {
  const labels = axisSteps(told).map((tick) => textWidth(told.format(tick, decimalsOf(axisSteps(told))), 12));
  const narrow = width < 520;
  const names = (told.references ?? []).map((one) => textWidth(one.words, 13));
  return {
    left: Math.max(28, ...labels) + 10,
    right: narrow || !names.length ? 10 : Math.max(...names) + 16,
    narrow,
  };
}

function draw(told, width, at) {
  const { left, right, narrow } = margins(told, width);
  const count = told.readings.length;
  const { lo, hi } = told.range;
  const end = width - right;
  const floor = told.height - BOTTOM;
  const x = (bucket) => left + ((bucket + 0.5) / count) * (end - left);
  const y = (value) => TOP + ((hi - value) / (hi - lo)) * (floor - TOP);
  const clamp = (value) => Math.max(lo, Math.min(hi, value));
  const steps = axisSteps(told);
  const decimals = decimalsOf(steps);
  const out = steps.flatMap((tick) => [
    line(left, y(tick), end, y(tick), "gl"),
    text(left - 8, y(tick) + 4, told.format(tick, decimals), "", "end"),
  ]);
  out.push(...timeLabels(told.series, count, x, left, end, told.height));
  out.push(...told.layers(x, y, clamp));
  out.push(...(told.events ?? []).flatMap((event) => eventLine(told, event, count, x, floor, end)));
  out.push(...referenceLines(told.references ?? [], x, y, clamp, end, narrow, left));
  const bucket = at ?? count - 1;
  if (at !== null) out.push(line(x(bucket), TOP, x(bucket), floor, "cu"));
  const value = told.point?.(bucket);
  if (value !== null && value !== undefined) {
    out.push(h("circle", { class: "pt", cx: x(bucket), cy: y(clamp(value)), r: 4 }));
  }
  return picture(width, told.height, out);
}

function timeLabels(series, count, x, left, end, height) {
  const seconds = count * series.bucket_s;
  const step = timeStep(seconds, Math.floor((end - left) / 84));
  const words = (time) => (step >= DAY ? day(time) : clock(time, step < 60));
  const first = Math.ceil(startOf(series, 0) / 1000 / step) * step;
  const labels = [];
  for (let time = first; time <= startOf(series, count) / 1000; time += step) {
    const at = x((time * 1000 - startOf(series, 0)) / 1000 / series.bucket_s - 0.5);
    const half = textWidth(words(time * 1000), 12) / 2;
    if (at - half < 0 || at + half > end + 8) continue;
    labels.push(
      line(at, height - BOTTOM, at, height - BOTTOM + 4, "ax"),
      text(at, height - 6, words(time * 1000), "", "middle"),
    );
  }
  return labels;
}

function eventLine(told, event, count, x, floor, end) {
  const bucket = (Date.parse(event.at) - startOf(told.series, 0)) / 1000 / told.series.bucket_s;
  if (!(bucket >= 0 && bucket <= count)) return [];
  const at = x(bucket - 0.5);
  const before = at + textWidth(event.t, 12) + 8 > end;
  return [
    line(at, TOP + 2, at, floor, "rf"),
    text(before ? at - 6 : at + 6, TOP + 10, event.t, "halo", before ? "end" : "start"),
  ];
}

// Each is a line through its value in every bucket, with its name and last value in place.
function referenceLines(references, x, y, clamp, end, narrow, left) {
  const out = [];
  const labels = [];
  for (const one of references) {
    const points = one.values.flatMap((value, bucket) =>
      value === null ? [] : [[x(bucket), y(clamp(value))]],
    );
    if (!points.length) continue;
    const last = points.at(-1);
    out.push(h("path", { class: one.kind, d: path([[left, points[0][1]], ...points, [end, last[1]]]) }));
    labels.push({ words: one.words, at: last[1], above: one.above });
  }
  if (!narrow && labels.length === 2 && Math.abs(labels[0].at - labels[1].at) < 18) {
    const middle = (labels[0].at + labels[1].at) / 2;
    const [upper, lower] = labels[0].at <= labels[1].at ? labels : [labels[1], labels[0]];
    [upper.at, lower.at] = [middle - 9, middle + 9]; // names of lines that nearly meet stay readable
  }
  for (const label of labels) {
    if (!narrow) out.push(text(end + 8, label.at + 4, label.words, "lab"));
    else if (label.above) out.push(text(left + 4, label.at - 7, label.words, "lab halo"));
    else out.push(text(end, label.at + 16, label.words, "lab halo", "end"));
  }
  return out;
}

// A line through the values of buckets that have one: where there were no visits there is no line.
export function segments(values, x, y) {
  const runs = [[]];
  values.forEach((value, bucket) => {
    if (value === null) runs.push([]);
    else runs.at(-1).push([x(bucket), y(value)]);
  });
  return runs.filter((run) => run.length);
}
