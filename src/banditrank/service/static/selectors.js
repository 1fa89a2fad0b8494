// Values that charts, tables and sentences derive from a dashboard document.

export const sum = (values) => values.reduce((total, value) => total + value, 0);
const dot = (a, b) => sum(a.map((value, i) => value * b[i]));

const HOUR = 3600;
const MIN_PROBABILITY = 0.95; // lower end of the interval from which a ranking is called the best
const OLD_ESTIMATES_SECONDS = 5; // age from which on estimates of earlier counts are called old
const MAX_SMALL_LOSS = 0.01; // of the ranking's value: upper end of the interval up to which a loss is little

export const isEqual = (state) => state.surface.treatment !== "personalized";
export const isLottery = (state) => state.surface.treatment === "equal-lottery";
// Whether each user type has a lottery of its own, which keeps the guarantees.
export const hasTypeLotteries = (state) => (state.lottery?.user_types ?? []).some((name) => name !== null);
export const drawsLotteries = (state) => isLottery(state) || hasTypeLotteries(state);
export const isPositionBased = (state) => state.surface.click_model === "position-based";
export const isEmpty = (state) => state.rounds === 0;
// Whether there are estimates; they are computed after the first visits are counted.
export const hasEstimates = (state) => (state.best_rankings?.length ?? 0) > 0;

// The age of the estimates in seconds if visits were counted since and they are old; 0 otherwise. The
// document arrived the given number of seconds ago.
export function estimatesAge(state, elapsed = 0) {
  const basis = state.estimated_from;
  if (!basis || basis.version === state.version) return 0;
  const age = (Date.parse(state.as_of) - Date.parse(basis.at)) / 1000 + elapsed;
  return age >= OLD_ESTIMATES_SECONDS ? age : 0;
}

export const isProbablyBest = (probability) => probability !== null && probability.low >= MIN_PROBABILITY;

// Maximum of clicks per visit: users who look at each position independently may click all of them.
export const maxClicks = (state) => (isPositionBased(state) ? state.surface.n_positions : 1);

// The current ranking of a user type.
export const bestRankingOf = (state, type) => state.best_rankings[isEqual(state) ? 0 : type];

// The value of the current ranking for a user type.
export function valueOf(state, type) {
  const now = bestRankingOf(state, type);
  const pick = (values) => (Array.isArray(values) ? values[type] : values);
  return { estimate: pick(now.value), low: pick(now.low), high: pick(now.high) };
}

// The loss of a current ranking against the best one, and whether it is little; null if it is not known, or
// if the ranking is probably the best.
export function stakes(state, now) {
  if (!now.loss || isProbablyBest(now.probability_best)) return null;
  const value = Array.isArray(now.value) ? dot(now.value, state.arrival_rates) : now.value;
  return { ...now.loss, isLittle: now.loss.high <= MAX_SMALL_LOSS * value };
}

// Indices of the items that are not retired.
export function activeItems(state) {
  const retired = new Set(state.surface.retired ?? []);
  return state.surface.items.flatMap((name, item) => (retired.has(name) ? [] : [item]));
}

export const isRetired = (state, item) => (state.surface.retired ?? []).includes(state.surface.items[item]);

// Indices of the items in the current rankings of some user types; of all types by default.
export function currentItems(state, types = null) {
  const all = types ?? state.surface.user_types.map((_, type) => type);
  const hasRankings = (state.best_rankings ?? []).length > 0;
  if (hasRankings && isLottery(state)) return new Set(state.best_rankings.flatMap((one) => one.ranking));
  return new Set(hasRankings ? all.flatMap((type) => bestRankingOf(state, type).ranking) : []);
}

// The number of displays of an item, over all positions.
export const displaysOf = (state, type, item) => sum(state.displays[type].map((items) => items[item]));

// The number of rankings of a user type: each has one item at the first position.
export const rankingsOf = (state, type) => sum(state.displays[type][0]);

// The expected looks at an item by a user type: its displays, weighted by the looks at their positions.
export const looksOf = (state, type, item) =>
  sum(state.positions[type].map((one, position) => one.estimate * state.displays[type][position][item]));

// Indices of the estimates that may be the largest, in descending order: those whose interval overlaps
// that of the largest estimate. Estimates that are not known come last.
export function contenders(estimates, among = estimates.map((_, index) => index)) {
  const order = [...among].sort(
    (a, b) => (estimates[b].estimate ?? -1) - (estimates[a].estimate ?? -1),
  );
  const floor = estimates[order[0]].low;
  return order.filter((index, rank) => rank === 0 || estimates[index].high >= floor);
}

// The position with the most looks of a user type; null if the intervals overlap.
export function topPosition(state, type) {
  const best = contenders(state.positions[type]);
  return best.length === 1 ? best[0] : null;
}

// Wilson's 95% interval for clicks per visit, from the share of possible clicks. With several possible clicks
// per visit it is conservative: positions of different click rates vary less than equal ones.
export function rateInterval(clicks, visits, maxPerVisit = 1) {
  if (visits === 0) return null;
  const z = 1.959964;
  const count = visits * maxPerVisit;
  const rate = Math.min(1, clicks / count);
  const scale = 1 + (z * z) / count;
  const middle = (rate + (z * z) / (2 * count)) / scale;
  const half = (z / scale) * Math.sqrt((rate * (1 - rate)) / count + (z * z) / (4 * count * count));
  return {
    estimate: clicks / visits,
    low: maxPerVisit * Math.max(0, middle - half),
    high: maxPerVisit * Math.min(1, middle + half),
  };
}

const countsIn = (rows, type) => rows.map((row) => (type === null ? sum(row) : row[type]));

// Visits, clicks and the click rate with its interval in each bucket, of all user types or of one.
export function rates(series, type = null, maxPerVisit = 1) {
  const visits = countsIn(series.visits, type);
  const clicks = countsIn(series.clicks, type);
  return visits.map((count, bucket) => ({
    visits: count,
    clicks: clicks[bucket],
    rate: rateInterval(clicks[bucket], count, maxPerVisit),
  }));
}

// Statistics of the last hour, or since the first visit; the optimum and random order have the same weights,
// and are null if they are not known.
export function lastHour(state) {
  const { visits, clicks, other_item: otherItem, other_order: otherOrder } = state.last_hour;
  const total = sum(visits);
  const mean = (values) => (total ? dot(visits, values) / total : null);
  const age = state.started_at === null ? 0 : (Date.parse(state.as_of) - Date.parse(state.started_at)) / 1000;
  return {
    seconds: Math.min(HOUR, age),
    visits: total,
    rate: rateInterval(sum(clicks), total, maxClicks(state)),
    otherItem,
    otherOrder,
    optimum: hasEstimates(state)
      ? {
          estimate: mean(state.optimum.map((one) => one.estimate)),
          low: mean(state.optimum.map((one) => one.low)),
          high: mean(state.optimum.map((one) => one.high)),
        }
      : null,
    random: hasEstimates(state) ? mean(state.random) : null,
  };
}

// Name of the best click rate; the best of all rankings is not always computed.
export const optimumName = (state) =>
  state.has_true_values
    ? "optimum"
    : state.is_optimum_exact
      ? "estimated optimum"
      : `best known ${isLottery(state) ? "lottery" : "ranking"}`;

// The optimum and the click rate of random order in each bucket by the current estimates, of one user type or
// of all: weighted by the visits in the bucket, or by the arrival rates without visits. Null without
// estimates.
export function referenceRates(state, series, type = null) {
  if (!hasEstimates(state)) return null;
  const ofAll = (row) => state.arrival_rates.map((_, i) => row[i] ?? 0);
  const weights = series.visits.map((row) =>
    type !== null
      ? state.arrival_rates.map((_, i) => Number(i === type))
      : sum(row)
        ? ofAll(row)
        : state.arrival_rates,
  );
  const level = (values) => weights.map((shares) => dot(shares, values) / sum(shares));
  const optimum = (end) => level(state.optimum.map((one) => one[end]));
  return {
    optimum: optimum("estimate"),
    low: state.has_true_values ? null : optimum("low"),
    high: state.has_true_values ? null : optimum("high"),
    random: level(state.random),
  };
}

// The treatments to compare, personalized first, without duplicates.
export function treatments(state) {
  const seen = new Set();
  return state.treatments.filter((one) => {
    const name = `${one.treatment} ${one.utility ?? ""}`;
    return !seen.has(name) && seen.add(name);
  });
}

// Index of the current treatment of the surface.
export function currentTreatment(state) {
  const all = treatments(state);
  const found = all.findIndex((one) =>
    isEqual(state)
      ? one.treatment === state.surface.treatment && one.utility === state.surface.utility
      : one.treatment === "personalized",
  );
  return found < 0 ? (isEqual(state) ? all.length - 1 : 0) : found;
}

// The cost of a treatment compared with personalized treatment, as a share of its clicks; its estimate is
// null if there are none.
export function priceOf(state, index) {
  const all = treatments(state);
  const treatment = all[index];
  if (treatment.price) return treatment.price;
  const total = (one) => dot(one.value, state.arrival_rates);
  const price = total(all[0]) > 0 ? Math.max(0, 1 - total(treatment) / total(all[0])) : null;
  return { estimate: price, low: null, high: null };
}

// The effect of a treatment on a user type compared with personalized treatment; it is significant if the
// intervals are disjoint.
export function treatmentEffect(state, treatment, type) {
  const all = treatments(state);
  const [before, after] = [all[0], all[treatment]];
  return {
    estimate: after.value[type] - before.value[type],
    isSignificant: after.high[type] < before.low[type] || after.low[type] > before.high[type],
  };
}

export const failingChecks = (state) => state.health.filter((check) => check.status !== "ok");
