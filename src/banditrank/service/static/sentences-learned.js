// Sentences on what has been learned of positions and items.

import { contenders, presentItems, topPosition } from "./facts.js";
import { MOST_TYPES, whoWords } from "./naming.js";
import { capital, list, percent, shortList } from "./words.js";

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
