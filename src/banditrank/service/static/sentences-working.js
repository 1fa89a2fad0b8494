// Sentences on whether it works: clicks beside the best that can be had and beside random order.

import { isEqual, lastHour } from "./facts.js";
import { duration, number, percent } from "./words.js";

export function workingAnswer(state) {
  if (state.began === null) return "No visits have been counted yet.";
  const hour = lastHour(state);
  const span = hour.seconds >= 3600 ? "hour" : duration(hour.seconds);
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
  const known = state.optimum_of_all ? "best" : "best known";
  const what = `${known} ${isEqual(state) ? "equal ranking" : "possible"}`;
  const estimated = state.truth ? "" : "estimated to be ";
  const told = [`The ${what} is ${estimated}${number(optimum.m)}`];
  told.push(`; random order ${state.truth ? "gives" : "is estimated to give"} ${number(random)}. `);
  told.push(
    rate.hi < optimum.lo
      ? `The gap to the ${known} is more than chance.`
      : rate.lo > optimum.hi
        ? `That is above what the ${known} ranking is worth on average, by more than chance.`
        : `The gap to the ${known} is within chance.`,
  );
  if (rate.lo <= random && random <= rate.hi) {
    told.push(" So is the gap to random order.");
  }
  return told.join("");
}

function explorationWords(hour) {
  if (hour.otherItem === null) return "";
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
