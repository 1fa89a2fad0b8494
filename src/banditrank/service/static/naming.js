// Names of rankings and of user types in sentences, short enough to be read.

import { list, shortList, whole } from "./words.js";

export const MOST_TYPES = 3;
const MOST_ITEMS = 5;

export const rankingWords = (state, ranking) =>
  ranking.length <= MOST_ITEMS
    ? ranking.map((item) => state.surface.items[item]).join(", ")
    : `${ranking
        .slice(0, MOST_ITEMS)
        .map((item) => state.surface.items[item])
        .join(", ")} and ${whole(ranking.length - MOST_ITEMS)} more`;

export const sameRanking = (a, b) =>
  a.length === b.length && a.every((item, position) => item === b[position]);

// Users of some types.
export function whoWords(state, types) {
  if (state.surface.types.length === 1) return "users";
  return types.length > MOST_TYPES ? shortList(types, MOST_TYPES) : `${list(types)} users`;
}
