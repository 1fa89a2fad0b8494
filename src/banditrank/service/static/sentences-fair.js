// Sentences on what equality costs, whom, and how sure that is.

import { changeFor, liveTreatment, priceOf, treatments } from "./facts.js";
import { MOST_TYPES, sameRanking } from "./naming.js";
import { capital, magnitude, number, shortList, smallShare, utilityName } from "./words.js";

const utilitarianOf = (all) =>
  all.findIndex((fair) => fair.treatment === "equal" && fair.utility === "utilitarian");

// The equal treatment whose price is told: the live one, or that which would cost the least clicks; -1 if
// none is known.
export const pricedTreatment = (state) => liveTreatment(state) || utilitarianOf(treatments(state));

export function fairAnswer(state) {
  const { types } = state.surface;
  if (types.length === 1) return "There is one user type: everyone is treated alike.";
  const live = liveTreatment(state);
  const against = pricedTreatment(state);
  if (against < 1) return "What equality costs is not known yet.";
  const shared = live === 0 ? "one utilitarian ranking for everyone" : "one ranking for everyone";
  const changes = types.map((name, type) => ({ name, ...changeFor(state, against, type) }));
  const told = changes.filter((change) => change.told && change.m < 0);
  const open = changes.filter((change) => !change.told && Math.abs(change.m) >= 5e-5);
  const same = changes.length - told.length - open.length;
  const costs = live === 0 ? "would cost" : "costs";
  const words = [];
  if (told.length) {
    const lost = told.map((change) => `${change.name} ${magnitude(change.m)}`);
    words.push(`${capital(shared)} ${costs} ${shortList(lost, MOST_TYPES)} clicks per visit.`);
  }
  if (open.length) {
    const names = shortList(
      open.map((change) => change.name),
      MOST_TYPES,
    );
    const whom = told.length ? `For ${names}` : `${capital(shared)}: for ${names}`;
    words.push(`${whom} the difference is within the uncertainty of the estimates.`);
  }
  if (!told.length && !open.length) {
    const most = priceOf(state, against).hi;
    const perhaps = most > 0 ? `; it may cost up to ${smallShare(most)} of clicks` : "";
    words.push(`By the estimates ${shared} ${costs} nobody anything${perhaps}.`);
  }
  if (told.length + open.length && same) {
    const others = same === 1 ? "The other type loses" : "The others lose";
    words.push(`${others} nothing by the estimates.`);
  }
  return [...words, trade(state, live)].filter(Boolean).join(" ");
}

// What the live utility does against the utilitarian one: what it costs, and whom it helps.
function trade(state, live) {
  const all = treatments(state);
  const plain = utilitarianOf(all);
  if (live === 0 || plain < 0 || plain === live) return "";
  const [own, utilitarian] = [all[live], all[plain]];
  const name = capital(utilityName(own.utility));
  if (sameRanking(own.rankings[0], utilitarian.rankings[0]))
    return `${name} and utilitarian choose the same ranking.`;
  return `${givenUp(state, name, live, plain)} ${helped(state, name, own, utilitarian)}`;
}

// Both prices are shares of the clicks under personalized treatment; intervals that part tell them apart.
function givenUp(state, name, live, plain) {
  const [own, least] = [priceOf(state, live), priceOf(state, plain)];
  const share = least.m < 1 ? Math.max(0, (own.m - least.m) / (1 - least.m)) : 0;
  const words = `gives up ${smallShare(share)} of all clicks against utilitarian`;
  const told = own.lo !== null && least.hi !== null && own.lo > least.hi;
  return told ? `${name} ${words}.` : `By the estimates ${name} ${words}, which is within their uncertainty.`;
}

function helped(state, name, own, utilitarian) {
  const worst = utilitarian.value.indexOf(Math.min(...utilitarian.value));
  if (own.lo[worst] > utilitarian.hi[worst]) {
    const [from, to] = [utilitarian.value[worst], own.value[worst]].map((value) => number(value));
    const whom = state.surface.types[worst];
    return `${name} lifts ${whom}, by the estimates worst off under utilitarian, from ${from} to ${to}.`;
  }
  return `Whether ${name} helps the type worst off under utilitarian cannot be told yet.`;
}

// The price with its interval: "3.1%, between 1.2% and 5.0%".
export function priceWords(state, treatment) {
  const price = priceOf(state, treatment);
  const shown = smallShare(Math.max(0, price.m));
  const known = price.lo !== null && price.lo !== undefined;
  const between = known
    ? `between ${smallShare(Math.max(0, price.lo))} and ${smallShare(Math.max(0, price.hi))}`
    : "";
  return { shown, between };
}
