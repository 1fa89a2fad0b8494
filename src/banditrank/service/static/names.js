// Rankings and user types in sentences, shortened.

import { list, shortList, whole } from "./format.js";

export const MAX_TYPES_IN_SENTENCE = 3;
const MAX_ITEMS = 5;

export const formatRanking = (state, ranking) =>
  ranking.length <= MAX_ITEMS
    ? ranking.map((item) => state.surface.items[item]).join(", ")
    : `${ranking
        .slice(0, MAX_ITEMS)
        .map((item) => state.surface.items[item])
        .join(", ")} and ${whole(ranking.length - MAX_ITEMS)} more`;

export const sameRanking = (a, b) =>
  a.length === b.length && a.every((item, position) => item === b[position]);

// "Male and Female users"
export function formatUserTypes(state, types) {
  if (state.surface.user_types.length === 1) return "users";
  return types.length > MAX_TYPES_IN_SENTENCE
    ? shortList(types, MAX_TYPES_IN_SENTENCE)
    : `${list(types)} users`;
}
