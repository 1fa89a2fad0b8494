// What has been learned: position preferences and item means of each user type, with intervals.

import { roundRange } from "./axis.js";
import { MAX_ITEMS, MAX_TYPES_IN_CHARTS, MAX_TYPES_PER_CHART, uiState, updateUiState } from "./ui-state.js";
import { h } from "./element.js";
import {
  currentItems,
  displaysOf,
  hasEstimates,
  isEmpty,
  isPositionBased,
  isRetired,
  sum,
} from "./selectors.js";
import { line, readout } from "./chart.js";
import { marker, typeClass, typeName } from "./markers.js";
import { emptyState, figure, pendingSection, section } from "./section.js";
import { learnedAnswer } from "./sentences.js";
import { chartTable } from "./tables.js";
import { whiskerChart } from "./whisker-chart.js";
import { amount, formatInterval, number, percent, shorten, whole } from "./format.js";


export function learnedSection(state) {
  if (isEmpty(state)) {
    const text = "Estimates appear with the first click; their intervals start wide.";
    return section("learned", "Nothing yet.", null, emptyState(text));
  }
  if (!hasEstimates(state)) return pendingSection("learned", state);
  return section(
    "learned",
    learnedAnswer(state),
    legend(state),
    h(
      "div",
      { class: state.surface.user_types.length > MAX_TYPES_PER_CHART ? "ev" : "two ab" },
      positionsFigure(state),
      itemsFigure(state),
    ),
  );
}

function legend(state) {
  const { user_types: types } = state.surface;
  const level = percent(state.level ?? 0.95);
  const shownTypes = types.slice(0, 6);
  return h(
    "ul",
    { class: "key" },
    shownTypes.map((name, type) =>
      h(
        "li",
        null,
        h(
          "svg",
          { width: 36, height: 14, class: typeClass(type), "aria-hidden": "true" },
          line(2, 7, 34, 7, "wh"),
          marker(type, 18, 7, 4, "mk"),
        ),
        h("span", null, `${name}, ${level} interval`),
      ),
    ),
    state.has_true_values &&
      h(
        "li",
        null,
        h(
          "svg",
          { width: 36, height: 14, "aria-hidden": "true" },
          types
            .slice(0, 3)
            .map((_, type, all) => marker(type, 18 + (type - (all.length - 1) / 2) * 12.5, 7, 4.5, "tr")),
        ),
        h("span", null, "True value (demo only)"),
      ),
  );
}

const trueValueOf = (state, estimate) => (state.has_true_values ? estimate.true_value : undefined);

const markFor = (state, what, type, index, label) => {
  const estimate = state[what][type][index];
  const { user_types: types } = state.surface;
  const text =
    types.length > 1 && types.length <= MAX_TYPES_PER_CHART
      ? `${shorten(label)}, ${shorten(types[type])}`
      : shorten(label);
  return {
    key: `${what}-${type}-${index}`,
    type,
    text,
    estimate: estimate.estimate,
    low: estimate.low,
    high: estimate.high,
    trueValue: trueValueOf(state, estimate),
  };
};

// One chart for up to three user types, or one chart per type on the same scale.
function charts(state, spec, rowsOf) {
  const types = state.surface.user_types.map((_, type) => type);
  if (types.length <= MAX_TYPES_PER_CHART) return whiskerChart({ ...spec, rows: rowsOf(types) });
  return h(
    "div",
    { class: "facets" },
    types.slice(0, MAX_TYPES_IN_CHARTS).map((type) => {
      const label = state.surface.user_types[type];
      const one = {
        ...spec,
        key: `${spec.key}-${type}`,
        label: `${spec.label}: ${label}`,
        idle: "",
        rows: rowsOf([type]),
      };
      return h(
        "div",
        { class: "facet", "data-key": one.key },
        h("div", { class: "facet-head" }, h("h4", null, typeName(state, type)), readout(one)),
        whiskerChart(one),
      );
    }),
  );
}

const rangeFor = (state, what, indices) =>
  roundRange(
    [
      0,
      ...state[what].flatMap((row) =>
        indices.flatMap((index) => [row[index].high, trueValueOf(state, row[index]) ?? 0]),
      ),
    ],
    5,
    {
      floor: 0,
      ceiling: 1,
    },
  );

function positionsFigure(state) {
  const positions = state.positions[0].map((_, position) => position);
  const [label, idle] = isPositionBased(state)
    ? ["Probability that each position is looked at, by user type", "probability of a look"]
    : ["Share of looks each position gets, by user type", "share of looks"];
  const spec = {
    key: "positions",
    label,
    idle,
    range: rangeFor(state, "positions", positions),
    format: (value) => percent(value, 1),
    axisFormat: (value) => percent(value),
  };
  const rowsOf = (types) =>
    positions.map((position) => {
      const name = `Position ${position + 1}`;
      return { label: name, marks: types.map((type) => markFor(state, "positions", type, position, name)) };
    });
  return figure(
    "Position preferences",
    state.surface.user_types.length > MAX_TYPES_PER_CHART
      ? h("span", { class: "m" }, spec.idle)
      : readout(spec),
    charts(state, spec, rowsOf),
    chartTable(
      "positions",
      label,
      ["Position, type", "Estimate", interval(state), ...(state.has_true_values ? ["True"] : [])],
      () => tableRows(state, "positions", positions, (position) => `Position ${position + 1}`, spec.format),
    ),
  );
}

const interval = (state) => `${percent(state.level ?? 0.95)} interval`;

function itemsFigure(state) {
  const { surface } = state;
  const current = currentItems(state);
  const label = "Clicks if seen, by item and user type";
  const items = chosenItems(state);
  const spec = {
    key: "items",
    label,
    idle: "clicks if seen; bold: in the current ranking",
    range: rangeFor(state, "items", items),
    format: (value) => number(value),
    axisFormat: (value) => number(value, 1),
  };
  const rowsOf = (types) =>
    chosenItems(state, types).map((item) => {
      const displays = sum(types.map((type) => displaysOf(state, type, item)));
      const sub = `${whole(displays)} shown`;
      const name = isRetired(state, item) ? `${surface.items[item]} (retired)` : surface.items[item];
      return {
        label: name,
        bold: current.has(item),
        sub,
        marks: types.map((type) => markFor(state, "items", type, item, name)),
      };
    });
  const all = surface.items.map((_, item) => item);
  const listed = all.length * surface.user_types.length <= 3000 ? all : items;
  return figure(
    "Item means",
    surface.user_types.length > MAX_TYPES_PER_CHART ? h("span", { class: "m" }, spec.idle) : readout(spec),
    surface.items.length > MAX_ITEMS && search(state, items),
    charts(state, spec, rowsOf),
    chartTable(
      "items",
      label,
      [
        "Item, type",
        "Estimate",
        interval(state),
        ...(state.has_true_values ? ["True"] : []),
        "Expected looks",
        "Clicks",
      ],
      () => tableRows(state, "items", listed, (item) => surface.items[item], spec.format),
    ),
  );
}

// All items; if there are many, those in the current rankings of some user types and the search results.
export function chosenItems(state, types = null) {
  const { items } = state.surface;
  const all = items.map((_, item) => item);
  if (items.length <= MAX_ITEMS) return all;
  const current = currentItems(state, types);
  const query = uiState.search.trim().toLowerCase();
  const found = query
    ? all.filter((item) => !current.has(item) && items[item].toLowerCase().includes(query))
    : [];
  const chosen = new Set([...current, ...found.slice(0, MAX_ITEMS)]);
  return all.filter((item) => chosen.has(item));
}

function search(state, items) {
  const typed = (event) => updateUiState({ search: event.currentTarget.value });
  return h(
    "div",
    { class: "search" },
    h("label", { for: "item-search" }, "Other items"),
    h("input", {
      id: "item-search",
      type: "search",
      placeholder: "part of a name",
      autocomplete: "off",
      on: { input: typed },
    }),
    h(
      "span",
      { class: "m s" },
      `showing ${whole(items.length)} of ${whole(state.surface.items.length)} items`,
    ),
  );
}

function tableRows(state, what, indices, nameOf, format) {
  return indices.flatMap((index) =>
    state.surface.user_types.map((name, type) => {
      const one = state[what][type][index];
      return [
        `${nameOf(index)}, ${name}`,
        format(one.estimate),
        formatInterval(one, format),
        ...(state.has_true_values ? [format(one.true_value)] : []),
        ...(what === "items" ? [whole(one.expected_looks), amount(one.clicks)] : []),
      ];
    }),
  );
}
