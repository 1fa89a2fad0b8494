// The page's answers in words. Each is computed, and claims no more than the intervals allow: what they do not
// tell apart "cannot be told apart yet", and what may be nothing is "within chance".

import {
  changeFor,
  contenders,
  failing,
  isEqual,
  isSure,
  lastHour,
  liveTreatment,
  nowOf,
  presentItems,
  priceOf,
  topPosition,
  treatments,
  valueOf,
} from "./facts.js";
import {
  capital,
  duration,
  list,
  magnitude,
  number,
  percent,
  plural,
  shortList,
  signed,
  smallShare,
  sureness,
  utilityName,
  whole,
} from "./words.js";

const MOST_TYPES = 3;
const MOST_ITEMS = 5;

export const rankingWords = (state, ranking) =>
  ranking.length <= MOST_ITEMS
    ? ranking.map((item) => state.surface.items[item]).join(", ")
    : `${ranking
        .slice(0, MOST_ITEMS)
        .map((item) => state.surface.items[item])
        .join(", ")} and ${whole(ranking.length - MOST_ITEMS)} more`;

const sameRanking = (a, b) => a.length === b.length && a.every((item, position) => item === b[position]);

// What is shown now?

export function shownAnswer(state) {
  return isEqual(state) ? shownToEveryone(state) : shownToTypes(state);
}

function shownToEveryone(state) {
  const now = state.now[0];
  const ranking = rankingWords(state, now.ranking);
  const value = `${utilityName(state.surface.utility)} value over ${typesInAll(state)}`;
  const often = now.shown_last_1000;
  const seen = often >= 0.9 ? "Everyone sees" : often >= 0.5 ? "Everyone mostly sees" : "Best known for everyone is";
  if (isSure(now.p_best)) return `${seen} ${ranking}. It has the best ${value}; that is ${sureness(now.p_best)} sure.`;
  const sure = now.p_best === null || now.p_best === undefined ? "" : `, and is the best with ${sureness(now.p_best)} certainty`;
  return `${seen} ${ranking}. It has the best estimated ${value}${sure}.`;
}

const typesInAll = (state) =>
  state.surface.types.length === 1 ? "the one user type" : `all ${whole(state.surface.types.length)} user types`;

function shownToTypes(state) {
  const groups = [];
  for (const [type, name] of state.surface.types.entries()) {
    const now = nowOf(state, type);
    const often = now.shown_last_1000;
    const verb = often >= 0.9 ? "see" : often >= 0.5 ? "mostly see" : null;
    const group = groups.find((one) => one.verb === verb && sameRanking(one.ranking, now.ranking));
    if (group) group.types.push(name);
    else groups.push({ types: [name], ranking: now.ranking, verb });
  }
  const told = groups.slice(0, MOST_TYPES).map(({ types, ranking, verb }) => {
    const who = whoWords(state, types);
    const what = rankingWords(state, ranking);
    return capital(verb ? `${who} ${verb} ${what}.` : `best known for ${who} is ${what}.`);
  });
  const rest = groups.length - told.length;
  if (rest > 0) told.push(`${plural(rest, "more ranking")} for the others ${rest === 1 ? "is" : "are"} below.`);
  return [...told, topPositionWords(state)].filter(Boolean).join(" ");
}

function whoWords(state, types) {
  if (state.surface.types.length === 1) return "users";
  return types.length > MOST_TYPES ? shortList(types, MOST_TYPES) : `${list(types)} users`;
}

function topPositionWords(state) {
  const tops = state.surface.types.map((_, type) => topPosition(state, type));
  if (tops[0] === null || state.surface.n_positions === 1 || tops.some((top) => top !== tops[0])) return "";
  const whom = tops.length === 1 ? "" : " from every type";
  const strongestThere = state.surface.types.every((_, type) => {
    const { ranking } = nowOf(state, type);
    const means = ranking.map((item) => state.items[type][item].m);
    return means[tops[0]] === Math.max(...means);
  });
  const so = strongestThere ? ", so the item with the highest estimate goes there" : "";
  return `Position ${tops[0] + 1} gets the most looks${whom}${so}.`;
}

// Why a type sees what it sees, and what is still open: pieces of text, of which those in an array are stressed.
export function whyShown(state, type) {
  const now = nowOf(state, type);
  const top = topPosition(state, type);
  const pieces = [];
  if (top !== null && state.surface.n_positions > 1) {
    const looks = percent(state.positions[type][top].m);
    pieces.push(`Position ${top + 1} draws ${looks} of looks and gets ${state.surface.items[now.ranking[top]]}. `);
  }
  return [...pieces, ...openPieces(state, now), shownShare(now)].filter((piece) => piece !== "");
}

function openPieces(state, now) {
  const next = now.runner_up;
  if (!next) return [];
  const other = rankingWords(state, next.ranking);
  const sameItems = next.ranking.every((item) => now.ranking.includes(item));
  const apart = magnitude(next.delta);
  if (isTold(now)) return [`The next best ranking, ${other}, is estimated to bring ${apart} clicks per visit less. `];
  return [
    ["Still open: "],
    `${sameItems ? "the order " : ""}${other} is estimated ${apart} clicks per visit away, and the two cannot be told apart yet. `,
  ];
}

// Whether the present ranking is told from the next best: the interval of their difference does not hold 0.
function isTold(now) {
  const { lo, hi } = now.runner_up;
  return lo === undefined || lo === null ? isSure(now.p_best) : hi < 0 || lo > 0;
}

const shownShare = (now) =>
  now.shown_last_1000 === null || now.shown_last_1000 === undefined
    ? ""
    : `Shown in ${percent(now.shown_last_1000)} of the last 1,000 rankings.`;

// The same under equal treatment: what the next best ranking would change for each type.
export function whyShownToEveryone(state) {
  const now = state.now[0];
  const next = now.runner_up;
  if (!next) return [];
  const changes = state.surface.types.map((name, type) => {
    const worth = next.ranking.reduce(
      (total, item, position) => total + state.positions[type][position].m * state.items[type][item].m,
      0,
    );
    return `${name} by ${signed(next.by_type?.[type] ?? worth - valueOf(state, type).m)}`;
  });
  const pieces = [
    `The next best ranking, ${rankingWords(state, next.ranking)}, would change ${shortList(changes, 6)} clicks per visit. `,
  ];
  if (!isTold(now)) {
    pieces.push(["Still open: "], `the two cannot be told apart yet in ${utilityName(state.surface.utility)} value.`);
  }
  return pieces;
}

// What has been learned?

export function learnedAnswer(state) {
  return [positionsLearned(state), itemsLearned(state)].filter(Boolean).join(" ");
}

function positionsLearned(state) {
  const { types, n_positions: count } = state.surface;
  if (count === 1) return "";
  const tops = types.map((_, type) => topPosition(state, type));
  if (tops[0] !== null && tops.every((top) => top === tops[0])) {
    const shares = types.map((name, type) => `${percent(state.positions[type][tops[0]].m)} for ${name}`);
    const told = types.length === 1 ? percent(state.positions[0][tops[0]].m) : shortList(shares, MOST_TYPES);
    return `Position ${tops[0] + 1} draws the most looks: ${told}.`;
  }
  const told = [];
  for (const top of [...new Set(tops.filter((one) => one !== null))]) {
    const names = types.filter((_, type) => tops[type] === top);
    told.push(`${whoWords(state, names)} ${told.length ? "" : "look most "}at position ${top + 1}`);
  }
  const open = types.filter((_, type) => tops[type] === null);
  const unknown = open.length
    ? `For ${shortList(open, MOST_TYPES)}, the position that draws the most looks cannot be told yet.`
    : "";
  return [told.length ? capital(`${list(told)}.`) : "", unknown].filter(Boolean).join(" ");
}

function itemsLearned(state) {
  const { types, items } = state.surface;
  const groups = [];
  for (const [type, name] of types.entries()) {
    const present = presentItems(state);
    const best = contenders(state.items[type], present);
    if (present.length === 1) continue;
    const said =
      best.length === 1
        ? `${items[best[0]]} is the strongest item.`
        : best.length === present.length && best.length > 2
          ? `no item can be told from the others yet.`
          : `${shortList(
              best.map((item) => items[item]),
              2,
            )} cannot be told apart yet.`;
    const group = groups.find((one) => one.said === said);
    if (group) group.names.push(name);
    else groups.push({ names: [name], said });
  }
  const told = groups.slice(0, MOST_TYPES).map(({ names, said }) => {
    if (types.length === 1) return capital(said);
    return `For ${shortList(names, MOST_TYPES)}, ${said}`;
  });
  if (groups.length > MOST_TYPES) told.push("The others are below.");
  return told.join(" ").trim();
}

// Is it working?

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

// Is it fair?

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
  const would = live === 0;
  const words = [];
  if (told.length) {
    const costs = told.map((change) => `${change.name} ${magnitude(change.m)}`);
    words.push(`One ranking for everyone ${would ? "would cost" : "costs"} ${shortList(costs, MOST_TYPES)} clicks per visit.`);
  }
  if (open.length) {
    const names = shortList(
      open.map((change) => change.name),
      MOST_TYPES,
    );
    words.push(`${told.length ? "For" : "One ranking for everyone: for"} ${names} the difference is within the uncertainty of the estimates.`);
  }
  if (!told.length && !open.length) {
    const most = priceOf(state, against).hi;
    const perhaps = most > 0 ? `; it may cost up to ${smallShare(most)} of clicks` : "";
    words.push(`By the estimates one ranking for everyone ${would ? "would cost" : "costs"} nobody anything${perhaps}.`);
  }
  if (told.length + open.length && same) words.push(`${same === 1 && changes.length === 2 ? "The other type loses" : "The others lose"} nothing by the estimates.`);
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
  if (sameRanking(own.rankings[0], utilitarian.rankings[0])) return `${name} and utilitarian choose the same ranking.`;
  if (own.lo[worst] > utilitarian.hi[worst]) {
    const [from, to] = [utilitarian.value[worst], own.value[worst]].map((value) => number(value));
    return `${name} lifts ${state.surface.types[worst]}, worst off under utilitarian, from ${from} to ${to}.`;
  }
  return `Whether ${name} helps the type worst off under utilitarian cannot be told yet.`;
}

// The price with its interval: "3.1%, between 1.2% and 5.0%".
export function priceWords(state, treatment) {
  const price = priceOf(state, treatment);
  const shown = smallShare(Math.max(0, price.m));
  const known = price.lo !== null && price.lo !== undefined;
  const between = known ? `between ${smallShare(Math.max(0, price.lo))} and ${smallShare(Math.max(0, price.hi))}` : "";
  return { shown, between, told: known && price.lo > 0 };
}

// Is it healthy?

export function healthyAnswer(state, silent) {
  if (silent) return `Not known: the service has not answered for ${duration(silent)}. These are the last figures received.`;
  const bad = failing(state);
  const count = state.health.length;
  if (!bad.length) return count === 1 ? "The one check passes." : `All ${count} checks pass.`;
  const needs = bad.length === 1 ? "One check needs" : `${bad.length} checks need`;
  const rest = count - bad.length;
  const others = rest ? ` The other ${rest === 1 ? "passes" : `${rest} pass`}.` : "";
  return `${needs} a look: ${list(bad.map((check) => check.n.toLowerCase()))}.${others}`;
}

// Why a ranking in the list of the latest was what it was.
export function reasonWords(state, ranking) {
  if (ranking.why === "best") return "Best known";
  if (ranking.why === "order") return "Trying another order";
  const usual = new Set(nowOf(state, ranking.type)?.ranking ?? []);
  const other = ranking.ranking.filter((item) => !usual.has(item)).map((item) => state.surface.items[item]);
  return other.length ? `Trying ${shortList(other, 2)}` : "Trying another item";
}

export function feedbackWords(state, ranking) {
  if (ranking.feedback === "waiting") return "Waiting";
  if (ranking.feedback === "none" || ranking.item === null || ranking.item === undefined) return "No click";
  return `Clicked ${state.surface.items[ranking.item]}`;
}
