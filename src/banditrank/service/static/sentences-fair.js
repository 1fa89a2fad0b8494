// Sentences about the cost of equality.

import { currentTreatment, isLottery, priceOf, treatmentEffect, treatments } from "./selectors.js";
import { MAX_TYPES_IN_SENTENCE, sameRanking } from "./names.js";
import { capitalize, magnitude, number, shortList, smallShare, utilityName } from "./format.js";

const utilitarianOf = (all) =>
  all.findIndex((one) => one.treatment === "equal" && one.utility === "utilitarian");

// Index of the equal treatment whose price is shown: the current one, or the utilitarian one under
// personalized treatment; -1 if it is unknown.
export const pricedTreatment = (state) => currentTreatment(state) || utilitarianOf(treatments(state));

export function fairAnswer(state) {
  const { user_types: types } = state.surface;
  if (types.length === 1) return "There is one user type, so all users are treated equally.";
  const current = currentTreatment(state);
  const against = pricedTreatment(state);
  if (against < 1) return "The cost of equality is not known yet.";
  const shared =
    current === 0
      ? "one utilitarian ranking for all users"
      : `one ${isLottery(state) ? "lottery" : "ranking"} for all users`;
  const changes = types.map((name, type) => ({ name, ...treatmentEffect(state, against, type) }));
  const lower = changes.filter((change) => change.isSignificant && change.estimate < 0);
  const uncertain = changes.filter((change) => !change.isSignificant && Math.abs(change.estimate) >= 5e-5);
  const same = changes.length - lower.length - uncertain.length;
  const costs = current === 0 ? "would cost" : "costs";
  const sentences = [];
  if (lower.length) {
    const lost = lower.map((change) => `${change.name} ${magnitude(change.estimate)}`);
    const amounts = shortList(lost, MAX_TYPES_IN_SENTENCE);
    sentences.push(`${capitalize(shared)} ${costs} ${amounts} clicks per visit.`);
  }
  if (uncertain.length) {
    const names = shortList(
      uncertain.map((change) => change.name),
      MAX_TYPES_IN_SENTENCE,
    );
    const subject = lower.length ? `For ${names}` : `${capitalize(shared)}: for ${names}`;
    sentences.push(`${subject} the difference is within the uncertainty of the estimates.`);
  }
  if (!lower.length && !uncertain.length) {
    const maximum = priceOf(state, against).high;
    const limit = maximum > 0 ? `; it may cost up to ${smallShare(maximum)} of clicks` : "";
    sentences.push(`By the estimates, ${shared} ${costs} no user type any clicks${limit}.`);
  }
  if (lower.length + uncertain.length && same) {
    const others = same === 1 ? "The other type loses" : "The others lose";
    sentences.push(`${others} nothing, by the estimates.`);
  }
  return [...sentences, tradeOff(state, current)].filter(Boolean).join(" ");
}

// The effect of the current utility compared with the utilitarian one.
function tradeOff(state, current) {
  const all = treatments(state);
  const plain = utilitarianOf(all);
  if (current === 0 || plain < 0 || plain === current || isLottery(state)) return "";
  const [own, utilitarian] = [all[current], all[plain]];
  const name = capitalize(utilityName(own.utility));
  if (sameRanking(own.rankings[0], utilitarian.rankings[0]))
    return `${name} and utilitarian choose the same ranking.`;
  return `${costText(state, name, current, plain)} ${benefitText(state, name, own, utilitarian)}`;
}

// Both prices are shares of the clicks under personalized treatment.
function costText(state, name, current, plain) {
  const [own, utilitarian] = [priceOf(state, current), priceOf(state, plain)];
  const left = 1 - utilitarian.estimate;
  const share = left > 0 ? Math.max(0, (own.estimate - utilitarian.estimate) / left) : 0;
  const text = `costs ${smallShare(share)} of all clicks compared with utilitarian`;
  const isSignificant = own.low !== null && utilitarian.high !== null && own.low > utilitarian.high;
  return isSignificant
    ? `${name} ${text}.`
    : `By the estimates, ${name} ${text}, which is within their uncertainty.`;
}

function benefitText(state, name, own, utilitarian) {
  const worst = utilitarian.value.indexOf(Math.min(...utilitarian.value));
  if (own.low[worst] > utilitarian.high[worst]) {
    const [from, to] = [utilitarian.value[worst], own.value[worst]].map((value) => number(value));
    const type = state.surface.user_types[worst];
    const status = "which is worst off under utilitarian by the estimates";
    return `${name} lifts ${type}, ${status}, from ${from} to ${to}.`;
  }
  return `It is not known yet whether ${name} helps the type that is worst off under utilitarian.`;
}

// The price with its interval: "3.1%, between 1.2% and 5.0%".
export function priceText(state, treatment) {
  const price = priceOf(state, treatment);
  if (price.estimate === null) return { shown: "–", between: "" };
  const shown = smallShare(Math.max(0, price.estimate));
  const known = price.low !== null && price.low !== undefined;
  const between = known
    ? `between ${smallShare(Math.max(0, price.low))} and ${smallShare(Math.max(0, price.high))}`
    : "";
  return { shown, between };
}
