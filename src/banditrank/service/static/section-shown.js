// What is shown now: the current rankings, their values and reasons, and the latest rankings.

import { surfacePath } from "./api.js";
import { MAX_TYPES_IN_CHARTS } from "./ui-state.js";
import { curlPost } from "./curl-command.js";
import { h } from "./element.js";
import {
  bestRankingOf,
  hasEstimates,
  isEmpty,
  isEqual,
  isLottery,
  isPositionBased,
  sum,
  valueOf,
} from "./selectors.js";
import { latestRankings } from "./latest-rankings.js";
import { swatch, typeName } from "./markers.js";
import { emptyState, note, pendingSection, section } from "./section.js";
import { formatRanking, shownAnswer, shownShareText, whyShown, whyShownToAll } from "./sentences.js";
import { scrollBox, table } from "./tables.js";
import { formatInterval, number, percent, plural, whole } from "./format.js";

export function shownSection(state) {
  const latest = latestRankings(state);
  if (isEmpty(state)) {
    const isWaiting = state.latest_rankings?.length;
    const answer = isWaiting ? "No ranking has been counted yet." : "No ranking has been requested yet.";
    const text = isWaiting
      ? "A ranking is counted when its feedback arrives or its attribution window closes."
      : "Request the first ranking:";
    const command = isWaiting ? null : rankCommand(state);
    return section("shown", answer, null, emptyState(text, command), latest);
  }
  if (!hasEstimates(state)) return pendingSection("shown", state, latest);
  const looks = isPositionBased(state)
    ? "Looks: the probability that users look at the position; the largest is taken to be 100%."
    : "Looks: the share of visits in which users look at the position.";
  const definitions = note(
    `${looks} If seen: clicks per look at the item. Their product is the expected clicks of the position.`,
  );
  return section(
    "shown",
    shownAnswer(state),
    isLottery(state) ? null : definitions,
    isLottery(state) ? lotteryCard(state) : isEqual(state) ? equalCard(state) : cards(state),
    latest,
  );
}

const rankCommand = ({ surface }) =>
  curlPost(surfacePath(surface.name, "/rankings"), { user_type: surface.user_types[0] });

const withEmphasis = (parts) => parts.map((part) => (Array.isArray(part) ? h("b", null, part[0]) : part));

function cards(state) {
  const { user_types: types } = state.surface;
  const more = types.length - MAX_TYPES_IN_CHARTS;
  return [
    h(
      "div",
      { class: "cards" },
      types.slice(0, MAX_TYPES_IN_CHARTS).map((_, type) => card(state, type)),
    ),
    more > 0 && note(`The rankings of ${whole(more)} more user types are in the JSON.`),
  ];
}

function card(state, type) {
  const { surface } = state;
  const { ranking } = bestRankingOf(state, type);
  const value = valueOf(state, type);
  const head = ["Position", "Item", "Looks", "If seen", "Clicks"];
  return h(
    "div",
    { class: "card", "data-key": `card-${type}` },
    h(
      "div",
      { class: "ch" },
      h("h3", null, typeName(state, type)),
      h("span", { class: "m s" }, `${percent(state.arrival_rates[type])} of visits`),
    ),
    h(
      "table",
      { class: ranking.some((item) => surface.items[item].length > 14) ? "slots long" : "slots" },
      h(
        "caption",
        { class: "vh" },
        `Ranking shown to ${surface.user_types[type]} and the expected clicks of each position`,
      ),
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          head.map((cell, i) =>
            h("th", { scope: "col", class: i > 1 ? "r" : null }, i ? cell : h("span", { class: "vh" }, cell)),
          ),
        ),
      ),
      h(
        "tbody",
        null,
        ranking.map((item, position) => {
          const [looks, mean] = [state.positions[type][position].estimate, state.items[type][item].estimate];
          return h(
            "tr",
            null,
            h("td", null, h("span", { class: "pos" }, position + 1)),
            h("th", { class: "it", scope: "row" }, surface.items[item]),
            h("td", { class: "r" }, percent(looks)),
            h("td", { class: "r nw" }, `× ${number(mean)}`),
            h("td", { class: "r nw" }, `= ${number(mean === null ? null : looks * mean)}`),
          );
        }),
      ),
      h(
        "tfoot",
        null,
        h(
          "tr",
          null,
          h("td"),
          h("td", { colspan: 3 }, "Clicks per visit ", h("span", { class: "m nw" }, formatInterval(value))),
          h("td", { class: "r" }, h("b", null, number(value.estimate))),
        ),
      ),
    ),
    h("p", { class: "why" }, withEmphasis(whyShown(state, type))),
  );
}

// The rankings of the lottery with their odds, and how often each was shown.
function lotteryCard(state) {
  const head = ["Ranking", "Probability", "Shown"];
  const rows = state.best_rankings.map((one) => [
    formatRanking(state, one.ranking),
    percent(one.probability, 1),
    one.shown ? percent(one.shown.share, 1) : "–",
  ]);
  const values = state.surface.user_types
    .slice(0, MAX_TYPES_IN_CHARTS)
    .map((name, type) => `${name} ${number(valueOf(state, type).estimate)}`);
  const total = state.best_rankings[0].shown?.n_rankings;
  return h(
    "div",
    { class: "card", "data-key": "card-all" },
    h(
      "div",
      { class: "ch" },
      h("h3", null, "All users"),
      total && h("span", { class: "m s" }, `shown: of the last ${plural(total, "ranking")}`),
    ),
    table("Rankings of the lottery and their odds", head, rows),
    h("p", { class: "why" }, `Expected clicks per visit: ${values.join(", ")}.`),
  );
}

function equalCard(state) {
  const { surface, arrival_rates: arrivalRates } = state;
  const now = state.best_rankings[0];
  const clicksAt = (type, position) => {
    const mean = state.items[type][now.ranking[position]].estimate;
    return mean === null ? null : state.positions[type][position].estimate * mean;
  };
  const total = (valueFor) => {
    const values = arrivalRates.map((_, type) => valueFor(type));
    return values.includes(null) ? null : sum(values.map((value, type) => arrivalRates[type] * value));
  };
  const shownTypes = surface.user_types.slice(0, MAX_TYPES_IN_CHARTS);
  const cell = (type, content, below) =>
    h("td", { class: "r" }, h("span", { class: "on-narrow" }, swatch(type)), content, below);
  return h(
    "div",
    { class: "card", "data-key": "card-all" },
    h("div", { class: "ch" }, h("h3", null, "All users"), h("span", { class: "m s" }, shownShareText(now))),
    scrollBox(
      "The ranking by user type",
      h(
        "table",
        { class: "slots eq" },
        h(
          "caption",
          { class: "vh" },
          "The ranking, and the expected clicks of each position by user type",
        ),
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            h("th", { scope: "col" }, h("span", { class: "vh" }, "Position")),
            h("th", { scope: "col" }, "Item"),
            shownTypes.map((_, type) => h("th", { scope: "col", class: "r" }, typeName(state, type, true))),
            h("th", { scope: "col", class: "r" }, "All"),
          ),
        ),
        h(
          "tbody",
          null,
          now.ranking.map((item, position) =>
            h(
              "tr",
              null,
              h("td", null, h("span", { class: "pos" }, position + 1)),
              h("th", { class: "it", scope: "row" }, surface.items[item]),
              shownTypes.map((_, type) => {
                const looks = state.positions[type][position].estimate;
                const mean = state.items[type][item].estimate;
                return cell(
                  type,
                  number(clicksAt(type, position)),
                  h("span", { class: "m sub" }, `${percent(looks)} × ${number(mean, 2)}`),
                );
              }),
              h(
                "td",
                { class: "r" },
                h("span", { class: "on-narrow m" }, "All"),
                number(total((type) => clicksAt(type, position))),
              ),
            ),
          ),
        ),
        h(
          "tfoot",
          null,
          h(
            "tr",
            null,
            h("td"),
            h("td", null, "Clicks per visit"),
            shownTypes.map((_, type) => {
              const value = valueOf(state, type);
              return cell(
                type,
                h("b", null, number(value.estimate)),
                h("span", { class: "m sub" }, formatInterval(value)),
              );
            }),
            h(
              "td",
              { class: "r" },
              h("span", { class: "on-narrow m" }, "All"),
              h(
                "b",
                null,
                number(total((type) => valueOf(state, type).estimate)),
              ),
            ),
          ),
        ),
      ),
    ),
    h("p", { class: "why" }, withEmphasis(whyShownToAll(state))),
  );
}
