// The share of displays that explored over time: another item, or the same items in another order.

import { roundRange } from "./axis.js";
import { path, readout } from "./chart.js";
import { h } from "./element.js";
import { figure } from "./section.js";
import { sum } from "./selectors.js";
import { chartTable } from "./tables.js";
import { formatBucket, timeChart } from "./time-chart.js";
import { percent } from "./format.js";

export function explorationFigure(series) {
  const label = "Share of displays that explored";
  const both = series.other_item.map((share, bucket) =>
    share === null ? null : share + series.other_order[bucket],
  );
  const spec = {
    key: "exploration",
    label,
    series,
    height: 160,
    range: roundRange([0, 0.05, ...both.filter((share) => share !== null)], 4, { floor: 0, ceiling: 1 }),
    format: (value) => percent(value),
    values: series.other_item.map((item, bucket) =>
      item === null
        ? sum(series.visits[bucket])
          ? "visits were not compared with the best ranking"
          : "no visits"
        : `${percent(item, 1)} other item, ${percent(series.other_order[bucket], 1)} other order`,
    ),
    layers: (x, y) => [
      ...areas(series.other_item, both, "e2", x, y),
      ...areas(Array(both.length).fill(0), series.other_item, "e1", x, y),
    ],
  };
  const swatch = (kind) =>
    h(
      "svg",
      { width: 14, height: 14, "aria-hidden": "true" },
      h("rect", { width: 14, height: 14, class: kind }),
    );
  return figure(
    "Exploration share",
    readout({ key: spec.key, idle: "" }),
    timeChart(spec),
    h(
      "ul",
      { class: "key" },
      h("li", null, swatch("e1"), "another item"),
      h("li", null, swatch("e2"), "same items, another order"),
    ),
    chartTable("exploration", label, ["From", "Another item", "Another order"], () =>
      series.other_item.map((item, bucket) => [
        formatBucket(series, bucket),
        item === null ? "–" : percent(item, 1),
        item === null ? "–" : percent(series.other_order[bucket], 1),
      ]),
    ),
  );
}

// The areas between two lines, over the whole width of buckets with visits.
function areas(lower, upper, kind, x, y) {
  const runs = [[]];
  upper.forEach((value, bucket) => (value === null ? runs.push([]) : runs.at(-1).push(bucket)));
  return runs
    .filter((run) => run.length)
    .map((run) => {
      const [first, last] = [run[0], run.at(-1)];
      const along = (values) => [
        [x(first - 0.5), y(values[first])],
        ...run.map((bucket) => [x(bucket), y(values[bucket])]),
        [x(last + 0.5), y(values[last])],
      ];
      return h("path", { class: kind, d: `${path([...along(upper), ...along(lower).reverse()])}Z` });
    });
}
