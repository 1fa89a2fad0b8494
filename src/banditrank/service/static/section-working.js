// Is it working: the click rate compared with random order and the optimum, exploration, and regret in demos.

import { roundRange } from "./axis.js";
import { path, readout } from "./chart.js";
import { uiState, updateUiState } from "./ui-state.js";
import { h } from "./element.js";
import { explorationFigure } from "./exploration-figure.js";
import {
  isEmpty,
  isEqual,
  drawsLotteries,
  isPositionBased,
  maxClicks,
  optimumName,
  rates,
  referenceRates,
  sum,
} from "./selectors.js";
import { emptyState, figure, note, panelError, section } from "./section.js";
import { workingAnswer } from "./sentences.js";
import { chartTable } from "./tables.js";
import { eventsIn } from "./time-series.js";
import { formatBucket, segments, timeChart } from "./time-chart.js";
import { amount, duration, formatInterval, number, plural, whole } from "./format.js";

export function workingSection(state, series, error) {
  if (!series && error)
    return section("working", "Not available.", null, panelError(error));
  if (!series) return section("working", "Loading…", null, h("div", { class: "none sk" }));
  if (isEmpty(state)) {
    const window = duration(state.surface.attribution_seconds);
    const text = `A visit is counted when its feedback arrives or its window of ${window} closes.`;
    return section("working", "No visits have been counted yet.", null, emptyState(text));
  }
  if (!series.visits.length) {
    const visit = state.started_at === null ? "next" : "first";
    const text = `The first point appears ${duration(series.bucket_seconds)} after the ${visit} visit.`;
    return section("working", workingAnswer(state), null, emptyState(text));
  }
  const definition = note(
    `Each point covers ${duration(series.bucket_seconds)}; the band is its 95% interval. No smoothing.`,
  );
  return section(
    "working",
    workingAnswer(state),
    definition,
    error && panelError(error),
    clickFigure(state, series),
    // The rankings of a lottery are no exploration, and have no regret of their own.
    !drawsLotteries(state) &&
      h(
        "div",
        { class: "two" },
        explorationFigure(series),
        series.regret && regretFigure(state, series),
      ),
  );
}

function clickFigure(state, series) {
  const { clickChartType: selected } = uiState;
  const type = selected !== null && selected < state.surface.user_types.length ? selected : null;
  const buckets = rates(series, type, maxClicks(state));
  const best = referenceRates(state, series, type);
  const range = clickRange(buckets, best, maxClicks(state));
  const optimum = optimumName(state);
  const line = (values, name, kind, above) => ({
    values,
    kind,
    above,
    label: `${name} ${number(values.at(-1))}`,
  });
  const suffix = type === null ? "" : ` of ${state.surface.user_types[type]}`;
  const name = isPositionBased(state) ? "Clicks per visit" : "Click rate";
  const label = `${name}${suffix} over time${best ? `, with the ${optimum} and random order` : ""}`;
  const spec = {
    key: "clicks",
    label,
    series,
    height: 280,
    range,
    format: (value, decimals) => number(value, Math.max(2, decimals)),
    values: buckets.map(({ rate, visits }, bucket) =>
      [
        rate
          ? `${number(rate.estimate)} clicks per visit (${formatInterval(rate)}), ${plural(visits, "visit")}`
          : "no visits",
        ...eventsIn(series, bucket),
      ].join("; "),
    ),
    references: best
      ? [
          line(best.optimum, optimum, "op", true),
          line(best.random, state.has_true_values ? "random" : "estimated random", "rn", false),
        ]
      : [],
    events: series.events,
    point: (bucket) => buckets[bucket].rate?.estimate ?? null,
    layers: (x, y, clamp) => clickLayers(buckets, best, x, y, clamp),
  };
  const chart = timeChart(spec);
  const head = [
    "From",
    "Visits",
    "Clicks",
    name,
    "95% interval",
    ...(best ? ["Optimum"] : []),
    ...(best?.low ? ["Optimum interval"] : []),
    ...(best ? ["Random order"] : []),
    ...(series.events.length ? ["Events"] : []),
  ];
  return h(
    "figure",
    null,
    h(
      "figcaption",
      null,
      h("h3", null, name),
      readout({ key: spec.key, idle: "" }),
      typeControl(state, type),
    ),
    chart,
    best?.low && note(`The lighter band around the dashed line is the interval of the ${optimum}.`),
    chartTable("clicks", label, head, () =>
      buckets.map(({ visits, clicks, rate }, bucket) => [
        formatBucket(series, bucket),
        whole(visits),
        amount(clicks),
        rate ? number(rate.estimate) : "–",
        rate ? formatInterval(rate) : "–",
        ...(best ? [number(best.optimum[bucket])] : []),
        ...(best?.low ? [formatInterval({ low: best.low[bucket], high: best.high[bucket] })] : []),
        ...(best ? [number(best.random[bucket])] : []),
        ...(series.events.length ? [eventsIn(series, bucket).join("; ")] : []),
      ]),
    ),
  );
}

// The range of the axis; wide intervals of buckets with few visits are clipped.
function clickRange(buckets, best, ceiling) {
  const counts = buckets.map(({ visits }) => visits).sort((a, b) => a - b);
  const threshold = counts[Math.floor(counts.length / 2)] / 2;
  const values = buckets.flatMap(({ rate, visits }) =>
    rate ? (visits >= threshold ? [rate.low, rate.high] : []) : [],
  );
  const references = best ? [best.optimum.at(-1), best.random.at(-1)] : [];
  const shown = [...values, ...references];
  return roundRange(shown.length ? shown : [0, ceiling], 5, { floor: 0, ceiling });
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
      const upper = run.map(([bucket, rate]) => [x(bucket), y(clamp(rate.high))]);
      const lower = run.map(([bucket, rate]) => [x(bucket), y(clamp(rate.low))]).reverse();
      return h("path", { class: "bd", d: `${path([...upper, ...lower])}Z` });
    });
  const singlePoints = runs
    .filter((run) => run.length === 1)
    .flatMap(([[bucket, rate]]) => [
      h("line", {
        class: "lone",
        x1: x(bucket),
        x2: x(bucket),
        y1: y(clamp(rate.low)),
        y2: y(clamp(rate.high)),
      }),
      h("circle", { class: "pt", cx: x(bucket), cy: y(clamp(rate.estimate)), r: 2 }),
    ]);
  const values = buckets.map(({ rate }) => (rate ? clamp(rate.estimate) : null));
  const lines = segments(values, x, y).map((run) => h("path", { class: "ln", d: path(run) }));
  return [...optimumBand(best, x, y, clamp), ...bands, ...singlePoints, ...lines];
}

function optimumBand(best, x, y, clamp) {
  if (!best?.low || best.low.length < 2) return [];
  const upper = best.high.map((value, bucket) => [x(bucket), y(clamp(value))]);
  const lower = best.low.map((value, bucket) => [x(bucket), y(clamp(value))]).reverse();
  return [h("path", { class: "ob", d: `${path([...upper, ...lower])}Z` })];
}

// The control for the user type: radio buttons, or a list if they do not fit in a line.
function typeControl(state, type) {
  const { user_types: types } = state.surface;
  if (types.length === 1) return null;
  const select = (event) =>
    updateUiState({ clickChartType: event.target.value === "all" ? null : Number(event.target.value) });
  const options = [["all", "All"], ...types.map((name, index) => [String(index), name])];
  const chosen = type === null ? "all" : String(type);
  if (types.length > 3 || types.join("").length > 36) {
    return h(
      "label",
      { class: "pick" },
      h("span", { class: "vh" }, "User type in the click chart"),
      h(
        "select",
        { "data-key": "pick", on: { change: select } },
        options.map(([value, name]) => h("option", { value, selected: value === chosen }, name)),
      ),
    );
  }
  return h(
    "fieldset",
    { class: "seg", on: { change: select } },
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
  const totals = visits.map((count) => (before += count));
  const spec = {
    key: "regret",
    label,
    series,
    height: 160,
    range: roundRange([0, 1, ...series.regret], 4, { floor: 0 }),
    format: (value) => whole(value),
    values: series.regret.map(
      (value, bucket) => `${number(value, 1)} ${unit} in ${plural(totals[bucket], "visit")}`,
    ),
    point: (bucket) => series.regret[bucket],
    layers: (x, y) => [
      h("path", { class: "ln", d: path(series.regret.map((value, bucket) => [x(bucket), y(value)])) }),
    ],
  };
  const quantity = isEqual(state) ? "Collective utility" : "Clicks";
  return figure(
    "Regret (demo)",
    readout({ key: spec.key, idle: "" }),
    timeChart(spec),
    note(
      `${quantity} lost so far because the true values are unknown to the policy. ` +
        "A flat end means that little is left to learn.",
    ),
    chartTable("regret", label, ["Until", "Regret", "Visits"], () =>
      series.regret.map((value, bucket) => [
        formatBucket(series, bucket),
        number(value, 1),
        whole(totals[bucket]),
      ]),
    ),
  );
}
