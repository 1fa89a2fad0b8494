// The sentence on health.

import { failing } from "./facts.js";
import { duration, list } from "./words.js";

export function healthyAnswer(state, silent) {
  if (silent)
    return `Not known: the service has not answered for ${duration(silent)}. These are the last figures.`;
  const bad = failing(state);
  const count = state.health.length;
  if (!bad.length) return count === 1 ? "The one check passes." : `All ${count} checks pass.`;
  const needs = bad.length === 1 ? "One check needs" : `${bad.length} checks need`;
  const rest = count - bad.length;
  const others = rest ? ` The other ${rest === 1 ? "passes" : `${rest} pass`}.` : "";
  return `${needs} a look: ${list(bad.map((check) => check.n.toLowerCase()))}.${others}`;
}
