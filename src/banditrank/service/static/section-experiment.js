// Is it better: the rewards per visit of the arms of the experiment, and the lift of the policy.

import { h } from "./element.js";
import { emptyState, figure, note, panelError, section } from "./section.js";
import { foldedTable, table } from "./tables.js";
import { capitalize, number, plural, signed, smallShare, whole } from "./format.js";

export function experimentSection(results, error) {
  if (!results) {
    const missing = error ? panelError(error) : emptyState("The results are being computed.");
    return section("experiment", "Not known yet.", null, missing);
  }
  const arms = results.arms.slice(1);
  return section(
    "experiment",
    experimentAnswer(results),
    note(
      `The intervals hold with probability ${results.level}, however often they are looked at. `,
      "Clicks are weighted by their rewards.",
    ),
    figure(
      `Experiment ${results.experiment}`,
      h("span", { class: "m" }, `${plural(results.visits, "visit")} counted`),
      table(
        "Clicks per visit of each arm, and the lift of the policy",
        ["Arm", "Visits", "Clicks per visit", "Lift of the policy"],
        results.arms.map((arm) => [
          arm.name,
          [whole(arm.visits), below(arm.share > 0 ? `share ${smallShare(arm.share)}` : "stopped")],
          estimate(arm.reward_per_visit, number(arm.reward_per_visit.estimate ?? 0), number),
          arm.lift ? liftCell(arm.lift) : "–",
        ]),
        "arms",
      ),
      arms.map((arm) => h("p", { class: "s" }, `${capitalize(arm.lift.sentence)}.`)),
      arms.filter((arm) => arm.visits > 0).map(typeTable),
    ),
  );
}

// The answer claims a difference only if its interval excludes 0.
function experimentAnswer(results) {
  const arms = results.arms.slice(1);
  const better = arms.filter((arm) => arm.lift.is_established && arm.lift.absolute.estimate > 0);
  const worse = arms.filter((arm) => arm.lift.is_established && arm.lift.absolute.estimate < 0);
  const names = (some) => some.map((arm) => arm.name).join(", ");
  const parts = [
    better.length && `The policy gets more clicks per visit than ${names(better)}.`,
    worse.length && `The policy gets fewer clicks per visit than ${names(worse)}.`,
  ].filter(Boolean);
  return parts.join(" ") || "No difference between the policy and the other arms is established yet.";
}

const below = (text) => h("span", { class: "m s below" }, text);

// An estimate, and its interval in a line below; an end that is not bounded is left open.
function estimate({ estimate: value, low, high }, text, formatEnd) {
  if (value === null) return "–";
  const end = (one) => (one === null ? "…" : formatEnd(one));
  return [text, below(`${end(low)} to ${end(high)}`)];
}

function liftCell({ absolute, relative }) {
  const share = relative.estimate === null ? "" : ` (${signed(100 * relative.estimate, 0)}%)`;
  return estimate(absolute, `${signed(absolute.estimate ?? 0)}${share}`, (value) => signed(value));
}

function typeTable(arm) {
  const caption = `Lift over ${arm.name} by user type`;
  return foldedTable(
    `experiment-${arm.name}`,
    caption,
    caption,
    ["User type", "Policy visits", "Arm visits", "Lift", "Established"],
    () =>
      arm.user_types.map((one) => [
        one.user_type,
        whole(one.policy_visits),
        whole(one.visits),
        liftCell(one.lift),
        one.lift.is_established ? "yes" : "no",
      ]),
    "arms",
  );
}
