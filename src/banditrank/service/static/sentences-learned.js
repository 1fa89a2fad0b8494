// Sentences about the estimates of positions and items.

import { activeItems, contenders, isPositionBased, topPosition } from "./selectors.js";
import { formatUserTypes, MAX_TYPES_IN_SENTENCE } from "./names.js";
import { capitalize, list, percent, shortList } from "./format.js";

export function learnedAnswer(state) {
  return [positionsLearned(state), itemsLearned(state)].filter(Boolean).join(" ");
}

function positionsLearned(state) {
  const { user_types: types, n_positions: count } = state.surface;
  if (count === 1) return "";
  const tops = types.map((_, type) => topPosition(state, type));
  if (tops[0] !== null && tops.every((top) => top === tops[0])) {
    if (isPositionBased(state))
      return `Position ${tops[0] + 1} gets the most looks; ${othersText(state, tops[0])}.`;
    const looks = types.map((_, type) => percent(state.positions[type][tops[0]].estimate));
    const shares = types.map((name, type) => `${looks[type]} for ${name}`);
    const text = types.length === 1 ? looks[0] : shortList(shares, MAX_TYPES_IN_SENTENCE);
    return `Position ${tops[0] + 1} gets the most looks: ${text}.`;
  }
  const clauses = [];
  for (const top of [...new Set(tops.filter((one) => one !== null))]) {
    const names = types.filter((_, type) => tops[type] === top);
    const verb = clauses.length ? "" : "look most ";
    clauses.push(`${formatUserTypes(state, names)} ${verb}at position ${top + 1}`);
  }
  const uncertain = types.filter((_, type) => tops[type] === null);
  const unknown = uncertain.length
    ? `For ${shortList(uncertain, MAX_TYPES_IN_SENTENCE)}, the position with the most looks is not known yet.`
    : "";
  return [clauses.length ? capitalize(`${list(clauses)}.`) : "", unknown].filter(Boolean).join(" ");
}

// The looks at the other positions, relative to the most looked-at one.
function othersText(state, top) {
  const others = state.positions.flatMap((row) => row.filter((_, position) => position !== top));
  const looks = others.map((one) => one.estimate);
  const [low, high] = [percent(Math.min(...looks)), percent(Math.max(...looks))];
  const subject = state.surface.n_positions === 2 ? "the other gets" : "the others get";
  return `${subject} ${low === high ? low : `${low} to ${high}`} as many`;
}

function itemsLearned(state) {
  const { user_types: types, items } = state.surface;
  const groups = [];
  for (const [type, name] of types.entries()) {
    const active = activeItems(state);
    const best = contenders(state.items[type], active);
    if (active.length === 1) continue;
    const text =
      best.length === 1
        ? `${items[best[0]]} is the strongest item.`
        : best.length === active.length && best.length > 2
          ? `no item can be distinguished from the others yet.`
          : `${shortList(
              best.map((item) => items[item]),
              2,
            )} cannot be distinguished yet.`;
    const group = groups.find((one) => one.text === text);
    if (group) group.names.push(name);
    else groups.push({ names: [name], text });
  }
  const sentences = groups.slice(0, MAX_TYPES_IN_SENTENCE).map(({ names, text }) => {
    if (types.length === 1) return capitalize(text);
    return `For ${shortList(names, MAX_TYPES_IN_SENTENCE)}, ${text}`;
  });
  if (groups.length > MAX_TYPES_IN_SENTENCE) sentences.push("The others are below.");
  return sentences.join(" ").trim();
}
