// Sentences on whether it works: clicks beside the best that can be had and beside random order.

import { isEqual, lastHour } from "./facts.js";
import { duration, number, percent } from "./words.js";

export function workingAnswer(state, series) {
  if (!series || series.visits.length === 0) return "No visits have been counted yet.";
  const hour = lastHour(series);
  const span = hour.seconds >= 3600 && hour.seconds < 5400 ? "hour" : duration(hour.seconds);
  if (hour.visits === 0) return `No visits were counted in the last ${span}.`;
  return [
    `The last ${span} brought ${number(hour.rate.m)} clicks per visit.`,
    againstBest(state, hour),
    explorationWords(hour),
  ]
    .filter(Boolean)
    .join(" ");
}

function againstBest(state, { rate, optimum, random }) {
  if (optimum.m === null) return "";
  const what = isEqual(state) ? "equal ranking" : "possible";
  const estimated = state.truth ? "" : "estimated to be ";
  const { lo, hi } = state.truth ? { lo: optimum.m, hi: optimum.m } : optimum;
  const told = [`The best ${what} is ${estimated}${number(optimum.m)}`];
  if (random !== null) {
    told.push(`; random order ${state.truth ? "gives" : "is estimated to give"} ${number(random)}`);
  }
  told.push(". ");
  told.push(
    rate.hi < lo
      ? "The gap to the best is more than chance."
      : rate.lo > hi
        ? "That is above what the best ranking is worth on average, by more than chance."
        : "The gap to the best is within chance.",
  );
  if (random !== null && rate.lo <= random && random <= rate.hi) {
    told.push(" So is the gap to random order.");
  }
  return told.join("");
}

function explorationWords(hour) {
  const explored = hour.otherItem + hour.otherOrder;
  if (explored < 0.0005) return "Nothing was explored.";
  const mostly =
    hour.otherItem > 2 * hour.otherOrder
      ? ", mostly by trying other items"
      : hour.otherOrder > 2 * hour.otherItem
        ? ", mostly by swapping the order of the same items"
        : "";
  return `${percent(explored)} of displays explored${mostly}.`;
}
