// The series of a surface: buckets of equal width, to which those that close are added.

const OF_BUCKETS = ["visits", "clicks", "other_item", "other_order", "regret"];

// Returns the series with another document's buckets in it, or null if that does not fit and the whole must
// be asked for. A document with another width is the whole: the service doubles the width when there are too
// many.
export function merge(series, added) {
  if (!series || added.bucket_s !== series.bucket_s) return added;
  const offset = (Date.parse(added.start) - Date.parse(series.start)) / 1000 / series.bucket_s;
  const at = Math.round(offset);
  if (Math.abs(offset - at) > 0.01) return added;
  if (at < 0) return merge(added, series) ?? added; // the beginning was told after what closed meanwhile
  if (at > series.visits.length) return null;
  const merged = { ...series, ...added, start: series.start };
  for (const name of OF_BUCKETS) {
    const [old, fresh] = [series[name], added[name]];
    // What was added may be older than the last bucket here, if the two overtook each other.
    if (old && fresh) merged[name] = [...old.slice(0, at), ...fresh, ...old.slice(at + fresh.length)];
  }
  const known = new Set((added.events ?? []).map((event) => event.at + event.t));
  const before = (series.events ?? []).filter((event) => !known.has(event.at + event.t));
  merged.events = [...before, ...(added.events ?? [])];
  return merged;
}

// When a bucket begins, in milliseconds.
export const startOf = (series, bucket) => Date.parse(series.start) + bucket * series.bucket_s * 1000;
