// Sentences on what is shown now, to whom, and what is still open.

import { isEqual, isSure, nowOf, topPosition } from "./facts.js";
import { MOST_TYPES, rankingWords, sameRanking, whoWords } from "./naming.js";
import {
  capital,
  magnitude,
  percent,
  plural,
  shortList,
  signed,
  sureness,
  utilityName,
  whole,
} from "./words.js";

export function shownAnswer(state) {
  return isEqual(state) ? shownToEveryone(state) : shownToTypes(state);
}

function shownToEveryone(state) {
  const now = state.now[0];
  const ranking = rankingWords(state, now.ranking);
  const value = `${utilityName(state.surface.utility)} value over ${typesInAll(state)}`;
  const often = now.shown?.share;
  const seen =
    often >= 0.9 ? "Everyone sees" : often >= 0.5 ? "Everyone mostly sees" : "Best known for everyone is";
  if (isSure(now.p_best))
    return `${seen} ${ranking}. It has the best ${value}; that is ${sureness(now.p_best)} sure.`;
  const sure = now.p_best === null ? "" : `, and is the best with ${sureness(now.p_best)} certainty`;
  return `${seen} ${ranking}. It has the best estimated ${value}${sure}.`;
}

const typesInAll = (state) =>
  state.surface.types.length === 1
    ? "the one user type"
    : `all ${whole(state.surface.types.length)} user types`;

function shownToTypes(state) {
  const groups = [];
  for (const [type, name] of state.surface.types.entries()) {
    const now = nowOf(state, type);
    const often = now.shown?.share;
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
  if (rest > 0)
    told.push(`${plural(rest, "more ranking")} for the others ${rest === 1 ? "is" : "are"} below.`);
  return [...told, topPositionWords(state)].filter(Boolean).join(" ");
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

// Why a type sees what it sees, and what is still open: pieces of text, of which those in an array are
// stressed.
export function whyShown(state, type) {
  const now = nowOf(state, type);
  const top = topPosition(state, type);
  const pieces = [];
  if (top !== null && state.surface.n_positions > 1) {
    const looks = percent(state.positions[type][top].m);
    pieces.push(
      `Position ${top + 1} draws ${looks} of looks and gets ${state.surface.items[now.ranking[top]]}. `,
    );
  }
  return [...pieces, ...openPieces(state, now), shownShare(state, type)].filter((piece) => piece !== "");
}

function openPieces(state, now) {
  const next = now.runner_up;
  if (!next) return [];
  const other = rankingWords(state, next.ranking);
  const sameItems = next.ranking.every((item) => now.ranking.includes(item));
  const apart = magnitude(next.delta);
  if (isTold(now))
    return [`The next best ranking, ${other}, is estimated to bring ${apart} clicks per visit less. `];
  return [
    ["Still open: "],
    `${sameItems ? "the order " : ""}${other} is estimated ${apart} clicks per visit away, ` +
      "and the two cannot be told apart yet. ",
  ];
}

// Whether the present ranking is told from the next best: all of the interval of what that brings more is
// below 0. Under equal treatment it is in the utility that is maximised, and not in clicks.
const isTold = (now) => now.runner_up.hi < 0;

function shownShare(state, type) {
  const often = oftenWords(nowOf(state, type));
  const whom = state.surface.types.length === 1 ? "" : ` for ${state.surface.types[type]}`;
  return often && `${capital(often)}${whom}.`;
}

// How often the present ranking is shown: shown in 99% of the last 480 rankings
export const oftenWords = ({ shown }) =>
  shown ? `shown in ${percent(shown.share)} of the last ${plural(shown.of, "ranking")}` : "";

// The same under equal treatment: what the next best ranking would change for each type.
export function whyShownToEveryone(state) {
  const now = state.now[0];
  const next = now.runner_up;
  if (!next) return [];
  const changes = state.surface.types.map((name, type) => `${name} by ${signed(next.by_type[type])}`);
  const pieces = [
    `The next best ranking, ${rankingWords(state, next.ranking)}, ` +
      `would change ${shortList(changes, 6)} clicks per visit. `,
  ];
  if (!isTold(now)) {
    pieces.push(
      ["Still open: "],
      `the two cannot be told apart yet in ${utilityName(state.surface.utility)} value.`,
    );
  }
  return pieces;
}

// Why a ranking in the list of the latest was what it was.
export function reasonWords(state, ranking) {
  if (ranking.why === "best") return "Best known";
  if (ranking.why === "order") return "Trying another order";
  const other = ranking.tried.map((item) => state.surface.items[item]);
  return other.length ? `Trying ${shortList(other, 2)}` : "Trying another item";
}

export function feedbackWords(state, ranking) {
  if (ranking.feedback === "waiting") return "Waiting";
  if (ranking.feedback === "unreported") return "Not reported";
  if (ranking.feedback === "none") return "No click";
  return `Clicked ${state.surface.items[ranking.item]}`;
}
