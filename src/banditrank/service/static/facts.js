// What can be read off a dashboard document: plain numbers, on which charts, tables and sentences agree.

export const sum = (values) => values.reduce((total, value) => total + value, 0);
const dot = (a, b) => sum(a.map((value, i) => value * b[i]));

const HOUR = 3600;
const SURE = 0.95; // from which on a ranking is called the best, whatever the number of draws leaves open

export const isEqual = (state) => state.surface.treatment === "equal";
export const isEmpty = (state) => state.rounds === 0 || !state.now?.length;
export const isSure = (chance) => chance !== null && chance.lo >= SURE;

// The ranking that a user type gets.
export const nowOf = (state, type) => state.now[isEqual(state) ? 0 : type];

// What the present ranking is worth to a user type.
export function valueOf(state, type) {
  const now = nowOf(state, type);
  const pick = (values) => (Array.isArray(values) ? values[type] : values);
  return { m: pick(now.value), lo: pick(now.lo), hi: pick(now.hi) };
}

// Numbers of the items that are not retired.
export function presentItems(state) {
  const retired = new Set(state.surface.retired ?? []);
  return state.surface.items.flatMap((name, item) => (retired.has(name) ? [] : [item]));
}

export const isRetired = (state, item) => (state.surface.retired ?? []).includes(state.surface.items[item]);

// Numbers of the items that some of the types are shown at present; of all types if none are named.
export function liveItems(state, types = null) {
  const all = types ?? state.surface.types.map((_, type) => type);
  return new Set((state.now ?? []).length ? all.flatMap((type) => nowOf(state, type).ranking) : []);
}

// How often an item was shown: once a ranking, at whatever position.
export const displaysOf = (state, type, item) => sum(state.displays[type].map((items) => items[item]));

// The rankings that a type was shown: each shows one item at the first position.
export const rankingsOf = (state, type) => sum(state.displays[type][0]);

// How much an item was looked at by a type: how often it stood at each position, times how much that draws.
export const looksOf = (state, type, item) =>
  sum(state.positions[type].map((one, position) => one.m * state.displays[type][position][item]));

// Which of some estimates may be the largest, best estimate first: all whose intervals reach into that of the
// one with the best estimate. A single one is the largest as surely as the intervals hold the truth.
export function contenders(estimates, among = estimates.map((_, index) => index)) {
  const order = [...among].sort((a, b) => estimates[b].m - estimates[a].m);
  const floor = estimates[order[0]].lo;
  return order.filter((index, place) => place === 0 || estimates[index].hi >= floor);
}

// The position that draws the most looks from a type; null if intervals do not tell.
export function topPosition(state, type) {
  const best = contenders(state.positions[type]);
  return best.length === 1 ? best[0] : null;
}

// A 95% interval for a rate of clicks (Wilson), which is never empty and never leaves 0 to 1.
export function rateInterval(clicks, visits) {
  if (visits === 0) return null;
  const z = 1.959964;
  const rate = Math.min(1, clicks / visits);
  const scale = 1 + (z * z) / visits;
  const middle = (rate + (z * z) / (2 * visits)) / scale;
  const half = (z / scale) * Math.sqrt((rate * (1 - rate)) / visits + (z * z) / (4 * visits * visits));
  return { m: clicks / visits, lo: Math.max(0, middle - half), hi: Math.min(1, middle + half) };
}

const countsIn = (rows, type) => rows.map((row) => (type === null ? sum(row) : row[type]));

// For each bucket: visits, clicks and the rate with its interval, of all types or of one.
export function rates(series, type = null) {
  const visits = countsIn(series.visits, type);
  const clicks = countsIn(series.clicks, type);
  return visits.map((count, bucket) => ({
    visits: count,
    clicks: clicks[bucket],
    rate: rateInterval(clicks[bucket], count),
  }));
}

// The last hour, or as much of it as there is; the best and a random ranking are weighed by the same visits.
export function lastHour(state) {
  const { visits, clicks, other_item: otherItem, other_order: otherOrder } = state.last_hour;
  const total = sum(visits);
  const mean = (values) => (total ? dot(visits, values) / total : null);
  const age = state.began === null ? 0 : (Date.parse(state.as_of) - Date.parse(state.began)) / 1000;
  return {
    seconds: Math.min(HOUR, age),
    visits: total,
    rate: rateInterval(sum(clicks), total),
    otherItem,
    otherOrder,
    optimum: {
      m: mean(state.optimum.map((one) => one.m)),
      lo: mean(state.optimum.map((one) => one.lo)),
      hi: mean(state.optimum.map((one) => one.hi)),
    },
    random: mean(state.random),
  };
}

// What the best click rate is called: finding out what is best of all may take too long.
export const optimumName = (state) =>
  state.truth ? "optimum" : state.optimum_of_all ? "estimated optimum" : "best known ranking";

// The best click rate and that of random order in each bucket, of those who came, or of one type: always as
// they are known now. Where nobody came it is that of those who usually do.
export function references(state, series, type = null) {
  const ofAll = (row) => state.arrivals.map((_, i) => row[i] ?? 0);
  const weights = series.visits.map((row) =>
    type !== null ? state.arrivals.map((_, i) => Number(i === type)) : sum(row) ? ofAll(row) : state.arrivals,
  );
  const level = (values) => weights.map((shares) => dot(shares, values) / sum(shares));
  const optimum = (end) => level(state.optimum.map((one) => one[end]));
  return {
    optimum: optimum("m"),
    lo: state.truth ? null : optimum("lo"),
    hi: state.truth ? null : optimum("hi"),
    random: level(state.random),
  };
}

// Treatments to compare: personalized first; a utility that comes twice is shown once.
export function treatments(state) {
  const seen = new Set();
  return state.fair.filter((fair) => {
    const name = `${fair.treatment} ${fair.treatment === "equal" ? fair.utility : ""}`;
    return !seen.has(name) && seen.add(name);
  });
}

// Which of the compared treatments the surface is under.
export function liveTreatment(state) {
  const all = treatments(state);
  const found = all.findIndex((fair) =>
    isEqual(state)
      ? fair.treatment === "equal" && fair.utility === state.surface.utility
      : fair.treatment !== "equal",
  );
  return found < 0 ? (isEqual(state) ? all.length - 1 : 0) : found;
}

// What a treatment costs against the personalized one, as a share of its clicks; with an interval where the
// service gave one.
export function priceOf(state, treatment) {
  const all = treatments(state);
  const fair = all[treatment];
  if (fair.price) return fair.price;
  const total = (one) => dot(one.value, state.arrivals);
  return { m: total(all[0]) > 0 ? Math.max(0, 1 - total(fair) / total(all[0])) : 0, lo: null, hi: null };
}

// What a treatment changes for a type against the personalized one, and whether intervals tell it from
// nothing.
export function changeFor(state, treatment, type) {
  const all = treatments(state);
  const [before, after] = [all[0], all[treatment]];
  return {
    m: after.value[type] - before.value[type],
    told: after.hi[type] < before.lo[type] || after.lo[type] > before.hi[type],
  };
}

export const failing = (state) => state.health.filter((check) => check.s !== "ok");
