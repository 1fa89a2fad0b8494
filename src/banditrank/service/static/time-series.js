// The time series of a surface: buckets of equal width, to which closed buckets are appended.

import { repeated } from "./format.js";

const BUCKET_FIELDS = ["visits", "clicks", "other_item", "other_order", "regret"];

// Returns the series with the buckets of another document, or null if there is a gap between them. A document
// with another width is complete, because the service merges buckets when there are too many.
export function merge(series, added) {
  if (!series || added.bucket_seconds !== series.bucket_seconds) return added;
  const offset = (Date.parse(added.start) - Date.parse(series.start)) / 1000 / series.bucket_seconds;
  const at = Math.round(offset);
  if (Math.abs(offset - at) > 0.01) return added;
  if (at < 0) return merge(added, series) ?? added; // the first buckets arrived after newer ones
  if (at > series.visits.length) return null;
  const merged = { ...series, ...added, start: series.start };
  for (const name of BUCKET_FIELDS) {
    const [old, recent] = [series[name], added[name]];
    // The added buckets may be older than the last one, because responses can arrive out of order.
    if (old && recent) merged[name] = [...old.slice(0, at), ...recent, ...old.slice(at + recent.length)];
  }
  const known = new Set((added.events ?? []).map((event) => event.at + event.text));
  const before = (series.events ?? []).filter((event) => !known.has(event.at + event.text));
  merged.events = [...before, ...(added.events ?? [])];
  return merged;
}

// The events within a bucket, each once with its number.
export function eventsIn(series, bucket) {
  const [from, to] = [startOf(series, bucket), startOf(series, bucket + 1)];
  const counts = new Map();
  for (const { at, text } of series.events) {
    const time = Date.parse(at);
    if (from <= time && time < to) counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  return [...counts].map(([text, count]) => repeated(text, count));
}

// The start of a bucket in milliseconds.
export const startOf = (series, bucket) => Date.parse(series.start) + bucket * series.bucket_seconds * 1000;
