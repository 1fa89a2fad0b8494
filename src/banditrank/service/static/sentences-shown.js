// Sentences about the current rankings.

import {
  bestRankingOf,
  isEqual,
  drawsLotteries,
  hasTypeLotteries,
  isLottery,
  isPositionBased,
  isProbablyBest,
  stakes,
  topPosition,
} from "./selectors.js";
import { formatRanking, formatUserTypes, MAX_TYPES_IN_SENTENCE, sameRanking } from "./names.js";
import {
  capitalize,
  formatInterval,
  magnitude,
  percent,
  perThousand,
  plural,
  probability,
  shortList,
  signed,
  utilityName,
  whole,
} from "./format.js";

export function shownAnswer(state) {
  if (isLottery(state)) return shownByLottery(state);
  if (hasTypeLotteries(state)) return SHOWN_BY_TYPE_LOTTERIES;
  return isEqual(state) ? shownToAll(state) : shownToTypes(state);
}

const SHOWN_BY_TYPE_LOTTERIES =
  "Each ranking is drawn from a lottery of the user's type, which keeps the guarantees. " +
  "Without guarantees, these rankings would be best.";

function shownByLottery(state) {
  const [first, ...others] = state.best_rankings;
  const utility = utilityName(state.surface.utility);
  const ranking = formatRanking(state, first.ranking);
  if (!others.length) return `All users see ${ranking}: the best ${utility} lottery has one ranking.`;
  return (
    `All users have the same odds in a lottery over ${plural(state.best_rankings.length, "ranking")}. ` +
    `The most probable, ${ranking}, has ${percent(first.probability)} by the estimates.`
  );
}

function shownToAll(state) {
  const now = state.best_rankings[0];
  const ranking = formatRanking(state, now.ranking);
  const value = `${utilityName(state.surface.utility)} value over ${allTypesText(state)}`;
  const share = now.shown?.share;
  const subject =
    share >= 0.9
      ? "All users see"
      : share >= 0.5
        ? "All users mostly see"
        : "The best known ranking for all users is";
  const best = now.probability_best;
  if (isProbablyBest(best))
    return `${subject} ${ranking}. It has the best ${value}, with probability ${probability(best)}.`;
  const chance = best === null ? "" : `, and is the best with probability ${probability(best)}`;
  const loss = now.loss ? `; the expected loss is ${lossText([now.loss])}` : "";
  return `${subject} ${ranking}. It has the best estimated ${value}${chance}${loss}.`;
}

const allTypesText = (state) =>
  state.surface.user_types.length === 1
    ? "the one user type"
    : `all ${whole(state.surface.user_types.length)} user types`;

function shownToTypes(state) {
  const groups = [];
  for (const [type, name] of state.surface.user_types.entries()) {
    const now = bestRankingOf(state, type);
    const share = now.shown?.share;
    const verb = share >= 0.9 ? "see" : share >= 0.5 ? "mostly see" : null;
    const group = groups.find((one) => one.verb === verb && sameRanking(one.ranking, now.ranking));
    if (group) group.types.push(name);
    else groups.push({ types: [name], ranking: now.ranking, verb });
  }
  const sentences = groups.slice(0, MAX_TYPES_IN_SENTENCE).map(({ types, ranking, verb }) => {
    const users = formatUserTypes(state, types);
    const items = formatRanking(state, ranking);
    return verb
      ? capitalize(`${users} ${verb} ${items}.`)
      : `The best known ranking for ${users} is ${items}.`;
  });
  const rest = groups.length - sentences.length;
  if (rest > 0)
    sentences.push(`${plural(rest, "more ranking")} for the others ${rest === 1 ? "is" : "are"} below.`);
  return [...sentences, topPositionText(state)].filter(Boolean).join(" ");
}

function topPositionText(state) {
  const tops = state.surface.user_types.map((_, type) => topPosition(state, type));
  if (tops[0] === null || state.surface.n_positions === 1 || tops.some((top) => top !== tops[0])) return "";
  const users = tops.length === 1 ? "" : " of every user type";
  const hasBestItem = state.surface.user_types.every((_, type) => {
    const { ranking } = bestRankingOf(state, type);
    const means = ranking.map((item) => state.items[type][item].estimate);
    return means[tops[0]] === Math.max(...means);
  });
  const consequence = hasBestItem ? ", so the item with the highest estimate goes there" : "";
  return `Position ${tops[0] + 1} gets the most looks${users}${consequence}.`;
}

// The reasons for the current ranking of a user type: parts of text, those in an array with emphasis.
export function whyShown(state, type) {
  const now = bestRankingOf(state, type);
  const top = topPosition(state, type);
  const parts = [];
  if (top !== null && state.surface.n_positions > 1) {
    const looks = isPositionBased(state)
      ? "the most looks"
      : `${percent(state.positions[type][top].estimate)} of looks`;
    parts.push(`Position ${top + 1} gets ${looks} and shows ${state.surface.items[now.ranking[top]]}. `);
  }
  return [
    ...parts,
    ...runnerUpText(state, now),
    ...stakesText(state, now),
    shareSentence(state, type),
  ].filter((part) => part !== "");
}

// How much a ranking may lose that is not known to be the best.
function stakesText(state, now) {
  const loss = stakes(state, now);
  if (!loss) return [];
  return [
    [loss.isLittle ? "Little is at stake: " : "At stake: "],
    `the expected loss against the best ranking is ${lossText([loss])} ` +
      `(${formatInterval(loss, perThousand)}). `,
  ];
}

// "0.4 clicks per 1,000 visits", or from the smallest to the largest of several losses.
export function lossText(losses) {
  const estimates = losses.map((loss) => loss.estimate);
  const ends = [Math.min(...estimates), Math.max(...estimates)].map(perThousand);
  return `${[...new Set(ends)].join(" to ")} clicks per 1,000 visits`;
}

function runnerUpText(state, now) {
  const next = now.runner_up;
  if (!next) return [];
  const other = formatRanking(state, next.ranking);
  const sameItems = next.ranking.every((item) => now.ranking.includes(item));
  const difference = magnitude(next.difference);
  if (isSignificant(now))
    return [`The next best ranking, ${other}, has ${difference} clicks per visit less by the estimates. `];
  return [
    ["Still open: "],
    `${sameItems ? "the order " : ""}${other} is estimated ${difference} clicks per visit away, ` +
      "and the two cannot be distinguished yet. ",
  ];
}

// Whether the current ranking is significantly better than the next best: in clicks, or in the utility under
// equal treatment.
const isSignificant = (now) => now.runner_up.high < 0;

function shareSentence(state, type) {
  const text = shownShareText(bestRankingOf(state, type));
  const users = state.surface.user_types.length === 1 ? "" : ` for ${state.surface.user_types[type]}`;
  return text && `${capitalize(text)}${users}.`;
}

// "shown in 99% of the last 480 rankings"
export const shownShareText = ({ shown }) =>
  shown ? `shown in ${percent(shown.share)} of the last ${plural(shown.n_rankings, "ranking")}` : "";

// The reasons under equal treatment: the effect of the next best ranking on each user type.
export function whyShownToAll(state) {
  const now = state.best_rankings[0];
  const next = now.runner_up;
  if (!next) return [];
  const changes = state.surface.user_types.map(
    (name, type) => `${name} by ${signed(next.by_user_type[type])}`,
  );
  const parts = [
    `The next best ranking, ${formatRanking(state, next.ranking)}, ` +
      `would change ${shortList(changes, 6)} clicks per visit. `,
  ];
  if (!isSignificant(now)) {
    parts.push(
      ["Still open: "],
      `the two cannot be distinguished yet in ${utilityName(state.surface.utility)} value. `,
    );
  }
  return [...parts, ...stakesText(state, now)];
}

// The reason for one of the latest rankings.
export function reasonText(state, ranking) {
  if (ranking.arm && ranking.arm !== "policy") return `Arm ${ranking.arm}`;
  if (drawsLotteries(state)) return "Drawn by the lottery";
  if (ranking.reason === "best") return "Best known";
  if (ranking.reason === "order") return "Exploring another order";
  if (ranking.reason !== "item") return "–";
  const other = ranking.explored_items.map((item) => state.surface.items[item]);
  return other.length ? `Exploring ${shortList(other, 2)}` : "Exploring another item";
}

export function feedbackText(state, ranking) {
  if (ranking.feedback === "pending") return "Pending";
  if (ranking.feedback === "unreported") return "Not reported";
  if (ranking.feedback === "not-clicked") return "No click";
  return `Clicked ${ranking.clicked.map((item) => state.surface.items[item]).join(", ")}`;
}
