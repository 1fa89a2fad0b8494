// Sentences on what equality costs, whom, and how sure that is.

import { changeFor, liveTreatment, priceOf, treatments } from "./facts.js";
import { MOST_TYPES, sameRanking } from "./naming.js";
import { capital, magnitude, number, shortList, smallShare, utilityName } from "./words.js";

export function fairAnswer(state) {
  const { types } = state.surface;
  if (types.length === 1) return "There is one user type: everyone is treated alike.";
  const live = liveTreatment(state);
  const against = live === 0 ? treatments(state).length - 1 : live;
  if (against < 1) return "What equality costs is not known yet.";
  const changes = types.map((name, type) => ({ name, ...changeFor(state, against, type) }));
  const told = changes.filter((change) => change.told && change.m < 0);
  const open = changes.filter((change) => !change.told && Math.abs(change.m) >= 5e-5);
  const same = changes.length - told.length - open.length;
  const costs = live === 0 ? "would cost" : "costs";
  const words = [];
  if (told.length) {
    const lost = told.map((change) => `${change.name} ${magnitude(change.m)}`);
    words.push(`One ranking for everyone ${costs} ${shortList(lost, MOST_TYPES)} clicks per visit.`);
  }
  if (open.length) {
    const names = shortList(
      open.map((change) => change.name),
      MOST_TYPES,
    );
    const whom = told.length ? `For ${names}` : `One ranking for everyone: for ${names}`;
    words.push(`${whom} the difference is within the uncertainty of the estimates.`);
  }
  if (!told.length && !open.length) {
    const most = priceOf(state, against).hi;
    const perhaps = most > 0 ? `; it may cost up to ${smallShare(most)} of clicks` : "";
    words.push(`By the estimates one ranking for everyone ${costs} nobody anything${perhaps}.`);
  }
  if (told.length + open.length && same) {
    const others = same === 1 && changes.length === 2 ? "The other type loses" : "The others lose";
    words.push(`${others} nothing by the estimates.`);
  }
  return [...words, trade(state, live)].filter(Boolean).join(" ");
}

// What the live utility does against the utilitarian one, where intervals tell.
function trade(state, live) {
  const all = treatments(state);
  const plain = all.findIndex((fair) => fair.treatment === "equal" && fair.utility === "utilitarian");
  if (live === 0 || plain < 0 || plain === live) return "";
  const [own, utilitarian] = [all[live], all[plain]];
  const name = capital(utilityName(own.utility));
  const worst = utilitarian.value.indexOf(Math.min(...utilitarian.value));
  if (sameRanking(own.rankings[0], utilitarian.rankings[0]))
    return `${name} and utilitarian choose the same ranking.`;
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
