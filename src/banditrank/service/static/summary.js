// The summary at the top: one value per section, each a link to the section.

import { h } from "./element.js";
import {
  bestRankingOf,
  failingChecks,
  hasEstimates,
  isEqual,
  isLottery,
  lastHour,
  optimumName,
  treatments,
} from "./selectors.js";
import { swatch } from "./markers.js";
import { formatRanking, lossText, pricedTreatment, priceText } from "./sentences.js";
import { status } from "./status.js";
import { duration, number, percent, plural, probability, shortList, utilityName } from "./format.js";

const MAX_TYPES_IN_SUMMARY = 3;

export function summary(state, silent) {
  const parts = [
    shownNow(state),
    learnedSoFar(state),
    workingNow(state),
    fairNow(state),
    healthyNow(state, silent),
  ];
  return h(
    "nav",
    { "aria-label": "Summary" },
    h(
      "ol",
      { class: "sum" },
      parts.map(([id, name, value, text]) =>
        h(
          "li",
          null,
          h(
            "a",
            { href: `#${id}` },
            h("span", { class: "k" }, name),
            h("span", { class: "v" }, value),
            h("span", { class: "c" }, text),
          ),
        ),
      ),
    ),
  );
}

const byType = (state, textOf) =>
  state.surface.user_types
    .slice(0, MAX_TYPES_IN_SUMMARY)
    .map((name, type) =>
      h(
        "span",
        { class: "rk" },
        swatch(type),
        h("span", { class: "vh" }, `${name}: `),
        h("span", null, textOf(bestRankingOf(state, type))),
      ),
    );

const pending = (state) => (state.compiling === "this-surface" ? "compiling code" : "being computed");

function shownNow(state) {
  if (!hasEstimates(state)) return ["shown", "Shown now", "–", pending(state)];
  const ranking = (best) => formatRanking(state, best.ranking);
  if (isEqual(state)) {
    const value = h("span", { class: "rk" }, ranking(state.best_rankings[0]));
    const more = state.best_rankings.length - 1;
    const odds = `to all users, in ${percent(state.best_rankings[0].probability ?? 1)} of visits`;
    return ["shown", "Shown now", value, isLottery(state) && more ? odds : "to all users"];
  }
  const users = shortList(state.surface.user_types, MAX_TYPES_IN_SUMMARY);
  return ["shown", "Shown now", byType(state, ranking), `to ${users}`];
}

function learnedSoFar(state) {
  if (!hasEstimates(state)) return ["learned", "Learned", "–", pending(state)];
  if (isLottery(state)) {
    const count = plural(state.best_rankings.length, "ranking");
    return ["learned", "Learned", count, "in the best lottery by the estimates"];
  }
  const chance = (now) => (now.probability_best === null ? "unknown" : probability(now.probability_best));
  const value = isEqual(state) ? chance(state.best_rankings[0]) : byType(state, chance);
  const losses = state.best_rankings.map((now) => now.loss).filter(Boolean);
  const stake = losses.length ? `; expected loss: ${lossText(losses)}` : "";
  return ["learned", "Learned", value, `probability that this is the best ranking${stake}`];
}

function workingNow(state) {
  const hour = lastHour(state);
  if (!hour.visits) return ["working", "Working", "–", "no recent visits"];
  const span = hour.seconds >= 3600 && hour.seconds < 5400 ? "hour" : duration(hour.seconds);
  const against = hour.optimum ? `; ${optimumName(state)} ${number(hour.optimum.estimate)}` : "";
  return ["working", "Working", number(hour.rate.estimate), `clicks per visit in the last ${span}${against}`];
}

function fairNow(state) {
  if (state.surface.user_types.length === 1)
    return ["fair", "Fair", "One type", "all users are treated equally"];
  if (!hasEstimates(state)) return ["fair", "Fair", "–", pending(state)];
  const priced = pricedTreatment(state);
  if (priced < 1) return ["fair", "Fair", "–", "the price of equality is not known"];
  const { shown, between } = priceText(state, priced);
  const utility = utilityName(treatments(state)[priced].utility);
  return [
    "fair",
    "Fair",
    shown,
    `of clicks ${isEqual(state) ? "is" : "would be"} the price of equality (${utility})` +
      (between ? `, ${between}` : ""),
  ];
}

function healthyNow(state, silent) {
  const failed = failingChecks(state).length;
  const count = state.health.length;
  if (silent) return ["healthy", "Healthy", "Unknown", `no response for ${duration(silent)}`];
  if (failed)
    return [
      "healthy",
      "Healthy",
      `${failed} of ${count}`,
      `${failed > 1 ? "checks need" : "check needs"} attention`,
    ];
  return [
    "healthy",
    "Healthy",
    status("ok", "All pass"),
    `${count} checks; counts ${number(state.counts_age_seconds ?? 0, 1)} s old`,
  ];
}
