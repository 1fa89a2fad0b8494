// Is it working: the click rate between random order and the optimum, how much is explored, and regret in a
// demo.

import { roundRange } from "./axis.js";
import { path, readout } from "./chart.js";
import { choices, choose } from "./choices.js";
import { h } from "./element.js";
import { explorationFigure } from "./exploration-figure.js";
import { isEmpty, isEqual, optimumName, rates, references, sum } from "./facts.js";
import { figure, nothing, note, panelProblem, section } from "./section.js";
import { workingAnswer } from "./sentences.js";
import { behind } from "./tables.js";
import { bucketWords, segments, timeChart } from "./time-chart.js";
import { amount, duration, number, plural, whole } from "./words.js";

const TITLE = "Is it working?";

export function working(state, series, problem) {
  if (!series && problem)
    return section("working", TITLE, "Not known at present.", null, panelProblem(problem));
  if (!series) return section("working", TITLE, "Loading…", null, h("div", { class: "none sk" }));
  if (isEmpty(state)) {
    const closes = duration(state.surface.window_s);
    const words = `A visit counts when its feedback comes or its window of ${closes} closes.`;
    return section("working", TITLE, "No visits have been counted yet.", null, nothing(words));
  }
  if (!series.visits.length) {
    const words = `The first point is there when its ${duration(series.bucket_s)} are over.`;
    return section("working", TITLE, workingAnswer(state), null, nothing(words));
  }
  const explained = note(
    `Each point is ${duration(series.bucket_s)}; the band is its 95% interval. Nothing is smoothed.`,
  );
  return section(
    "working",
    TITLE,
    workingAnswer(state),
    explained,
    problem && panelProblem(problem),
    clickFigure(state, series),
    h(
      "div",
      { class: "two" },
      explorationFigure(series),
      series.regret && regretFigure(state, series),
    ),
  );
}

function clickFigure(state, series) {
  const type =
    choices.clicksOf !== null && choices.clicksOf < state.surface.types.length ? choices.clicksOf : null;
  const buckets = rates(series, type);
  const best = references(state, series, type);
  const range = clickRange(buckets, best);
  const optimum = optimumName(state);
  const named = (values, words, kind, above) => ({
    values,
    kind,
    above,
    words: `${words} ${number(values.at(-1))}`,
  });
  const whose = type === null ? "" : ` of ${state.surface.types[type]}`;
  const label = `Click rate${whose} over time, with the ${optimum} and random order`;
  const told = {
    key: "clicks",
    label,
    series,
    height: 280,
    range,
    format: (value, decimals) => number(value, Math.max(2, decimals)),
    readings: buckets.map(({ rate, visits }) =>
      rate
        ? `${number(rate.m)} clicks per visit (${intervalOf(rate)}), ${plural(visits, "visit")}`
        : "no visits",
    ),
    references: [
      named(best.optimum, optimum, "op", true),
      named(best.random, state.truth ? "random" : "estimated random", "rn", false),
    ],
    events: series.events,
    point: (bucket) => buckets[bucket].rate?.m ?? null,
    layers: (x, y, clamp) => clickLayers(buckets, best, x, y, clamp),
  };
  const chart = timeChart(told);
  const head = [
    "From",
    "Visits",
    "Clicks",
    "Click rate",
    "95% interval",
    "Optimum",
    ...(best.lo ? ["Its interval"] : []),
    "Random order",
  ];
  return h(
    "figure",
    null,
    h(
      "figcaption",
      null,
      h("h3", null, "Click rate"),
      readout({ key: told.key, idle: "" }),
      typeChoice(state, type),
    ),
    chart,
    best.lo && note(`The lighter band around the dashed line is the interval of the ${optimum}.`),
    behind("clicks", label, head, () =>
      buckets.map(({ visits, clicks, rate }, bucket) => [
        bucketWords(series, bucket),
        whole(visits),
        amount(clicks),
        rate ? number(rate.m) : "–",
        rate ? intervalOf(rate) : "–",
        number(best.optimum[bucket]),
        ...(best.lo ? [intervalOf({ lo: best.lo[bucket], hi: best.hi[bucket] })] : []),
        number(best.random[bucket]),
      ]),
    ),
  );
}

const intervalOf = ({ lo, hi }) => `${number(lo)}–${number(hi)}`;

// Buckets with few visits have wide intervals: they are cut at the edge rather than flatten all others.
function clickRange(buckets, best) {
  const counts = buckets.map(({ visits }) => visits).sort((a, b) => a - b);
  const usual = counts[Math.floor(counts.length / 2)] / 2;
  const values = buckets.flatMap(({ rate, visits }) =>
    rate ? (visits >= usual ? [rate.lo, rate.hi] : []) : [],
  );
  return roundRange([...values, best.optimum.at(-1), best.random.at(-1)], 5, { floor: 0, ceiling: 1 });
}

function clickLayers(buckets, best, x, y, clamp) {
  const runs = [];
  buckets.forEach(({ rate }, bucket) => {
    if (!rate) runs.push([]);
    else (runs.at(-1) ?? (runs.push([]), runs.at(-1))).push([bucket, rate]);
  });
  const bands = runs
    .filter((run) => run.length > 1)
    .map((run) => {
      const upper = run.map(([bucket, rate]) => [x(bucket), y(clamp(rate.hi))]);
      const lower = run.map(([bucket, rate]) => [x(bucket), y(clamp(rate.lo))]).reverse();
      return h("path", { class: "bd", d: `${path([...upper, ...lower])}Z` });
    });
  const lone = runs
    .filter((run) => run.length === 1)
    .flatMap(([[bucket, rate]]) => [
      h("line", {
        class: "lone",
        x1: x(bucket),
        x2: x(bucket),
        y1: y(clamp(rate.lo)),
        y2: y(clamp(rate.hi)),
      }),
      h("circle", { class: "pt", cx: x(bucket), cy: y(clamp(rate.m)), r: 2 }),
    ]);
  const values = buckets.map(({ rate }) => (rate ? clamp(rate.m) : null));
  const lines = segments(values, x, y).map((run) => h("path", { class: "ln", d: path(run) }));
  return [...optimumBand(best, x, y, clamp), ...bands, ...lone, ...lines];
}

function optimumBand(best, x, y, clamp) {
  if (!best.lo || best.lo.length < 2) return [];
  const upper = best.hi.map((value, bucket) => [x(bucket), y(clamp(value))]);
  const lower = best.lo.map((value, bucket) => [x(bucket), y(clamp(value))]).reverse();
  return [h("path", { class: "ob", d: `${path([...upper, ...lower])}Z` })];
}

// Buttons while they fit in a line, a list beyond.
function typeChoice(state, type) {
  const { types } = state.surface;
  if (types.length === 1) return null;
  const pick = (event) =>
    choose({ clicksOf: event.target.value === "all" ? null : Number(event.target.value) });
  const options = [["all", "All"], ...types.map((name, index) => [String(index), name])];
  const chosen = type === null ? "all" : String(type);
  if (types.length > 3 || types.join("").length > 36) {
    return h(
      "label",
      { class: "pick" },
      h("span", { class: "vh" }, "User type in the click chart"),
      h(
        "select",
        { "data-key": "pick", on: { change: pick } },
        options.map(([value, name]) => h("option", { value, selected: value === chosen }, name)),
      ),
    );
  }
  return h(
    "fieldset",
    { class: "seg", on: { change: pick } },
    h("legend", { class: "vh" }, "User type in the click chart"),
    options.map(([value, name]) =>
      h("label", null, h("input", { type: "radio", name: "who", value, checked: value === chosen }), name),
    ),
  );
}

function regretFigure(state, series) {
  const label = "Cumulative regret in the demo";
  const unit = isEqual(state) ? "in utility" : "clicks";
  const visits = series.visits.map((row) => sum(row));
  let before = 0;
  const soFar = visits.map((count) => (before += count));
  const told = {
    key: "regret",
    label,
    series,
    height: 160,
    range: roundRange([0, 1, ...series.regret], 4, { floor: 0 }),
    format: (value) => whole(value),
    readings: series.regret.map(
      (value, bucket) => `${number(value, 1)} ${unit} in ${plural(soFar[bucket], "visit")}`,
    ),
    point: (bucket) => series.regret[bucket],
    layers: (x, y) => [
      h("path", { class: "ln", d: path(series.regret.map((value, bucket) => [x(bucket), y(value)])) }),
    ],
  };
  const what = isEqual(state) ? "Collective utility" : "Clicks";
  return figure(
    "Regret (demo)",
    readout({ key: told.key, idle: "" }),
    timeChart(told),
    note(
      `${what} given up so far by not knowing the true values. ` +
        "The flatter the end, the less there is left to learn.",
    ),
    behind("regret", label, ["Until", "Regret", "Visits"], () =>
      series.regret.map((value, bucket) => [
        bucketWords(series, bucket),
        number(value, 1),
        whole(soFar[bucket]),
      ]),
    ),
  );
}
