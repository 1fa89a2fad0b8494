// Sentences about the click rate compared with the optimum and random order.

import { drawsLotteries, isEqual, isLottery, lastHour } from "./selectors.js";
import { duration, number, percent, whole } from "./format.js";

export function workingAnswer(state) {
  if (state.started_at === null) return untimedVisitsText(state);
  const hour = lastHour(state);
  const span = hour.seconds >= 3600 ? "hour" : duration(hour.seconds);
  if (hour.visits === 0) return `No visits were counted in the last ${span}.`;
  return [
    `The last ${span} had ${number(hour.rate.estimate)} clicks per visit.`,
    hour.optimum ? comparison(state, hour) : "The optimum is not known yet.",
    drawsLotteries(state) ? "" : explorationText(hour),
  ]
    .filter(Boolean)
    .join(" ");
}

// Counts may have visits without times: imported ones, or those that are older than the time series.
function untimedVisitsText({ rounds }) {
  if (rounds === 0) return "No visits have been counted yet.";
  const subject = rounds === 1 ? "The one visit was" : `All ${whole(rounds)} visits were`;
  return `${subject} imported or counted before the time series began. None have been counted since.`;
}

function comparison(state, { rate, optimum, random }) {
  const best = state.is_optimum_exact ? "best" : "best known";
  const name = `${best} ${isLottery(state) ? "lottery" : isEqual(state) ? "equal ranking" : "possible"}`;
  const estimated = state.has_true_values ? "" : "estimated to be ";
  const parts = [`The ${name} is ${estimated}${number(optimum.estimate)}`];
  parts.push(`; random order ${state.has_true_values ? "has" : "is estimated to have"} ${number(random)}. `);
  parts.push(
    rate.high < optimum.low
      ? `The gap to the ${best} is more than chance.`
      : rate.low > optimum.high
        ? `That is above the value of the ${best} ranking by more than chance.`
        : `The gap to the ${best} is within chance.`,
  );
  if (rate.low <= random && random <= rate.high) {
    parts.push(" So is the gap to random order.");
  }
  return parts.join("");
}

function explorationText(hour) {
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
