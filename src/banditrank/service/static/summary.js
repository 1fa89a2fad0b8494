// The strip on top: all five answers at a glance, each a link to its section.

import { h } from "./element.js";
import { failing, isEqual, lastHour, nowOf, optimumName, treatments } from "./facts.js";
import { swatch } from "./marks.js";
import { pricedTreatment, priceWords, rankingWords } from "./sentences.js";
import { status } from "./status.js";
import { duration, number, shortList, sureness, utilityName } from "./words.js";

const FEW = 3;

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
      parts.map(([id, name, value, words]) =>
        h(
          "li",
          null,
          h(
            "a",
            { href: `#${id}` },
            h("span", { class: "k" }, name),
            h("span", { class: "v" }, value),
            h("span", { class: "c" }, words),
          ),
        ),
      ),
    ),
  );
}

const byType = (state, words) =>
  state.surface.types
    .slice(0, FEW)
    .map((name, type) =>
      h(
        "span",
        { class: "rk" },
        swatch(type),
        h("span", { class: "vh" }, `${name}: `),
        h("span", null, words(nowOf(state, type))),
      ),
    );

function shownNow(state) {
  const ranking = (now) => rankingWords(state, now.ranking);
  if (isEqual(state))
    return ["shown", "Shown now", h("span", { class: "rk" }, ranking(state.now[0])), "to everyone"];
  return ["shown", "Shown now", byType(state, ranking), `to ${shortList(state.surface.types, FEW)}`];
}

function learnedSoFar(state) {
  const sure = (now) => (now.p_best === null ? "not known" : sureness(now.p_best));
  const value = isEqual(state) ? sure(state.now[0]) : byType(state, sure);
  return ["learned", "Learned", value, "sure that this is the best ranking"];
}

function workingNow(state) {
  const hour = lastHour(state);
  if (!hour.visits) return ["working", "Working", "–", "no visits lately"];
  const span = hour.seconds >= 3600 && hour.seconds < 5400 ? "hour" : duration(hour.seconds);
  const against = `; ${optimumName(state)} ${number(hour.optimum.m)}`;
  return ["working", "Working", number(hour.rate.m), `clicks per visit in the last ${span}${against}`];
}

function fairNow(state) {
  if (state.surface.types.length === 1) return ["fair", "Fair", "One type", "everyone is treated alike"];
  const priced = pricedTreatment(state);
  if (priced < 1) return ["fair", "Fair", "–", "the price of equality is not known"];
  const { shown, between } = priceWords(state, priced);
  const whose = utilityName(treatments(state)[priced].utility);
  return [
    "fair",
    "Fair",
    shown,
    `of clicks ${isEqual(state) ? "is" : "would be"} the price of equality (${whose})` +
      (between ? `, ${between}` : ""),
  ];
}

function healthyNow(state, silent) {
  const bad = failing(state).length;
  const count = state.health.length;
  if (silent) return ["healthy", "Healthy", "Unknown", `no answer for ${duration(silent)}`];
  if (bad)
    return ["healthy", "Healthy", `${bad} of ${count}`, `${bad > 1 ? "checks need" : "check needs"} a look`];
  return [
    "healthy",
    "Healthy",
    status("ok", "All pass"),
    `${count} checks; counts ${number(state.counts_age_s ?? 0, 1)} s old`,
  ];
}
