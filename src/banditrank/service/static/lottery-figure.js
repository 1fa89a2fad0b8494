// The best lottery over rankings: its odds, its gain over one fixed ranking, and the guarantees.

import { h } from "./element.js";
import { hasTypeLotteries, isLottery } from "./selectors.js";
import { figure, note } from "./section.js";
import { formatRanking } from "./names.js";
import { table } from "./tables.js";
import { formatInterval, number, percent } from "./format.js";

const MAX_RANKINGS = 12;

export function lotteryFigure(state) {
  const { lottery } = state;
  if (!lottery) return null;
  return [
    figure(
      "Lottery",
      h("span", { class: "m" }, audience(state)),
      h("p", null, lottery.summary),
      lottery.conflict && h("p", { class: "none bad" }, conflictText(lottery.conflict)),
      table(
        "Odds of the best lottery by the estimates",
        ["Ranking", ...(hasTypeLotteries(state) ? ["User type"] : []), "Probability"],
        oddsRows(state),
      ),
      lottery.rankings.length > MAX_RANKINGS &&
        note(`${lottery.rankings.length - MAX_RANKINGS} rarer rankings are in the JSON.`),
    ),
    lottery.guarantees.length > 0 && guaranteesFigure(state),
  ];
}

function audience(state) {
  if (hasTypeLotteries(state)) return "the same odds for all users of a type";
  return isLottery(state) ? "the same odds for all users" : "instead of one ranking";
}

const oddsRows = (state) =>
  state.lottery.rankings
    .slice(0, MAX_RANKINGS)
    .map((ranking, index) => [
      formatRanking(state, ranking),
      ...(hasTypeLotteries(state) ? [state.lottery.user_types[index]] : []),
      percent(state.lottery.probabilities[index], 1),
    ]);

const conflictText = (conflict) =>
  `By the estimates, the ${conflict}. The odds below are those without guarantees.`;

function guaranteesFigure(state) {
  const head = ["Guarantee", "At least", "So far", "Kept", "Price"];
  const rows = state.lottery.guarantees.map((one) => [
    one.name,
    number(one.level),
    one.realised === null
      ? "–"
      : [number(one.realised), " ", h("span", { class: "m nw" }, formatInterval(one))],
    one.is_kept === null ? "–" : one.is_kept ? "yes" : "no",
    one.price === null ? "–" : number(one.price),
  ]);
  return figure(
    "Guarantees",
    h("span", { class: "m" }, `${percent(state.level ?? 0.95)} intervals`),
    table("Guarantees, what was realised, and their prices", head, rows),
    note(
      "So far: over the visits since the guarantees took effect. Kept: the level is reached within the ",
      "interval. Price: by how much the collective utility rises for each unit by which the level ",
      "falls; 0 if it costs nothing, – if it is unknown.",
    ),
  );
}
