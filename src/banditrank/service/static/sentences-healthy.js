// The sentence about health.

import { failingChecks } from "./selectors.js";
import { duration, list } from "./format.js";

export function healthyAnswer(state, silent) {
  if (silent)
    return `Unknown: the service has not responded for ${duration(silent)}. These are the last values.`;
  const failed = failingChecks(state);
  const count = state.health.length;
  if (!failed.length) return count === 1 ? "The one check passes." : `All ${count} checks pass.`;
  const needs = failed.length === 1 ? "One check needs" : `${failed.length} checks need`;
  const rest = count - failed.length;
  const others = rest ? ` The other ${rest === 1 ? "passes" : `${rest} pass`}.` : "";
  return `${needs} attention: ${list(failed.map((check) => check.name.toLowerCase()))}.${others}`;
}
