// Is it fair: what each type gets under each treatment, what equality costs, and which items are seen at all.

import { roundRange } from "./axis.js";
import { readout } from "./chart.js";
import { MOST_TYPES } from "./choices.js";
import { h } from "./element.js";
import { changeFor, isEmpty, liveTreatment, looksOf, rankingsOf, sum, treatments } from "./facts.js";
import { typeClass, typeName } from "./marks.js";
import { chosenItems } from "./section-learned.js";
import { figure, nothing, note, section } from "./section.js";
import { fairAnswer, priceWords, rankingWords } from "./sentences.js";
import { behind, scrollBox } from "./tables.js";
import { whiskerChart } from "./whisker-chart.js";
import { cut, difference, number, percent, utilityName } from "./words.js";

const TITLE = "Is it fair?";
const TOGETHER = 3;

export function fair(state) {
  if (isEmpty(state) || !state.fair?.length) {
    return section(
      "fair",
      TITLE,
      "Not known yet.",
      null,
      nothing("The price of equality needs an estimate for every user type."),
    );
  }
  const explained = note(
    "The price of equality is the share of all clicks given up by showing everyone one ranking.",
  );
  const exposure = exposureFigure(state);
  const value = state.surface.types.length > 1 && valueFigure(state); // one type alone has nothing to compare
  const wide = state.surface.types.length > TOGETHER;
  return section(
    "fair",
    TITLE,
    fairAnswer(state),
    explained,
    state.surface.types.length > 1 && prices(state),
    wide ? [value, exposure] : h("div", { class: "two ba" }, value, exposure),
  );
}

const treatmentName = (one) =>
  one.treatment === "equal" ? `Equal, ${utilityName(one.utility)}` : "Personalized";

function prices(state) {
  const live = liveTreatment(state);
  return h(
    "dl",
    { class: "price" },
    treatments(state).flatMap((one, index) => {
      if (one.treatment !== "equal") return [];
      const { shown, between } = priceWords(state, index);
      return h(
        "div",
        null,
        h("dt", null, `Price of equality, ${utilityName(one.utility)}${index === live ? " (live)" : ""}`),
        h(
          "dd",
          null,
          shown,
          between && h("span", null, between),
          h("span", null, `everyone sees ${rankingWords(state, one.rankings[0])}`),
        ),
      );
    }),
  );
}

function valueFigure(state) {
  const all = treatments(state);
  const live = liveTreatment(state);
  const { types } = state.surface;
  const label = "Value to each user type under each treatment, in clicks per visit";
  const ends = all.flatMap((one) => [...one.lo, ...one.hi, ...(state.truth ? one.true : [])]);
  const told = {
    key: "treatments",
    label,
    idle: "clicks per visit; bold is live",
    range: roundRange(ends, 4, { floor: 0, ceiling: 1 }),
    format: (value) => number(value),
    axisFormat: (value) => number(value, 2),
    rows: types.slice(0, MOST_TYPES).map((name, type) => ({
      label: name,
      head: type,
      reference: all[0].value[type],
      marks: all.map((one, index) => ({
        key: `treatments-${type}-${index}`,
        type,
        name: treatmentName(one),
        words: `${treatmentName(one)}, ${cut(name)}`,
        bold: index === live,
        m: one.value[type],
        lo: one.lo[type],
        hi: one.hi[type],
        t: state.truth ? one.true[type] : undefined,
        note: index ? difference(one.value[type] - all[0].value[type]) : "reference",
      })),
    })),
  };
  const head = [
    "Treatment, type",
    "Value",
    `${percent(state.level ?? 0.95)} interval`,
    "Against personalized",
    "Told apart",
    ...(state.truth ? ["True"] : []),
  ];
  return figure(
    "Value by treatment",
    readout(told),
    whiskerChart(told),
    behind("treatments", label, head, () =>
      all.flatMap((one, index) =>
        types.map((name, type) => [
          `${treatmentName(one)}, ${name}`,
          number(one.value[type]),
          `${number(one.lo[type])}–${number(one.hi[type])}`,
          index ? difference(one.value[type] - all[0].value[type]) : "reference",
          index ? (changeFor(state, index, type).told ? "yes" : "no") : "–",
          ...(state.truth ? [number(one.true[type])] : []),
        ]),
      ),
    ),
  );
}

// A heat map that is a table already: the numbers stand in it.
function exposureFigure(state) {
  const { types } = state.surface;
  const apart = types.length > TOGETHER;
  const all = types.slice(0, MOST_TYPES).map((_, type) => type);
  const wide = !apart && types.length * state.surface.n_positions > 6;
  const caption = "Share of each user type's rankings that showed an item at a position";
  const maps = apart
    ? all.map((type) => heat(state, [type], `${caption}: ${types[type]}`, false))
    : heat(state, all, caption, wide);
  const hidden = state.surface.items.length > chosenItems(state).length;
  return figure(
    "Exposure",
    h("span", { class: "m" }, `${wide ? "% of rankings" : "share of rankings"}, by position`),
    apart ? h("div", { class: "facets" }, maps) : maps,
    hidden && note("Items that are on show; search for others above at item means."),
    !apart && heatNote(),
  );
}

const heatNote = () => note("All looks: the share of an item in what all users looked at.");

function heat(state, types, caption, wide) {
  const { items, n_positions: count } = state.surface;
  const shown = types.map((type) => rankingsOf(state, type));
  const looks = items.map((_, item) => sum(state.surface.types.map((_, type) => looksOf(state, type, item))));
  const total = sum(looks) || 1;
  const one = types.length === 1 && state.surface.types.length > TOGETHER;
  const columns = types.flatMap((type) =>
    Array.from({ length: count }, (_, position) => ({ type, position })),
  );
  const opens = ({ type, position }) => position === 0 && type !== types[0]; // a gap stands before it
  return scrollBox(
    caption,
    h(
      "table",
      { class: wide ? "heat tight" : "heat" },
      h("caption", { class: "vh" }, caption),
      h(
        "colgroup",
        null,
        h("col", { width: wide ? 68 : 88 }),
        columns.map((column) => h("col", { width: (wide ? 22 : 38) + (opens(column) ? 5 : 0) })),
        !one && h("col", { width: wide ? 48 : 58 }),
      ),
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          h("td"),
          types.map((type) => h("th", { colspan: count, scope: "colgroup" }, typeName(state, type, true))),
          !one && h("td"),
        ),
        h(
          "tr",
          null,
          h("th", { scope: "col" }, h("span", { class: "vh" }, "Item")),
          columns.map(({ type, position }) =>
            h(
              "th",
              { scope: "col" },
              h("span", { class: "vh" }, `${state.surface.types[type]}, position `),
              position + 1,
            ),
          ),
          !one && h("th", { scope: "col", class: "r" }, "All looks"),
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
              const rankings = shown[types.indexOf(type)];
              const share = rankings ? state.displays[type][position][item] / rankings : 0;
              const gap = opens(column) ? " gf" : "";
              return h(
                "td",
                { class: `${typeClass(type)} p${Math.round(share * 20)}${gap}` },
                wide ? bare(share) : percent(share),
              );
            }),
            !one && h("td", { class: "sh" }, percent(looks[item] / total)),
          ),
        ),
      ),
    ),
  );
}

const bare = (share) => percent(share).replace("%", "");
