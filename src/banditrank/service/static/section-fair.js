// Is it fair: the value of each treatment for each user type, the price of equality, and exposure.

import { roundRange } from "./axis.js";
import { readout } from "./chart.js";
import { MAX_TYPES_IN_CHARTS } from "./ui-state.js";
import { h } from "./element.js";
import {
  currentTreatment,
  hasEstimates,
  isEmpty,
  looksOf,
  maxClicks,
  rankingsOf,
  sum,
  treatmentEffect,
  treatments,
} from "./selectors.js";
import { typeClass, typeName } from "./markers.js";
import { lotteryFigure } from "./lottery-figure.js";
import { chosenItems } from "./section-learned.js";
import { emptyState, figure, note, pendingSection, section } from "./section.js";
import { fairAnswer, formatRanking, priceText } from "./sentences.js";
import { chartTable, scrollBox } from "./tables.js";
import { whiskerChart } from "./whisker-chart.js";
import { difference, formatInterval, number, percent, plural, shorten, utilityName } from "./format.js";

// Columns of a heat map that fit a page of 320 px: with narrow cells, without the percent sign, or wide ones.
const MAX_HEAT_COLUMNS = 6;
const MAX_WIDE_HEAT_COLUMNS = 3;

export function fairSection(state) {
  if (!isEmpty(state) && !hasEstimates(state)) return pendingSection("fair", state);
  if (isEmpty(state) || !state.treatments?.length) {
    return section(
      "fair",
      "Not known yet.",
      null,
      emptyState("The price of equality needs an estimate for every user type."),
    );
  }
  const definition = note(
    "The price of equality is the share of all clicks that is lost if all users see the same ranking.",
  );
  const exposure = exposureFigure(state);
  const value = state.surface.user_types.length > 1 && valueFigure(state);
  return section(
    "fair",
    fairAnswer(state),
    definition,
    state.surface.user_types.length > 1 && prices(state),
    hasTablePerType(state) ? [value, exposure] : h("div", { class: "two ba" }, value, exposure),
    lotteryFigure(state),
  );
}

const NAMES = { personalized: "Personalized", equal: "Equal", "equal-lottery": "Lottery" };

const treatmentName = ({ treatment, utility }) =>
  utility ? `${NAMES[treatment]}, ${utilityName(utility)}` : NAMES[treatment];

function prices(state) {
  const current = currentTreatment(state);
  return h(
    "dl",
    { class: "price" },
    treatments(state).flatMap((one, index) => {
      if (one.treatment === "personalized") return [];
      const name = `${utilityName(one.utility)}${one.probabilities ? " lottery" : ""}`;
      const { shown, between } = priceText(state, index);
      return h(
        "div",
        null,
        h(
          "dt",
          null,
          `Price of equality, ${name}${index === current ? " (current)" : ""}`,
        ),
        h(
          "dd",
          null,
          shown,
          between && h("span", null, between),
          h(
            "span",
            null,
            one.probabilities
              ? `${plural(one.rankings.length, "ranking")}, drawn by chance`
              : `ranking: ${formatRanking(state, one.rankings[0])}`,
          ),
        ),
      );
    }),
  );
}

function valueFigure(state) {
  const all = treatments(state);
  const current = currentTreatment(state);
  const { user_types: types } = state.surface;
  const label = "Value to each user type under each treatment, in clicks per visit";
  const trueValues = (one) => (state.has_true_values ? one.true_values : []);
  const ends = all.flatMap((one) => [...one.low, ...one.high, ...trueValues(one)]);
  const spec = {
    key: "treatments",
    label,
    idle: "clicks per visit; bold: current treatment",
    range: roundRange(ends, 4, { floor: 0, ceiling: maxClicks(state) }),
    format: (value) => number(value),
    axisFormat: (value) => number(value, 2),
    rows: types.slice(0, MAX_TYPES_IN_CHARTS).map((name, type) => ({
      label: name,
      head: type,
      reference: all[0].value[type],
      marks: all.map((one, index) => ({
        key: `treatments-${type}-${index}`,
        type,
        name: treatmentName(one),
        text: `${treatmentName(one)}, ${shorten(name)}`,
        bold: index === current,
        estimate: one.value[type],
        low: one.low[type],
        high: one.high[type],
        trueValue: state.has_true_values ? one.true_values[type] : undefined,
        note: index ? difference(one.value[type] - all[0].value[type]) : "reference",
      })),
    })),
  };
  const head = [
    "Treatment, type",
    "Value",
    `${percent(state.level ?? 0.95)} interval`,
    "Against personalized",
    "Significant",
    ...(state.has_true_values ? ["True"] : []),
  ];
  return figure(
    "Value by treatment",
    readout(spec),
    whiskerChart(spec),
    chartTable("treatments", label, head, () =>
      all.flatMap((one, index) =>
        types.map((name, type) => [
          `${treatmentName(one)}, ${name}`,
          number(one.value[type]),
          formatInterval({ low: one.low[type], high: one.high[type] }),
          index ? difference(one.value[type] - all[0].value[type]) : "reference",
          index ? (treatmentEffect(state, index, type).isSignificant ? "yes" : "no") : "–",
          ...(state.has_true_values ? [number(one.true_values[type])] : []),
        ]),
      ),
    ),
  );
}

// Whether each user type has a table of exposure of its own, because one for all would be too wide.
const hasTablePerType = ({ surface }) =>
  surface.user_types.length > 1 && surface.user_types.length * surface.n_positions > MAX_HEAT_COLUMNS;

// A heat map of exposure, as a table.
function exposureFigure(state) {
  const { user_types: types, n_positions: count } = state.surface;
  const all = types.slice(0, MAX_TYPES_IN_CHARTS).map((_, type) => type);
  const isPerType = hasTablePerType(state);
  const isCompact = (isPerType ? count : types.length * count) > MAX_WIDE_HEAT_COLUMNS;
  const caption = "Share of each user type's rankings that showed an item at a position";
  const maps = isPerType
    ? all.map((type) => heatMap(state, [type], `${caption}: ${types[type]}`, isCompact))
    : heatMap(state, all, caption, isCompact);
  const hidden = state.surface.items.length > chosenItems(state).length;
  const looks = isPerType ? "Looks: the share of the type's looks" : "All looks: the share of all looks";
  return figure(
    "Exposure",
    h("span", { class: "m" }, `${isCompact ? "% of rankings" : "share of rankings"}, by position`),
    isPerType ? h("div", { class: "heats" }, maps) : maps,
    hidden && note("Only items in the current rankings; search for others under Item means."),
    note(`${looks} that an item received.`),
  );
}

function heatMap(state, types, caption, isCompact) {
  const { items, n_positions: count } = state.surface;
  const counts = types.map((type) => rankingsOf(state, type));
  const looks = items.map((_, item) => sum(types.map((type) => looksOf(state, type, item))));
  const total = sum(looks);
  const columns = types.flatMap((type) =>
    Array.from({ length: count }, (_, position) => ({ type, position })),
  );
  const startsGroup = ({ type, position }) => position === 0 && type !== types[0]; // with a gap before it
  return scrollBox(
    caption,
    h(
      "table",
      { class: isCompact ? "heat tight" : "heat" },
      h("caption", { class: "vh" }, caption),
      h(
        "colgroup",
        null,
        h("col", { width: isCompact ? 68 : 80 }),
        columns.map((column) => h("col", { width: (isCompact ? 22 : 36) + (startsGroup(column) ? 5 : 0) })),
        h("col", { width: isCompact ? 48 : 54 }),
      ),
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          h("td"),
          types.map((type) => h("th", { colspan: count, scope: "colgroup" }, typeName(state, type, true))),
          h("td"),
        ),
        h(
          "tr",
          null,
          h("th", { scope: "col" }, h("span", { class: "vh" }, "Item")),
          columns.map(({ type, position }) =>
            h(
              "th",
              { scope: "col" },
              h("span", { class: "vh" }, `${state.surface.user_types[type]}, position `),
              position + 1,
            ),
          ),
          h("th", { scope: "col", class: "r" }, hasTablePerType(state) ? "Looks" : "All looks"),
        ),
      ),
      h(
        "tbody",
        null,
        chosenItems(state, types).map((item) =>
          h(
            "tr",
            null,
            h("th", { scope: "row" }, items[item]),
            columns.map((column) => {
              const { type, position } = column;
              const rankings = counts[types.indexOf(type)];
              const share = rankings ? state.displays[type][position][item] / rankings : null;
              const gap = startsGroup(column) ? " gf" : "";
              return h(
                "td",
                { class: `${typeClass(type)} p${Math.round((share ?? 0) * 20)}${gap}` },
                share === null ? "–" : isCompact ? withoutSign(share) : percent(share),
              );
            }),
            h("td", { class: "sh" }, total ? percent(looks[item] / total) : "–"),
          ),
        ),
      ),
    ),
  );
}

const withoutSign = (share) => percent(share).replace("%", "");
