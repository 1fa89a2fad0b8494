// What has been learned: how much each position and each item is worth to each type, with intervals.

import { roundRange } from "./axis.js";
import { choices, choose, MOST_ITEMS, MOST_TYPES } from "./choices.js";
import { h } from "./element.js";
import { displaysOf, isEmpty, isRetired, liveItems, sum } from "./facts.js";
import { line, readout } from "./chart.js";
import { mark, typeClass, typeName } from "./marks.js";
import { figure, nothing, section } from "./section.js";
import { learnedAnswer } from "./sentences.js";
import { behind } from "./tables.js";
import { whiskerChart } from "./whisker-chart.js";
import { amount, cut, number, percent, whole } from "./words.js";

const TITLE = "What has been learned?";
const TOGETHER = 3; // types in one chart; with more, each has its own

export function learned(state) {
  if (isEmpty(state)) {
    const words =
      "The first estimates appear with the first click; intervals start wide and are drawn as such.";
    return section("learned", TITLE, "Nothing yet.", null, nothing(words));
  }
  return section(
    "learned",
    TITLE,
    learnedAnswer(state),
    key(state),
    h(
      "div",
      { class: state.surface.types.length > TOGETHER ? "ev" : "two ab" },
      positionsFigure(state),
      itemsFigure(state),
    ),
  );
}

function key(state) {
  const { types } = state.surface;
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
          mark(type, 18, 7, 4, "mk"),
        ),
        h("span", null, `${name}, ${level} interval`),
      ),
    ),
    state.truth &&
      h(
        "li",
        null,
        h(
          "svg",
          { width: 36, height: 14, "aria-hidden": "true" },
          types
            .slice(0, 3)
            .map((_, type, all) => mark(type, 18 + (type - (all.length - 1) / 2) * 12.5, 7, 4.5, "tr")),
        ),
        h("span", null, "True value (demo only)"),
      ),
  );
}

const truthOf = (state, estimate) => (state.truth ? estimate.t : undefined);

const markOf = (state, what, type, index, label) => {
  const estimate = state[what][type][index];
  const { types } = state.surface;
  const words =
    types.length > 1 && types.length <= TOGETHER ? `${cut(label)}, ${cut(types[type])}` : cut(label);
  return {
    key: `${what}-${type}-${index}`,
    type,
    words,
    m: estimate.m,
    lo: estimate.lo,
    hi: estimate.hi,
    t: truthOf(state, estimate),
  };
};

// One chart for up to three types, and one for each type beyond, all on one scale.
function charts(state, told, rowsOf) {
  const types = state.surface.types.map((_, type) => type);
  if (types.length <= TOGETHER) return whiskerChart({ ...told, rows: rowsOf(types) });
  return h(
    "div",
    { class: "facets" },
    types.slice(0, MOST_TYPES).map((type) => {
      const label = state.surface.types[type];
      const one = {
        ...told,
        key: `${told.key}-${type}`,
        label: `${told.label}: ${label}`,
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

const highest = (state, what, indices) =>
  roundRange(
    [
      0,
      ...state[what].flatMap((row) =>
        indices.flatMap((index) => [row[index].hi, truthOf(state, row[index]) ?? 0]),
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
  const label = "Share of looks each position gets, by user type";
  const told = {
    key: "positions",
    label,
    idle: "share of looks",
    range: highest(state, "positions", positions),
    format: (value) => percent(value, 1),
    axisFormat: (value) => percent(value),
  };
  const rowsOf = (types) =>
    positions.map((position) => {
      const name = `Position ${position + 1}`;
      return { label: name, marks: types.map((type) => markOf(state, "positions", type, position, name)) };
    });
  return figure(
    "Position preferences",
    state.surface.types.length > TOGETHER ? h("span", { class: "m" }, told.idle) : readout(told),
    charts(state, told, rowsOf),
    behind(
      "positions",
      label,
      ["Position, type", "Estimate", interval(state), ...(state.truth ? ["True"] : [])],
      () => tableRows(state, "positions", positions, (position) => `Position ${position + 1}`, told.format),
    ),
  );
}

const interval = (state) => `${percent(state.level ?? 0.95)} interval`;

function itemsFigure(state) {
  const { surface } = state;
  const live = liveItems(state);
  const label = "Clicks when seen, by item and user type";
  const items = chosenItems(state); // the scale is one for all charts
  const told = {
    key: "items",
    label,
    idle: "clicks when seen; bold items are on show",
    range: highest(state, "items", items),
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
        bold: live.has(item),
        sub,
        marks: types.map((type) => markOf(state, "items", type, item, name)),
      };
    });
  const all = surface.items.map((_, item) => item);
  const few = all.length * surface.types.length <= 3000 ? all : items;
  return figure(
    "Item means",
    surface.types.length > TOGETHER ? h("span", { class: "m" }, told.idle) : readout(told),
    surface.items.length > MOST_ITEMS && search(state, items),
    charts(state, told, rowsOf),
    behind(
      "items",
      label,
      [
        "Item, type",
        "Estimate",
        interval(state),
        ...(state.truth ? ["True"] : []),
        "Expected looks",
        "Clicks",
      ],
      () => tableRows(state, "items", few, (item) => surface.items[item], told.format),
    ),
  );
}

// All items; if they are too many, those on show to some types and those searched for.
export function chosenItems(state, types = null) {
  const { items } = state.surface;
  const all = items.map((_, item) => item);
  if (items.length <= MOST_ITEMS) return all;
  const live = liveItems(state, types);
  const wanted = choices.search.trim().toLowerCase();
  const found = wanted
    ? all.filter((item) => !live.has(item) && items[item].toLowerCase().includes(wanted))
    : [];
  const chosen = new Set([...live, ...found.slice(0, MOST_ITEMS)]);
  return all.filter((item) => chosen.has(item));
}

function search(state, items) {
  const typed = (event) => choose({ search: event.currentTarget.value });
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
      `${whole(items.length)} of ${whole(state.surface.items.length)} items are drawn`,
    ),
  );
}

function tableRows(state, what, indices, nameOf, format) {
  return indices.flatMap((index) =>
    state.surface.types.map((name, type) => {
      const one = state[what][type][index];
      return [
        `${nameOf(index)}, ${name}`,
        format(one.m),
        `${format(one.lo)}–${format(one.hi)}`,
        ...(state.truth ? [format(one.t)] : []),
        ...(what === "items" ? [whole(one.n), amount(one.c)] : []),
      ];
    }),
  );
}
